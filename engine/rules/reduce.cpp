// Reductions over ranges (Z16, Z17): what does not depend on the ranges leaves. Integers only where
// the order of rounding would change; a sum of equal floats is one product, which rounds less.
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

bool depends(UOp value, UOp reduction) {
  for (size_t i = 1; i < reduction.nsrc(); i++)
    for (const Node* r : reduction.src(i).ranges())
      if (value.has_range(UOp(r))) return true;
  return false;
}
UOp over(UOp reduction, UOp value) {
  std::vector<UOp> src = reduction.srcs();
  src[0] = value;
  return rebuild(reduction, src);
}

// sum(x * y), y independent of the ranges -> sum(x) * y
UOp hoist_factor(UOp u, UOp product, UOp x, UOp y) {
  if (u.reduce_op() != Op::ADD || u.nsrc() < 2 || !is_int(u.dtype()) ||
      product.dtype() != u.dtype())
    return {};
  if (depends(y, u) || !y.shape().empty() || x.dtype() != u.dtype() || y.dtype() != u.dtype())
    return {};
  return over(u, x) * y;
}

// Ranges the value does not depend on: a sum counts them, a maximum ignores them.
UOp drop_unused_ranges(UOp u) {
  if (u.reduce_op() == Op::MUL || u.dtype() == DType::Bool) return {};
  std::vector<UOp> src{u.src(0)};
  Wide count = 1;
  for (size_t i = 1; i < u.nsrc(); i++) {
    const UOp r = u.src(i);
    const bool unused =
        r.op() == Op::RANGE && r.src(0).is_const() && r.src(0).ival() > 0 && !u.src(0).has_range(r);
    if (!unused)
      src.push_back(r);
    else if (narrow(count * r.src(0).ival()))
      count *= r.src(0).ival();
    else
      return {};
  }
  if (src.size() == u.nsrc()) return {};
  const UOp rest = src.size() == 1 && u.reduce_dims() == 0 ? src[0] : rebuild(u, src);
  if (u.reduce_op() == Op::MAX) return rest;
  const int64_t n = static_cast<int64_t>(count);
  if (is_float(u.dtype())) return rest * fconst(static_cast<double>(n), u.dtype());
  return rest * iconst(wrap_to(u.dtype(), n), u.dtype());
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("reduce-factor", node(Op::REDUCE, (x * y).as("v")).tail().as("u"), [](U u, V v_, X x_, Y y_) { return hoist_factor(u, v_, x_, y_); }),
    rounding("reduce-unused", node(Op::REDUCE, x, y).tail().as("u"),            [](U u, X, Y)             { return drop_unused_ranges(u); }),
};
// clang-format on

}  // namespace

const Rules<>& reduce_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
