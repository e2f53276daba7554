// Nodes that only order or gather others (Y43, Y44, Z6, Z8, Z20), and ranges of size one under
// their ends.
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
constexpr OpSet enders = Op::END | Op::REDUCE;

// Ranges that became constants (size one) end nothing.
UOp drop_constant_ranges(UOp u) {
  std::vector<UOp> src{u.src(0)};
  for (size_t i = 1; i < u.nsrc(); i++)
    if (!u.src(i).is_const()) src.push_back(u.src(i));
  if (src.size() == u.nsrc()) return {};
  return rebuild(u, src);
}
UOp ends_nothing(UOp u) {
  if (u.op() == Op::REDUCE && u.reduce_dims() != 0) return {};
  return u.src(0);
}

// Nested groups and empty statements go; statements keep their order.
UOp flatten(UOp u) {
  std::vector<UOp> src;
  bool changed = false;
  for (size_t i = 0; i < u.nsrc(); i++) {
    const UOp s = u.src(i);
    const bool empty = s.op() == Op::NOOP && s.nsrc() == 0, group = s.op() == Op::GROUP;
    changed |= empty || group;
    if (empty) continue;
    if (!group) src.push_back(s);
    for (size_t k = 0; group && k < s.nsrc(); k++) src.push_back(s.src(k));
  }
  return changed ? rebuild(u, src) : UOp{};
}

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("end-constant",  node(enders).tail().as("u"),                      [](U u)   { return u.nsrc() > 1 ? drop_constant_ranges(u) : ends_nothing(u); }),
    rule("after-nothing", node(Op::AFTER, x),                               [](X x_)  { return UOp(x_); }),
    rule("flatten",       node(Op::SINK | Op::GROUP).tail().as("u"),        [](U u)   { return flatten(u); }),
    rule("group-one",     node(Op::GROUP, x),                               [](X x_)  { return x_.has_shape() ? UOp{} : UOp(x_); }),
    rule("store-load",    node(Op::STORE, x, node(Op::LOAD, x)),            [](X)     { return make(Op::NOOP, DType::Void, {}); }),
    rule("store-invalid", node(Op::STORE, x, poison).tail(),                [](X)     { return make(Op::NOOP, DType::Void, {}); }),
    rule("end-nothing",   node(Op::END, node(Op::NOOP).as("x")).tail(),     [](X x_)  { return UOp(x_); }),
};
// clang-format on

}  // namespace

const Rules<>& control_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
