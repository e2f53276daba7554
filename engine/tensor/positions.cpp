// What depends on positions: counting, scans, selection by index. All of it is sums over masks,
// which rangeify turns into arithmetic and indexed loads.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/ir/derive.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

Ints shape_of(UOp x) { return Ints(x.shape().begin(), x.shape().end()); }
constexpr int64_t count_block = 64;  // longer counts are put together from counts of this many
constexpr int64_t scan_block = 256;  // longer scans go in blocks of this many elements

// The type in which an index is compared with positions.
DType index_type(DType t) {
  if (t == DType::U64 || t == DType::I64) return t;
  return t == DType::U32 ? DType::I64 : DType::I32;
}

}  // namespace

std::optional<size_t> TensorOps::axis_of(UOp x, int64_t axis) {
  const auto ds = resolve(x, {{axis}, false});
  if (!ds) return std::nullopt;
  return ds->at(0);
}

UOp TensorOps::arange(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) return refuse("the step is 0");
  const __int128 room =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 size = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 n = room <= 0 ? 0 : (room + size - 1) / size;
  if (n > (int64_t{1} << 31) - count_block)
    return refuse(fmt::format("from {} to {} are more than 2^31 elements", start, stop));
  const auto count_ = static_cast<int64_t>(n);
  const int64_t last = count_ == 0 ? start : start + (count_ - 1) * step;
  const bool small = std::min(start, last) >= dtype_min(DType::I32) &&
                     std::max(start, last) <= dtype_max(DType::I32);
  const DType t = small ? DType::I32 : DType::I64;
  if (count_ < 2) return full({count_}, iconst(start, t));
  if (count_ > count_block) {  // blocks of positions and positions in a block
    const int64_t blocks = (count_ + count_block - 1) / count_block;
    const UOp high = mul(arange(int64_t{0}, blocks, int64_t{1}), iconst(count_block, DType::I32));
    const UOp both = add(reshape(high, {blocks, 1}), arange(int64_t{0}, count_block, int64_t{1}));
    const UOp i = reshape(both, {blocks * count_block});
    return i ? add(mul(to(shrink(i, {0}, {count_}), t), iconst(step, t)), iconst(start, t)) : i;
  }
  // Element i is the number of k that are less than i.
  const UOp below = band(full({count_, count_}, bool_const(true)), 1, /*lower=*/false);
  const UOp i = to(sum(below, {{0}, false}, false), t);
  return add(mul(i, iconst(step, t)), iconst(start, t));
}

UOp TensorOps::arange(double start, double stop, double step) {
  const double n = std::ceil((stop - start) / step);
  if (!std::isfinite(n)) return refuse("the bounds are not finite, or the step is 0");
  if (n > 0x1p24) return refuse("more than 2^24 elements");
  const UOp i = arange(int64_t{0}, static_cast<int64_t>(std::max(n, 0.0)), int64_t{1});
  return i ? add(mul(to(i, DType::F32), weak(step)), weak(start)) : i;
}

UOp TensorOps::argmax(UOp x, int64_t axis, bool keepdims) {
  if (!x) return {};
  const auto d = axis_of(x, axis);
  if (!d) return {};
  const int64_t n = x.shape()[*d];
  if (n == 0) return refuse("an empty axis has no greatest or least element");
  const UOp greatest = max(x, {{axis}, false}, true);
  UOp hit = eq(x, greatest);
  if (is_float(x.dtype())) hit = bitwise(Op::OR, hit, ne(x, x));
  // The first hit is the one with the most elements from it to the end.
  Ints shape(x.shape().size() - *d, 1);
  shape[0] = n;
  const UOp left = reshape(arange(n, 0, int64_t{-1}), shape);
  const UOp most = max(where(hit, left, weak(int64_t{0})), {{axis}, false}, keepdims);
  return sub(iconst(n, DType::I32), most);
}
UOp TensorOps::argmin(UOp x, int64_t axis, bool keepdims) {
  if (!x) return {};
  return argmax(is_float(x.dtype()) ? neg(x) : invert(x), axis, keepdims);
}

UOp TensorOps::scan(Op op, UOp x) {
  if (!x) return {};
  const size_t rank = x.shape().size(), last = rank - 1;
  const int64_t n = x.shape()[last];
  const UOp neutral = reduce_identity(op, x.dtype());
  if (n < 2) return x;
  if (n <= 2 * scan_block) {
    // Element i combines all k <= i.
    const UOp mask = band(full({n, n}, bool_const(true)), 0, /*lower=*/false);  // [k, i]
    Ints mask_shape(rank + 1, 1);
    mask_shape[0] = mask_shape[rank] = n;
    const UOp terms = move_axis(unsqueeze(x, {static_cast<int64_t>(rank)}), last, 0);
    return reduce_to(op, where(reshape(mask, mask_shape), terms, neutral), {{0}, false}, false,
                     x.dtype(), x.dtype());
  }
  const int64_t blocks = (n + scan_block - 1) / scan_block;
  Ints none(rank, 0), behind = none, cut = shape_of(x);
  behind[last] = blocks * scan_block - n;
  x = pad(x, none, behind, neutral);
  if (!x) return {};
  Ints blocked = shape_of(x);
  blocked[last] = blocks;
  blocked.push_back(scan_block);
  const UOp inner = scan(op, reshape(x, blocked));
  if (!inner) return {};
  // What all blocks before a block come to.
  Ints begin(rank + 1, 0), end = shape_of(inner);
  begin[rank] = scan_block - 1, end[last] = blocks - 1;
  Ints totals_shape = cut, before(rank, 0);
  totals_shape[last] = blocks - 1, before[last] = 1;
  const UOp totals = reshape(shrink(inner, begin, end), totals_shape);
  UOp base = pad(scan(op, totals), before, none, neutral);
  base = unsqueeze(base, {static_cast<int64_t>(rank)});
  Ints merged = cut;
  merged[last] = blocks * scan_block;
  const UOp all = reshape(op == Op::ADD ? add(inner, base) : mul(inner, base), merged);
  return all ? shrink(all, none, cut) : all;
}

UOp TensorOps::scan_axis(Op op, UOp x, int64_t axis) {
  if (!x) return {};
  const auto d = axis_of(x, axis);
  if (!d) return {};
  DType t = concrete(x.dtype()), wide = t;
  if (t == DType::Bool || (is_int(t) && dtype_bytes(t) < 4)) t = wide = DType::I32;
  if (is_small_float(t)) wide = DType::F32;
  const size_t last = x.shape().size() - 1;
  return to(move_axis(scan(op, move_axis(to(x, wide), *d, last)), last, *d), t);
}
UOp TensorOps::cumsum(UOp x, int64_t axis) { return scan_axis(Op::ADD, x, axis); }
UOp TensorOps::cumprod(UOp x, int64_t axis) { return scan_axis(Op::MUL, x, axis); }

UOp TensorOps::select(UOp x, UOp index) {
  if (!x || !index) return {};
  if (!is_int(index.dtype()))
    return refuse(
        fmt::format("the index is {}, not an integer", dtype_name(concrete(index.dtype()))));
  const DType t = x.dtype();
  if (t == DType::Bool) return ne(select(to(x, DType::U8), index), weak(int64_t{0}));
  const int64_t n = x.shape()[0];
  const size_t rank = std::max(x.shape().size() - 1, index.shape().size());
  Ints with_rank{n}, column(rank + 1, 1);
  with_rank.resize(rank + 2 - x.shape().size(), 1);
  with_rank.insert(with_rank.end(), x.shape().begin() + 1, x.shape().end());
  column[0] = n;
  x = reshape(x, with_rank);
  const DType it = index_type(concrete(index.dtype()));
  const UOp position = reshape(to(arange(int64_t{0}, n, int64_t{1}), it), column);
  const UOp hit = eq(to(index, it), position);
  return reduce_to(Op::ADD, where(hit, x, const_like(x, 0)), {{0}, false}, false, t, t);
}

UOp TensorOps::gather(UOp x, UOp index, int64_t axis) {
  if (!x || !index) return {};
  const size_t rank = x.shape().size();
  bool fits = index.shape().size() == rank && rank > 0;
  const auto d = axis_of(x, axis);
  if (!d) return {};
  Ints end = shape_of(x);
  for (size_t i = 0; fits && i < rank; i++) {
    if (i == *d) continue;
    fits = index.shape()[i] <= end[i];
    end[i] = index.shape()[i];
  }
  if (!fits)
    return refuse(fmt::format(
        "an index of shape {} does not fit {}: the same rank, and no larger but along axis {}",
        shape_text(index.shape()), shape_text(x.shape()), axis));
  x = unsqueeze(move_axis(shrink(x, Ints(rank, 0), end), *d, 0), {static_cast<int64_t>(*d) + 1});
  return select(x, index);
}

UOp TensorOps::take(UOp x, UOp index, int64_t axis) {
  if (!x || !index) return {};
  const auto d = axis_of(x, axis);
  if (!d) return {};
  const Ints shape = shape_of(x), places = shape_of(index);
  const auto n = static_cast<std::ptrdiff_t>(*d);
  Ints lead{shape[*d]}, column = places, out(shape.begin(), shape.begin() + n);
  lead.insert(lead.end(), out.begin(), out.end());
  lead.insert(lead.end(), places.size(), 1);
  lead.insert(lead.end(), shape.begin() + n + 1, shape.end());
  column.insert(column.end(), shape.size() - *d - 1, 1);
  out.insert(out.end(), places.begin(), places.end());
  out.insert(out.end(), shape.begin() + n + 1, shape.end());
  if (!sized(out)) return {};
  return select(reshape(move_axis(x, *d, 0), lead), reshape(index, column));
}

UOp TensorOps::embedding(UOp weight, UOp index) {
  if (weight && weight.shape().size() != 2)
    return refuse(
        fmt::format("the weight has shape {}, not [rows, width]", shape_text(weight.shape())));
  return take(weight, index, 0);
}

UOp TensorOps::one_hot(UOp index, int64_t n) {
  if (!index) return {};
  if (n < 0) return refuse(fmt::format("{} classes", n));
  if (!is_int(index.dtype()))
    return refuse(
        fmt::format("the index is {}, not an integer", dtype_name(concrete(index.dtype()))));
  const DType it = index_type(concrete(index.dtype()));
  const UOp position = to(arange(int64_t{0}, n, int64_t{1}), it);
  return to(eq(unsqueeze(to(index, it), {-1}), position), DType::I32);
}

UOp TensorOps::take_joint(UOp x, const std::vector<UOp>& index, size_t axis) {
  if (!x) return {};
  // One position in the indexed dims, or -1 where any index is out of its range.
  UOp joint, inside;
  int64_t n = 1;
  for (size_t i = 0; i < index.size(); i++) {
    UOp at = index[i];
    if (!at) return {};
    if (at.dtype() == DType::Bool)
      return refuse("a mask as an index gives a shape that depends on data");
    if (!is_int(at.dtype()))
      return refuse(
          fmt::format("an index is {}, not an integer", dtype_name(concrete(at.dtype()))));
    const int64_t d = x.shape()[axis + i];
    n *= d;
    at = to(at, DType::I64);
    at = where(lt(at, weak(int64_t{0})), add(at, weak(d)), at);
    const UOp good = bitwise(Op::AND, le(weak(int64_t{0}), at), lt(at, weak(d)));
    inside = i == 0 ? good : bitwise(Op::AND, inside, good);
    joint = i == 0 ? at : add(mul(joint, weak(d)), at);
  }
  Ints shape = shape_of(x);
  shape[axis] = n;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1,
              shape.begin() + static_cast<std::ptrdiff_t>(axis + index.size()));
  return take(reshape(x, shape), where(inside, joint, weak(int64_t{-1})),
              static_cast<int64_t>(axis));
}

UOp TensorOps::rand(const Ints& shape, int64_t seed) {
  if (seed < 0 || seed > dtype_max(DType::U32))
    return refuse(fmt::format("the seed {} is not in 0..{}", seed, dtype_max(DType::U32)));
  if (!sized(shape)) return {};
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0) return refuse(fmt::format("shape {} has a negative dim", shape_text(shape)));
    n *= d;
  }
  const UOp counter = to(arange(int64_t{0}, n, int64_t{1}), DType::U64);
  if (!counter) return {};
  const UOp words = alu(Op::THREEFRY, {counter, iconst(seed, DType::U64)});
  const UOp high = alu(Op::SHR, {to(words, DType::U32), iconst(8, DType::U32)});
  return reshape(mul(to(high, DType::F32), weak(0x1p-24)), shape);
}

}  // namespace beamline
