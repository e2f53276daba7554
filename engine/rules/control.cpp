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

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("end-constant",  node(enders).tail().as("u"),                      [](U u)   { return u.nsrc() > 1 ? drop_constant_ranges(u) : ends_nothing(u); }),
    rule("after-nothing", node(Op::AFTER, x),                               [](X x_)  { return UOp(x_); }),
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
