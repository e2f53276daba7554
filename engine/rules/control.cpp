// Nodes that only order or gather others (Y43, Y44, Z20, Z21), stores that do nothing or something
// only at times (Z6-Z9), and ranges of size one under their ends.
#include <algorithm>

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

// What an AFTER waits for: only what has an effect, the rest is what it stands on. A LOAD stays:
// the store that follows may overwrite what it read.
UOp keep_effects(UOp u) {
  constexpr OpSet effects = Op::RANGE | Op::STORE | Op::CALL | Op::FUNCTION | Op::BARRIER |
                            Op::END | Op::LINEAR | Op::STAGE | Op::LOAD;
  constexpr size_t limit = 256;
  std::vector<UOp> stack, out{u.src(0)}, seen;
  for (size_t i = u.nsrc(); i-- > 1;) stack.push_back(u.src(i));
  while (!stack.empty()) {
    const UOp d = stack.back();
    stack.pop_back();
    if (std::ranges::find(seen, d) != seen.end()) continue;
    seen.push_back(d);
    if (seen.size() > limit) return {};
    if (effects.has(d.op()) || (d.op() == Op::NOOP && d.nsrc() > 0))  // or is a hint
      out.push_back(d);
    else
      for (size_t i = d.nsrc(); i-- > 0;) stack.push_back(d.src(i));
  }
  return out == u.srcs() ? UOp{} : rebuild(u, out);
}

// A store where c holds only: the condition moves into the index.
UOp gated_store(UOp target, UOp value, UOp c) {
  if (target.op() != Op::INDEX || target.nsrc() != 2 || !c.shape().empty() ||
      target.addrspace() != AddrSpace::Global)
    return {};
  UOp index = target.src(1);
  if (index.is_invalid()) return {};
  if (is_gate(index)) c = index.src(0) & c, index = index.src(1);
  const UOp gated = make(Op::WHERE, index.dtype(), {c, index, invalid()});
  return make(Op::STORE, DType::Void,
              {rebuild(target, std::vector<UOp>{target.src(0), gated}), value});
}
// The same after lowering to LOADs: the condition is an operand of the STORE.
UOp store_if(UOp target, UOp value, UOp c) {
  const bool fits = c.shape().empty() && target.addrspace() == AddrSpace::Global;
  return fits ? make(Op::STORE, DType::Void, {target, value, c}) : UOp{};
}

UOp known_load(UOp load, UOp address, UOp otherwise, UOp gate) {
  if (gate.is_const(1)) return make(Op::LOAD, load.dtype(), {address});
  const bool fits = std::ranges::equal(load.shape(), otherwise.shape());
  return gate.is_const(0) && fits ? otherwise : UOp{};
}

// What was written before is reached by the place alone, as that of an accumulator is.
bool waits(UOp place) { return place.nsrc() > 0 && place.src(0).op() == Op::AFTER; }

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("end-constant",  node(enders).tail().as("u"),                      [](U u)   { return u.nsrc() > 1 ? drop_constant_ranges(u) : ends_nothing(u); }),
    rule("after-nothing", node(Op::AFTER, x),                               [](X x_)  { return UOp(x_); }),
    rule("flatten",       node(Op::SINK | Op::GROUP).tail().as("u"),        [](U u)   { return flatten(u); }),
    rule("group-one",     node(Op::GROUP, x),                               [](X x_)  { return x_.has_shape() ? UOp{} : UOp(x_); }),
    rule("store-load",    node(Op::STORE, x, node(Op::LOAD, x)),            [](X x_)  { return waits(UOp(x_)) ? UOp{} : make(Op::NOOP, DType::Void, {}); }),
    rule("load-gate",     node(Op::LOAD, x, y, z).as("u"),                  [](U u, X x_, Y y_, Z z_) { return known_load(u, x_, y_, z_); }),
    rule("store-invalid", node(Op::STORE, x, poison).tail(),                [](X)     { return make(Op::NOOP, DType::Void, {}); }),
    rule("after-effects", node(Op::AFTER, x, y).tail().as("u"),             [](U u, X, Y) { return keep_effects(u); }),
    rule("store-kept",    node(Op::STORE, x, select(c, y, x)),              [](X x_, C c_, Y y_) { return gated_store(x_, y_, c_); }),
    rule("store-kept-else", node(Op::STORE, x, select(c, x, y)),            [](X x_, C c_, Y y_) { return gated_store(x_, y_, negation(c_)); }),
    rule("store-kept-load", node(Op::STORE, x, select(c, y, node(Op::LOAD, x))), [](X x_, C c_, Y y_) { return store_if(x_, y_, c_); }),
    rule("store-kept-load-else", node(Op::STORE, x, select(c, node(Op::LOAD, x), y)), [](X x_, C c_, Y y_) { return store_if(x_, y_, negation(c_)); }),
    rule("store-gate",    node(Op::STORE, x, select(c, y, poison)),         [](X x_, C c_, Y y_) { return gated_store(x_, y_, c_); }),
    rule("end-nothing",   node(Op::END, node(Op::NOOP).as("x")).tail(),     [](X x_)  { return UOp(x_); }),
};
// clang-format on

}  // namespace

const Rules<>& control_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
