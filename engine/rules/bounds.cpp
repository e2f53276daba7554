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
  return y.vmin() >= x.vmax() && is_bounded(x) ? y : UOp{};
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("single-value", node(decidable).tail().as("u"),        [](U u)            { return single_value(u); }),
    law("empty-range",  node(Op::RANGE, 1).as("u"),            [](U u)            { return iconst(0, u.dtype()); }),
    law("max-bounds",   ordered(node(Op::MAX, x, y)),          [](X x_, Y y_)     { return decided_max(x_, y_); }),
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
