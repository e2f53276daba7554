// Convolutions and pools: strided windows over the padded input, made of movement ops alone, then
// one reduction over them.
#include <algorithm>

#include <fmt/format.h>

#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

Ints shape_of(UOp x) { return Ints(x.shape().begin(), x.shape().end()); }
int64_t span_of(int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }
constexpr int64_t most = int64_t{1} << 30;  // of a stride, dilation or padding
bool within(TensorOps::Pair p, int64_t least) {
  return p.h >= least && p.w >= least && p.h <= most && p.w <= most;
}
std::string pair_text(TensorOps::Pair p) { return fmt::format("({}, {})", p.h, p.w); }
// What is wrong with the steps of a convolution, whatever its shapes; empty: nothing.
std::string fault_of(const TensorOps::Conv& c) {
  if (!within(c.stride, 1))
    return fmt::format("the stride {} is not positive", pair_text(c.stride));
  if (!within(c.dilation, 1))
    return fmt::format("the dilation {} is not positive", pair_text(c.dilation));
  if (!within(c.padding, 0)) return fmt::format("the padding {} is negative", pair_text(c.padding));
  return {};
}

}  // namespace

UOp TensorOps::move_axis(UOp x, size_t from, size_t to) {
  if (!x) return {};
  Ints order;
  for (size_t i = 0; i < x.shape().size(); i++)
    if (i != from) order.push_back(static_cast<int64_t>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return permute(x, order);
}

UOp TensorOps::windows(UOp x, size_t axis, int64_t kernel, int64_t stride_, int64_t dilation) {
  if (!x) return {};
  const int64_t n = x.shape()[axis], out = (n - span_of(kernel, dilation)) / stride_ + 1;
  const size_t rank = x.shape().size();
  const auto resized = [&](size_t at, int64_t size) {  // cut, or filled up with what is never read
    const int64_t now = x.shape()[at];
    Ints before(x.shape().size(), 0), after = before, end = shape_of(x);
    after[at] = std::max<int64_t>(size - now, 0), end[at] = size;
    x = now < size ? pad(x, before, after, weak(int64_t{0})) : shrink(x, before, end);
  };
  const auto split_dim = [&](size_t at, int64_t first, int64_t second) {
    Ints shape = shape_of(x);
    shape[at] = first;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1, second);
    x = reshape(x, shape);
  };
  if (dilation == 1 && kernel <= stride_) {  // windows do not overlap: rows of `stride` elements
    resized(axis, out * stride_);
    if (!x) return {};
    split_dim(axis, out, stride_);
    resized(axis + 1, kernel);
    return move_axis(x, axis + 1, rank);
  }
  // Copies of the axis in a row, cut into rows that are `dilation` longer than it: row k begins at
  // its element k * dilation.
  const int64_t length = std::max(n, out * stride_ - dilation), row = length + dilation;
  resized(axis, length);
  if (!x) return {};
  Ints repeated = shape_of(x);
  repeated.insert(repeated.begin() + static_cast<std::ptrdiff_t>(axis),
                  (kernel * row + length - 1) / length);
  x = expand(unsqueeze(x, {static_cast<int64_t>(axis)}), repeated);
  if (!x) return {};
  Ints merged = shape_of(x);
  merged[axis + 1] *= merged[axis];
  merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(axis));
  x = reshape(x, merged);
  if (!x) return {};
  resized(axis, kernel * row);
  split_dim(axis, kernel, row);
  resized(axis + 1, out * stride_);
  split_dim(axis + 1, out, stride_);
  resized(axis + 2, 1);
  return move_axis(squeeze(x, {static_cast<int64_t>(axis) + 2}), axis, rank);
}

UOp TensorOps::with_bias(UOp r, std::optional<UOp> bias, DType t) {
  if (!r || !bias) return to(r, t);
  const int64_t channels = r.shape()[1];
  if (bias->shape().size() != 1 || bias->shape()[0] != channels)
    return refuse(fmt::format("the bias has shape {}, there are {} output channels",
                              shape_text(bias->shape()), channels));
  return to(add(r, reshape(to(*bias, r.dtype()), {channels, 1, 1})), t);
}

UOp TensorOps::conv2d(UOp x, UOp w, std::optional<UOp> bias, const Conv& c) {
  if (!x || !w) return {};
  const auto sx = x.shape(), sw = w.shape();
  const auto fail = [&](std::string_view why) {
    return refuse(fmt::format("of shape {} with kernels of shape {}: {}", shape_text(sx),
                              shape_text(sw), why));
  };
  if (sx.size() != 4 || sw.size() != 4)
    return fail("[N, C, H, W] and [O, C/groups, KH, KW] are needed");
  if (const std::string why = fault_of(c); !why.empty()) return fail(why);
  const int64_t g = c.groups, per_group = sw[1], outs = sw[0];
  if (g < 1) return fail(fmt::format("{} groups", g));
  if (sx[1] != per_group * g)
    return fail(fmt::format("{} input channels are not {} groups of {}", sx[1], g, per_group));
  if (outs % g != 0)
    return fail(fmt::format("{} output channels do not fall into {} groups", outs, g));
  if (sw[2] < 1 || sw[3] < 1 || sw[2] > most || sw[3] > most) return fail("the kernel is empty");
  const int64_t h = sx[2] + 2 * c.padding.h, v = sx[3] + 2 * c.padding.w;
  if (h < span_of(sw[2], c.dilation.h) || v < span_of(sw[3], c.dilation.w))
    return fail(fmt::format("the kernel reaches over ({}, {}), the padded input is ({}, {})",
                            span_of(sw[2], c.dilation.h), span_of(sw[3], c.dilation.w), h, v));
  const DType t = concrete(join(x.dtype(), w.dtype())), wide = accumulator(t);
  UOp in = pad(to(x, wide), {0, 0, c.padding.h, c.padding.w}, {0, 0, c.padding.h, c.padding.w},
               weak(int64_t{0}));
  in = windows(in, 2, sw[2], c.stride.h, c.dilation.h);
  in = windows(in, 3, sw[3], c.stride.w, c.dilation.w);  // [N, C, OH, OW, KH, KW]
  if (!in) return {};
  const int64_t n = sx[0], oh = in.shape()[2], ow = in.shape()[3];
  if (!sized({per_group, sw[2], sw[3], n, outs, oh, ow})) return {};
  in = permute(reshape(in, {n, g, 1, per_group, oh, ow, sw[2], sw[3]}), {3, 6, 7, 0, 1, 2, 4, 5});
  const UOp kernels = permute(reshape(to(w, wide), {1, g, outs / g, per_group, 1, 1, sw[2], sw[3]}),
                              {3, 6, 7, 0, 1, 2, 4, 5});
  UOp r = reduce_to(Op::ADD, mul(in, kernels), {{0, 1, 2}, false}, false, wide, wide);
  return with_bias(reshape(r, {n, outs, oh, ow}), bias, is_float(t) ? t : wide);
}

UOp TensorOps::conv_transpose2d(UOp x, UOp w, std::optional<UOp> bias, const Conv& c) {
  if (!x || !w) return {};
  const auto sx = x.shape(), sw = w.shape();
  const auto fail = [&](std::string_view why) {
    return refuse(fmt::format("of shape {} with kernels of shape {}: {}", shape_text(sx),
                              shape_text(sw), why));
  };
  if (sx.size() != 4 || sw.size() != 4)
    return fail("[N, C, H, W] and [C, O/groups, KH, KW] are needed");
  if (const std::string why = fault_of(c); !why.empty()) return fail(why);
  const int64_t g = c.groups;
  if (g < 1 || sx[1] % std::max<int64_t>(g, 1) != 0)
    return fail(fmt::format("{} channels do not fall into {} groups", sx[1], g));
  if (sx[1] != sw[0]) return fail(fmt::format("{} input channels, kernels for {}", sx[1], sw[0]));
  if (sx[2] < 1 || sx[3] < 1 || sw[2] < 1 || sw[3] < 1) return fail("nothing to convolve");
  const Pair& extra = c.output_padding;
  if (!within(extra, 0) || extra.h >= std::max(c.stride.h, c.dilation.h) ||
      extra.w >= std::max(c.stride.w, c.dilation.w))
    return fail(
        fmt::format("the output padding {} is not below the stride or dilation", pair_text(extra)));
  // Zeros between the elements, room for the kernel around them, then a plain convolution with the
  // mirrored kernels.
  const auto spread = [&](UOp u, size_t axis, int64_t step) {
    if (!u || step == 1) return u;
    const int64_t n = u.shape()[axis];
    u = unsqueeze(u, {static_cast<int64_t>(axis) + 1});
    if (!u) return u;
    Ints before(u.shape().size(), 0), after = before;
    after[axis + 1] = step - 1;
    u = pad(u, before, after, weak(int64_t{0}));
    if (!u) return u;
    Ints merged = shape_of(u);
    merged[axis] = n * step;
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    u = reshape(u, merged);
    if (!u) return u;
    Ints end = shape_of(u);
    end[axis] = (n - 1) * step + 1;
    return shrink(u, Ints(end.size(), 0), end);
  };
  const auto framed = [&](UOp u, size_t axis, int64_t before, int64_t after) {
    if (!u) return u;
    Ints lo(4, 0), hi(4, 0), begin(4, 0), end = shape_of(u);
    lo[axis] = std::max<int64_t>(before, 0), hi[axis] = std::max<int64_t>(after, 0);
    begin[axis] = std::max<int64_t>(-before, 0), end[axis] -= std::max<int64_t>(-after, 0);
    if (begin[axis] >= end[axis]) return fail("the padding takes everything away");
    return pad(shrink(u, begin, end), lo, hi, weak(int64_t{0}));
  };
  UOp in = spread(spread(x, 2, c.stride.h), 3, c.stride.w);
  const int64_t fh = c.dilation.h * (sw[2] - 1) - c.padding.h,
                fw = c.dilation.w * (sw[3] - 1) - c.padding.w;
  in = framed(framed(in, 2, fh, fh + extra.h), 3, fw, fw + extra.w);
  UOp kernels = permute(reshape(w, {g, sw[0] / g, sw[1], sw[2], sw[3]}), {0, 2, 1, 3, 4});
  kernels = flip(reshape(kernels, {g * sw[1], sw[0] / g, sw[2], sw[3]}), {2, 3});
  Conv plain;
  plain.dilation = c.dilation, plain.groups = g;
  return conv2d(in, kernels, bias, plain);
}

// The windows of x [..., H, W], padded with `value`: [KH, KW, ..., OH, OW]. With `count_padding`
// ones also fill the padding (but not what rounding up adds behind it).
UOp TensorOps::pooled(UOp x, const Pool& p, UOp value, bool count_padding, Ints* reach) {
  if (!x) return {};
  const size_t rank = x.shape().size();
  const auto fail = [&](std::string_view why) {
    return refuse(fmt::format("of shape {}: {}", shape_text(x.shape()), why));
  };
  if (rank < 2) return fail("[..., H, W] is needed");
  if (!within(p.kernel, 1))
    return fail(fmt::format("the kernel {} is not positive", pair_text(p.kernel)));
  if (!within(p.stride, 1))
    return fail(fmt::format("the stride {} is not positive", pair_text(p.stride)));
  if (!within(p.padding, 0) || 2 * p.padding.h > p.kernel.h || 2 * p.padding.w > p.kernel.w)
    return fail(fmt::format("the padding {} is not within half of the kernel {}",
                            pair_text(p.padding), pair_text(p.kernel)));
  UOp out = x;
  for (const bool height : {true, false}) {
    const size_t axis = height ? rank - 2 : rank - 1;
    const int64_t n = x.shape()[axis], k = height ? p.kernel.h : p.kernel.w,
                  s = height ? p.stride.h : p.stride.w, side = height ? p.padding.h : p.padding.w;
    const int64_t room = n + 2 * side - k;
    if (n == 0 || room < 0)
      return fail(
          fmt::format("the kernel {} is larger than the padded input", pair_text(p.kernel)));
    int64_t steps = p.ceil ? (room + s - 1) / s : room / s;
    if (p.ceil && steps * s >= n + side) steps--;  // a window begins in the input or before it
    const int64_t behind = std::max<int64_t>(steps * s + k - (n + 2 * side), 0);
    Ints lo(out.shape().size(), 0), hi = lo;
    lo[axis] = hi[axis] = side;
    if (count_padding) out = pad(out, lo, hi, const_like(x, 1)), lo[axis] = hi[axis] = 0;
    hi[axis] += behind;
    out = windows(pad(out, lo, hi, value), axis, k, s, 1);
    if (!out) return {};
    if (reach) reach->push_back(side + behind);
    // A window longer than asked for (what a stride leaves over) is cut.
    if (out.shape()[axis] > steps + 1) {
      Ints end = shape_of(out);
      end[axis] = steps + 1;
      out = shrink(out, Ints(end.size(), 0), end);
    }
  }
  return move_axis(move_axis(out, rank + 1, 0), rank + 1, 0);
}

UOp TensorOps::max_pool2d(UOp x, const Pool& p) {
  if (!x) return {};
  x = to(x, concrete(x.dtype()));
  const UOp r = pooled(x, p, reduce_identity(Op::MAX, x.dtype()), false, nullptr);
  return r ? max(r, {{0, 1}, false}, false) : r;
}

UOp TensorOps::avg_pool2d(UOp x, const Pool& p) {
  if (!x) return {};
  const DType t = concrete(least_float(x.dtype())), wide = is_small_float(t) ? DType::F32 : t;
  Ints added;
  const UOp windows_ = pooled(to(x, wide), p, weak(int64_t{0}), false, &added);
  const UOp total = windows_ ? sum(windows_, {{0, 1}, false}, false) : UOp{};
  if (!total) return {};
  const size_t rank = x.shape().size();
  const bool whole = added[0] == (p.count_include_pad ? p.padding.h : 0) &&
                     added[1] == (p.count_include_pad ? p.padding.w : 0);
  if (whole) {
    const double all = static_cast<double>(p.kernel.h) * static_cast<double>(p.kernel.w);
    return to(mul(total, weak(1 / all)), t);
  }
  // How many elements each window has.
  const UOp ones = full({x.shape()[rank - 2], x.shape()[rank - 1]}, fconst(1, wide));
  const UOp counts =
      sum(pooled(ones, p, weak(int64_t{0}), p.count_include_pad, nullptr), {{0, 1}, false}, false);
  return to(div(total, counts), t);
}

}  // namespace beamline
