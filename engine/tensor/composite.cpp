#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/ir/derive.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
UOp TensorOps::matmul(UOp a, UOp b) {
  if (!a || !b) return {};
  const Ints sa(a.shape().begin(), a.shape().end()), sb(b.shape().begin(), b.shape().end());
  const auto fail = [&](std::string_view why) {
    return refuse(
        fmt::format("matmul of shapes {} and {}: {}", shape_text(sa), shape_text(sb), why));
  };
  if (sa.empty() || sb.empty()) return fail("a scalar is no matrix");
  // A vector is one row on the left, one column on the right; its dim is dropped again.
  const UOp left = sa.size() == 1 ? reshape(a, {1, sa[0]}) : a;
  const UOp right = sb.size() == 1 ? reshape(b, {sb[0], 1}) : b;
  const size_t ra = left.shape().size(), rb = right.shape().size();
  const int64_t m = left.shape()[ra - 2], k = left.shape()[ra - 1], n = right.shape()[rb - 1];
  if (k != right.shape()[rb - 2])
    return fail(fmt::format("{} and {} differ", k, right.shape()[rb - 2]));
  Ints batch;
  if (!broadcast_shapes(left.shape().first(ra - 2), right.shape().first(rb - 2), batch))
    return fail("batches do not broadcast");
  Ints everything = batch;
  everything.insert(everything.end(), {m, n, k});
  if (!sized(everything)) return {};

  const DType t = concrete(join(a.dtype(), b.dtype()));
  // Factors are widened before they meet: exact products, no wrap.
  const DType wide = accumulator(t);
  // left [..., M, K] as [K, ..., M, 1], right [..., K, N] as [K, ..., 1, N]: the product
  // broadcasts.
  const auto aligned = [&](UOp x, bool is_left) {
    const size_t rank = x.shape().size();
    Ints shape(batch.size() - (rank - 2), 1);
    shape.insert(shape.end(), x.shape().begin(), x.shape().end());
    shape.insert(is_left ? shape.end() : shape.end() - 2, 1);
    x = reshape(to(x, wide), shape);  // left [..., M, K, 1], right [..., 1, K, N]
    Ints order{static_cast<int64_t>(batch.size()) + 1};
    for (size_t i = 0; i < shape.size(); i++)
      if (i != batch.size() + 1) order.push_back(static_cast<int64_t>(i));
    return permute(x, order);
  };
  UOp r = mul(aligned(left, true), aligned(right, false));
  r = reduce_to(Op::ADD, r, {{0}, false}, false, wide, is_float(t) ? t : wide);
  Ints shape = batch;
  if (sa.size() > 1) shape.push_back(m);
  if (sb.size() > 1) shape.push_back(n);
  return reshape(r, shape);
}

UOp TensorOps::softmax(UOp x, const Axes& axes) {
  return in_wide(x, [&](UOp v) {
    const UOp e = exp(sub(v, max(v, axes, true)));
    return mul(e, reciprocal(sum(e, axes, true)));
  });
}
UOp TensorOps::log_softmax(UOp x, const Axes& axes) {
  return in_wide(x, [&](UOp v) {
    const UOp shifted = sub(v, max(v, axes, true));
    return sub(shifted, log(sum(exp(shifted), axes, true)));
  });
}

// A parameter of the shape of the normalised axes, placed at them.
UOp TensorOps::along(UOp x, UOp parameter, const Axes& axes) {
  if (!x || !parameter) return {};
  const auto ds = resolve(x, axes);
  if (!ds) return {};
  Ints expected, placed(x.shape().size(), 1);
  for (size_t d : *ds) expected.push_back(x.shape()[d]), placed[d] = x.shape()[d];
  if (!std::ranges::equal(expected, parameter.shape()))
    return refuse(fmt::format("a weight or bias has shape {}, the axes have {}",
                              shape_text(parameter.shape()), shape_text(expected)));
  return reshape(parameter, placed);
}

UOp TensorOps::layer_norm(UOp x, std::optional<UOp> weight, std::optional<UOp> bias,
                          const Axes& axes, double eps) {
  return in_wide(x, [&](UOp v) {
    const UOp centered = sub(v, mean(v, axes, true));
    const UOp variance = mean(mul(centered, centered), axes, true);
    UOp r = mul(centered, rsqrt(add(variance, weak(eps))));
    if (weight) r = mul(r, along(v, *weight, axes));
    if (bias) r = add(r, along(v, *bias, axes));
    return r;
  });
}
UOp TensorOps::rms_norm(UOp x, std::optional<UOp> weight, const Axes& axes, double eps) {
  return in_wide(x, [&](UOp v) {
    UOp r = mul(v, rsqrt(add(mean(mul(v, v), axes, true), weak(eps))));
    if (weight) r = mul(r, along(v, *weight, axes));
    return r;
  });
}

UOp TensorOps::batch_norm(UOp x, UOp mean_, UOp var_, std::optional<UOp> weight,
                          std::optional<UOp> bias, double eps) {
  if (x && x.shape().size() < 2)
    return refuse(fmt::format("shape {} has no channels", shape_text(x.shape())));
  const Axes channels{{1}, false};
  return in_wide(x, [&](UOp v) {
    UOp scale = rsqrt(add(along(v, var_, channels), weak(eps)));
    if (weight) scale = mul(scale, along(v, *weight, channels));
    const UOp r = mul(sub(v, along(v, mean_, channels)), scale);
    return bias ? add(r, along(v, *bias, channels)) : r;
  });
}

UOp TensorOps::attention(UOp q, UOp k, UOp v, bool causal, std::optional<UOp> mask,
                         std::optional<double> scale) {
  if (!q || !k || !v) return {};
  for (UOp u : {q, k, v})
    if (u.shape().size() < 2)
      return refuse(
          fmt::format("attention of shape {}: [..., T, d] is needed", shape_text(u.shape())));
  const auto d = static_cast<double>(q.shape().back());
  const DType t = concrete(least_float(join(join(q.dtype(), k.dtype()), v.dtype())));
  const DType wide = is_small_float(t) ? DType::F32 : t;
  UOp scores = matmul(to(q, wide), transpose(to(k, wide), -2, -1));
  scores = mul(scores, weak(scale.value_or(1 / std::sqrt(d))));
  if (!scores) return {};
  const UOp lowest = fconst(-INFINITY, wide);
  if (causal) {
    const int64_t tq = scores.shape()[scores.shape().size() - 2], tk = scores.shape().back();
    scores = where(band(full({tq, tk}, bool_const(true)), tk - tq, true), scores, lowest);
  }
  if (mask)
    scores =
        mask->dtype() == DType::Bool ? where(*mask, scores, lowest) : add(scores, to(*mask, wide));
  return to(matmul(softmax(scores, {{-1}, false}), to(v, wide)), t);
}

}  // namespace beamline
