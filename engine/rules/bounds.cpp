// What the bounds of a value decide (Y18, Y19, Y22).
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
constexpr OpSet decidable = ops::elementwise | Op::PARAM | Op::SPECIAL;

UOp single_value(UOp u) {
  if (u.vmin() != u.vmax() || !is_bounded(u) || (!is_int(u.dtype()) && u.dtype() != DType::Bool))
    return {};
  for (size_t i = 0; i < u.nsrc(); i++)
    if (u.src(i).is_invalid()) return {};  // a gate's bounds are those of the index it guards
  return const_like(u, u.vmin());
}
UOp decided_max(UOp x, UOp y) {
  if (is_float(x.dtype()) || x.dtype() != y.dtype()) return {};
  if (x.vmin() >= y.vmax() && is_bounded(y)) return x;
  if (y.vmin() >= x.vmax() && is_bounded(x)) return y;
  if (x.dtype() != DType::WeakInt) return {};
  Linear difference;  // max(a + 1, a + b)
  if (!difference.add(x, 1, DType::WeakInt) || !difference.add(y, -1, DType::WeakInt)) return {};
  const auto d = bounds(difference.terms, difference.constant);
  return !d ? UOp{} : d->lo >= 0 ? x : d->hi <= 0 ? y : UOp{};
}
UOp small_mod(UOp x, UOp y) {
  return x.dtype() == y.dtype() && x.vmin() >= 0 && x.vmax() < y.vmin() ? x : UOp{};
}

// x & mask: bits that x does not have leave the mask, and a mask of all bits that it has is none.
UOp narrow_mask(UOp u, UOp x, UOp mask) {
  if (x.dtype() != u.dtype() || x.vmin() < 0 || x.vmax() == INT64_MAX || mask.ival() < 0) return {};
  const auto top = static_cast<uint64_t>(x.vmax());
  uint64_t has = top == 0 ? 0 : ~uint64_t{0} >> __builtin_clzll(top);
  if (const auto l = u.dtype() == DType::WeakInt ? linear(x) : std::nullopt) {
    int64_t step = l->constant;
    for (const Term& t : l->terms) step = gcd(step, t.coef);
    if (step > 0) has &= ~uint64_t{0} << __builtin_ctzll(static_cast<uint64_t>(step));
  }
  const auto m = static_cast<uint64_t>(mask.ival());
  if ((m & has) == has) return x;
  return const_like(u, static_cast<int64_t>(m & has)) == mask
             ? UOp{}
             : x & const_like(u, static_cast<int64_t>(m & has));
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("single-value", node(decidable).tail().as("u"),        [](U u)            { return single_value(u); }),
    law("empty-range",  node(Op::RANGE, 1).as("u"),            [](U u)            { return iconst(0, u.dtype()); }),
    law("max-bounds",   ordered(node(Op::MAX, x, y)),          [](X x_, Y y_)     { return decided_max(x_, y_); }),
    law("small-mod",    node(Op::FLOORMOD, xi, y),             [](X x_, Y y_)     { return small_mod(x_, y_); }),
    law("narrow-mask",  (xi & k.ints()).as("u"),               [](U u, X x_, K m) { return narrow_mask(u, x_, m); }),
    law("range-mod",    node(Op::FLOORMOD, node(Op::RANGE, y).as("x"), y), [](X x_, Y) { return x_; }),
    law("range-div",    node(Op::FLOORDIV, node(Op::RANGE, y).as("x"), y), [](X x_, Y) { return const_like(x_, 0); }),
};
// clang-format on

}  // namespace

const Rules<>& bounds_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
