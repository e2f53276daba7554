#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

Ints shape_of(UOp x) { return Ints(x.shape().begin(), x.shape().end()); }

std::string no_axis(int64_t axis, size_t rank) {
  if (rank == 0) return fmt::format("axis {} of a scalar", axis);
  const auto n = static_cast<int64_t>(rank);
  return fmt::format("axis {} is not in {}..{}", axis, -n, n - 1);
}

// The dim that a possibly negative axis names among `rank` dims.
std::optional<size_t> dim_of(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}

}  // namespace

std::optional<std::vector<size_t>> TensorOps::resolve(UOp x, const Axes& axes) {
  std::vector<size_t> out;
  const size_t rank = x.shape().size();
  if (axes.all) {
    out.resize(rank);
    std::iota(out.begin(), out.end(), size_t{0});
    return out;
  }
  for (int64_t a : axes.list) {
    const auto d = dim_of(a, rank);
    if (!d) return refuse(no_axis(a, rank)), std::nullopt;
    if (std::ranges::find(out, *d) != out.end())
      return refuse(fmt::format("axis {} is given twice", a)), std::nullopt;
    out.push_back(*d);
  }
  std::ranges::sort(out);
  return out;
}

UOp TensorOps::reshape(UOp x, Ints shape) {
  if (!x) return {};
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = static_cast<int64_t>(i);
      continue;
    }
    if (shape[i] < 0)
      return refuse(fmt::format("reshape to {}: only one dim may be -1", shape_text(shape)));
    if (__builtin_mul_overflow(known, shape[i], &known))
      return refuse(fmt::format("reshape to {}: too many elements", shape_text(shape)));
  }
  if (unknown >= 0) {
    if (known == 0 || x.numel() % known != 0)
      return refuse(fmt::format("shape {} of {} elements cannot become {}", shape_text(x.shape()),
                                x.numel(), shape_text(shape)));
    shape[static_cast<size_t>(unknown)] = x.numel() / known;
  } else if (known != x.numel()) {
    return refuse(fmt::format("shape {} of {} elements cannot become {} of {}",
                              shape_text(x.shape()), x.numel(), shape_text(shape), known));
  }
  if (std::ranges::equal(shape, x.shape())) return x;
  return make(Op::RESHAPE, x.dtype(), {x, dims(shape)});
}

UOp TensorOps::permute(UOp x, const Ints& axes) {
  if (!x) return {};
  const size_t rank = x.shape().size();
  if (axes.size() != rank)
    return refuse(fmt::format("{} axes for shape {}", axes.size(), shape_text(x.shape())));
  Ints out;
  for (int64_t a : axes) {
    const auto d = dim_of(a, rank);
    if (!d) return refuse(no_axis(a, rank));
    if (std::ranges::find(out, static_cast<int64_t>(*d)) != out.end())
      return refuse(fmt::format("axis {} is given twice", a));
    out.push_back(static_cast<int64_t>(*d));
  }
  if (std::ranges::is_sorted(out)) return x;
  return make(Op::PERMUTE, x.dtype(), {x}, 0, intern(out));
}

UOp TensorOps::transpose(UOp x, int64_t i, int64_t j) {
  if (!x) return {};
  const size_t rank = x.shape().size();
  const auto a = dim_of(i, rank), b = dim_of(j, rank);
  if (!a || !b) return refuse(no_axis(a ? j : i, rank));
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::swap(axes[*a], axes[*b]);
  return permute(x, axes);
}

UOp TensorOps::expand(UOp x, const Ints& shape) {
  if (!x || !sized(shape)) return {};
  const auto old = x.shape();
  const auto fail = [&] {
    return refuse(
        fmt::format("shape {} does not expand to {}", shape_text(old), shape_text(shape)));
  };
  if (shape.size() < old.size()) return fail();
  const size_t added = shape.size() - old.size();
  // Dims that are new or grow from 1 are dropped, prepended at full size, and moved into place.
  Ints kept, grown, order(shape.size());
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] < 0) return fail();
    if (i >= added && shape[i] != old[i - added] && old[i - added] != 1) return fail();
    const bool grows = i < added || shape[i] != old[i - added];
    (grows ? grown : kept).push_back(shape[i]);
  }
  if (grown.empty()) return x;
  int64_t next_grown = 0, next_kept = static_cast<int64_t>(grown.size());
  for (size_t i = 0; i < shape.size(); i++)
    order[i] = i < added || shape[i] != old[i - added] ? next_grown++ : next_kept++;
  const UOp flat = reshape(x, kept);
  return permute(make(Op::EXPAND, x.dtype(), {flat, dims(grown)}), order);
}

UOp TensorOps::squeeze(UOp x, const Ints& axes) {
  if (!x) return {};
  const auto ds = resolve(x, {axes, false});
  if (!ds) return {};
  Ints shape;
  for (size_t i = 0; i < x.shape().size(); i++) {
    const bool drop = std::ranges::find(*ds, i) != ds->end();
    if (drop && x.shape()[i] != 1)
      return refuse(
          fmt::format("axis {} of shape {} is {}, not 1", i, shape_text(x.shape()), x.shape()[i]));
    if (!drop) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}

UOp TensorOps::unsqueeze(UOp x, const Ints& axes) {
  if (!x) return {};
  const size_t rank = x.shape().size() + axes.size();
  std::vector<bool> is_new(rank, false);
  for (int64_t a : axes) {
    const auto d = dim_of(a, rank);
    if (!d) return refuse(no_axis(a, rank));
    if (is_new[*d]) return refuse(fmt::format("axis {} is given twice", a));
    is_new[*d] = true;
  }
  Ints shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; i++) shape.push_back(is_new[i] ? 1 : x.shape()[next++]);
  return reshape(x, shape);
}

UOp TensorOps::pad(UOp x, const Ints& before, const Ints& after, UOp value) {
  if (!x || !value) return {};
  const size_t rank = x.shape().size();
  if (before.size() != rank || after.size() != rank)
    return refuse(
        fmt::format("{} pairs of padding for shape {}", before.size(), shape_text(x.shape())));
  Ints shape;
  bool any = false;
  for (size_t i = 0; i < rank; i++) {
    if (before[i] < 0 || after[i] < 0)
      return refuse(fmt::format("padding [{}, {}] is negative", before[i], after[i]));
    int64_t n = x.shape()[i];
    if (__builtin_add_overflow(n, before[i], &n) || __builtin_add_overflow(n, after[i], &n))
      return refuse("padding does not fit 64 bits");
    shape.push_back(n);
    any |= before[i] > 0 || after[i] > 0;
  }
  if (!sized(shape)) return {};
  if (!any) return x;
  const auto padded = [&](UOp u) {
    return make(Op::PAD, u.dtype(), {u, dims(before), dims(shape)});
  };
  const UOp zeros = padded(x);
  if (value.is_const(0)) return zeros;
  if (!value.shape().empty()) return refuse("the padding value is no scalar");
  return where(padded(full(shape_of(x), bool_const(true))), zeros, to(value, x.dtype()));
}

UOp TensorOps::shrink(UOp x, const Ints& begin, const Ints& end) {
  if (!x) return {};
  Ints sizes;
  bool any = false;
  for (size_t i = 0; i < begin.size(); i++) {
    sizes.push_back(end[i] - begin[i]);
    any |= sizes[i] != x.shape()[i];
  }
  if (!any) return x;
  return make(Op::SHRINK, x.dtype(), {x, dims(begin), dims(sizes)});
}

UOp TensorOps::stride(UOp x, size_t axis, int64_t step) {
  if (!x) return {};
  if (step < 0) x = flip(x, {static_cast<int64_t>(axis)});
  const int64_t n = x.shape()[axis];
  // A step longer than the axis takes one element; so does the axis's length.
  step =
      std::min(step < 0 ? (step == INT64_MIN ? INT64_MAX : -step) : step, std::max<int64_t>(n, 1));
  if (step == 1) return x;
  // Cut into rows of `step` elements, of which the first is kept.
  const int64_t rows = (n + step - 1) / step;
  Ints zeros(x.shape().size(), 0), extra = zeros;
  extra[axis] = rows * step - n;
  x = pad(x, zeros, extra, weak(int64_t{0}));
  if (!x) return {};
  Ints split_shape = shape_of(x);
  split_shape[axis] = rows;
  split_shape.insert(split_shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, step);
  x = reshape(x, split_shape);
  Ints end = split_shape, final_shape = shape_of(x);
  end[axis + 1] = 1;
  x = shrink(x, Ints(end.size(), 0), end);
  return squeeze(x, {static_cast<int64_t>(axis) + 1});
}

UOp TensorOps::flip(UOp x, const Ints& axes) {
  if (!x) return {};
  const auto ds = resolve(x, {axes, false});
  if (!ds || ds->empty()) return ds ? x : UOp{};
  return make(Op::FLIP, x.dtype(), {x}, 0, intern(Ints(ds->begin(), ds->end())));
}

UOp TensorOps::concat(const std::vector<UOp>& parts, int64_t axis) {
  if (parts.empty()) return refuse("nothing to concatenate");
  DType t = DType::Void;
  for (UOp p : parts) {
    if (!p) return {};
    t = join(t, p.dtype());
  }
  t = concrete(t);
  const size_t rank = parts[0].shape().size();
  const auto d = dim_of(axis, rank);
  if (!d) return refuse(no_axis(axis, rank));
  int64_t total = 0;
  for (UOp p : parts) {
    bool fits = p.shape().size() == rank;
    for (size_t i = 0; fits && i < rank; i++) fits = i == *d || p.shape()[i] == parts[0].shape()[i];
    if (!fits)
      return refuse(fmt::format("shapes {} and {} do not join along axis {}",
                                shape_text(parts[0].shape()), shape_text(p.shape()), axis));
    total += p.shape()[*d];
  }
  // Each part padded to full size, selected where its ones are: exact also for -0.0 and NaN.
  UOp out;
  int64_t at = 0;
  for (UOp p : parts) {
    const int64_t n = p.shape()[*d];
    Ints before(rank, 0), after(rank, 0);
    before[*d] = at, after[*d] = total - at - n;
    at += n;
    if (n == 0) continue;
    const UOp wide = pad(to(p, t), before, after, weak(int64_t{0}));
    Ints mask_shape(rank, 1);
    mask_shape[*d] = n;
    const UOp mask = pad(full(mask_shape, bool_const(true)), before, after, weak(int64_t{0}));
    out = out ? where(mask, wide, out) : wide;
  }
  return out ? out : to(parts[0], t);
}

UOp TensorOps::stack(const std::vector<UOp>& parts, int64_t axis) {
  std::vector<UOp> rows;
  for (UOp p : parts) {
    if (!p) return {};
    if (!std::ranges::equal(p.shape(), parts[0].shape()))
      return refuse(fmt::format("shapes {} and {} do not stack", shape_text(parts[0].shape()),
                                shape_text(p.shape())));
    rows.push_back(unsqueeze(p, {axis}));
  }
  return concat(rows, axis);
}

std::vector<UOp> TensorOps::split(UOp x, int64_t n, int64_t axis) {
  if (!x) return {};
  const auto d = dim_of(axis, x.shape().size());
  if (!d) return refuse(no_axis(axis, x.shape().size())), std::vector<UOp>{};
  const int64_t size = x.shape()[*d];
  if (n < 1 || size % n != 0)
    return refuse(fmt::format("axis {} of shape {} does not split into {} equal parts", axis,
                              shape_text(x.shape()), n)),
           std::vector<UOp>{};
  std::vector<UOp> out;
  Ints begin(x.shape().size(), 0), end = shape_of(x);
  for (int64_t i = 0; i < n; i++) {
    begin[*d] = i * (size / n), end[*d] = (i + 1) * (size / n);
    out.push_back(shrink(x, begin, end));
  }
  return out;
}

UOp TensorOps::full(const Ints& shape, UOp scalar) {
  if (!scalar) return {};
  return expand(to(scalar, concrete(scalar.dtype())), shape);
}

UOp TensorOps::band(UOp x, int64_t k, bool lower) {
  if (!x) return {};
  const size_t rank = x.shape().size();
  if (rank < 2) return refuse(fmt::format("shape {} is no matrix", shape_text(x.shape())));
  const int64_t r = x.shape()[rank - 2], c = x.shape()[rank - 1];
  if (r == 0 || c == 0) return x;
  // mask[i, j] = (j - i >= first): row i of a repeated pattern, each row skewed by one more place.
  const int64_t width = r + c;
  const int64_t first =
      std::clamp<int64_t>(lower ? (k == INT64_MAX ? k : k + 1) : k, -width, width);
  const int64_t zeros = std::clamp<int64_t>(first + r - 1, 0, width);
  UOp mask = full({width - zeros}, bool_const(true));
  mask = pad(mask, {zeros}, {0}, weak(int64_t{0}));
  mask = reshape(expand(mask, {r, width}), {r * width});
  mask = reshape(shrink(mask, {r - 1}, {r - 1 + r * (width - 1)}), {r, width - 1});
  if (!mask) return {};
  mask = shrink(mask, {0, 0}, {r, c});
  const UOp zero = const_like(x, 0);
  return lower ? where(mask, zero, x) : where(mask, x, zero);
}

UOp TensorOps::contiguous(UOp x) { return x ? make(Op::CONTIGUOUS, x.dtype(), {x}) : x; }

}  // namespace beamline
