#include <algorithm>
#include <cmath>

#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

DType result_of(DType t) { return is_float(t) ? t : accumulator(t); }

}  // namespace

UOp TensorOps::reduce_to(Op op, UOp x, const Axes& axes, bool keepdims, DType accumulate,
                         DType result) {
  const auto ds = resolve(x, axes);
  if (!ds) return {};
  const auto shape = x.shape();
  Ints order(ds->begin(), ds->end()), kept, with_ones(shape.begin(), shape.end());
  int64_t reduced = 1;
  for (size_t d : *ds) reduced *= shape[d], with_ones[d] = 1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (std::ranges::find(*ds, i) != ds->end()) continue;
    order.push_back(static_cast<int64_t>(i));
    kept.push_back(shape[i]);
  }
  x = to(x, accumulate);
  UOp r;
  if (ds->empty()) {
    r = x;
  } else if (reduced == 0) {
    if (op == Op::MAX) return refuse("an empty axis has no greatest or least element");
    r = full(kept, const_like(x, op == Op::MUL ? 1 : 0));
  } else {
    r = reduce(op, permute(x, order), {}, ds->size());
  }
  r = to(r, result);
  return keepdims ? reshape(r, with_ones) : r;
}

int64_t TensorOps::count(UOp x, const Axes& axes) {
  int64_t n = 1;
  if (const auto ds = resolve(x, axes))
    for (size_t d : *ds) n *= x.shape()[d];
  return n;
}

UOp TensorOps::sum(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  const DType t = concrete(x.dtype());
  return reduce_to(Op::ADD, x, axes, keepdims, accumulator(t), result_of(t));
}
UOp TensorOps::prod(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  const DType t = concrete(x.dtype());
  return reduce_to(Op::MUL, x, axes, keepdims, accumulator(t), result_of(t));
}
UOp TensorOps::max(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  const DType t = concrete(x.dtype());
  return reduce_to(Op::MAX, x, axes, keepdims, t, t);
}
UOp TensorOps::min(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  // The mirror image's greatest: by negation of floats, by complement of integers and bools.
  if (is_float(x.dtype())) return neg(max(neg(x), axes, keepdims));
  return invert(max(invert(x), axes, keepdims));
}
UOp TensorOps::any(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  // An empty axis holds nothing true.
  if (count(x, axes) == 0) return cast(sum(x, axes, keepdims), DType::Bool);
  return max(cast(x, DType::Bool), axes, keepdims);
}
UOp TensorOps::all(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  return logical_not(any(logical_not(cast(x, DType::Bool)), axes, keepdims));
}

UOp TensorOps::mean(UOp x, const Axes& axes, bool keepdims) {
  if (!x) return {};
  const DType t = concrete(least_float(x.dtype()));
  const DType wide = is_small_float(t) ? DType::F32 : t;
  const UOp total = reduce_to(Op::ADD, to(x, wide), axes, keepdims, wide, wide);
  if (!total) return {};
  return to(mul(total, weak(1.0 / static_cast<double>(count(x, axes)))), t);
}

UOp TensorOps::var(UOp x, const Axes& axes, bool keepdims, int64_t ddof) {
  return in_wide(x, [&](UOp v) {
    const UOp centered = sub(v, mean(v, axes, true));
    const UOp squares = sum(mul(centered, centered), axes, keepdims);
    const int64_t n = std::max<int64_t>(count(v, axes) - ddof, 0);
    return mul(squares, weak(1.0 / static_cast<double>(n)));
  });
}

}  // namespace beamline
