#include "engine/rangeify/movement.h"

#include "engine/base/check.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

UOp both(UOp a, UOp b) { return !a ? b : !b ? a : a & b; }

void add_ranges(UOp u, std::vector<UOp>& out) {
  for (const Node* r : u.ranges()) out.push_back(UOp(r));
}

UOp linear(std::span<const UOp> index, std::span<const int64_t> shape) {
  UOp flat = iconst(0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    flat = flat + index[i] * iconst(stride);
    stride *= shape[i];
  }
  return simplify(flat);
}

// The index of `to` at the same place of memory as `index` of `from`. Dims are taken in the
// smallest groups that hold equally many elements on both sides: only within them is there index
// math.
std::vector<UOp> reshaped(std::span<const UOp> index, std::span<const int64_t> from,
                          std::span<const int64_t> to) {
  std::vector<UOp> out(to.size(), iconst(0));
  for (int64_t n : from)
    if (n == 0) return out;
  size_t i = from.size(), j = to.size();
  while (i > 0 || j > 0) {
    const size_t i_end = i, j_end = j;
    int64_t a = i > 0 ? from[--i] : 1, b = j > 0 ? to[--j] : 1;
    while (a != b) {
      if (a < b && i > 0)
        a *= from[--i];
      else if (j > 0)
        b *= to[--j];
      else
        a *= from[--i];
    }
    if (i_end - i == 1 && j_end - j == 1) {
      out[j] = index[i];
      continue;
    }
    const UOp flat = linear(index.subspan(i, i_end - i), from.subspan(i, i_end - i));
    int64_t stride = 1;
    for (size_t k = j_end; k-- > j;) {
      UOp at = flat;
      if (stride > 1) at = at / iconst(stride);
      if (k > j) at = at % iconst(to[k]);  // the group's first dim has no more than the rest
      out[k] = to[k] == 1 ? iconst(0) : simplify(at);
      stride *= to[k];
    }
  }
  return out;
}

}  // namespace

IndexTuple through_movement(UOp u, const IndexTuple& out, std::vector<UOp>& ended) {
  const UOp src = u.src(0);
  const auto shape = src.shape();
  IndexTuple in{{}, out.valid};
  switch (u.op()) {
    case Op::RESHAPE: in.index = reshaped(out.index, u.shape(), shape); return in;
    case Op::PERMUTE:
      in.index.resize(shape.size());
      for (size_t i = 0; i < shape.size(); i++)
        in.index[static_cast<size_t>(u.ints()[i])] = out.index[i];
      return in;
    case Op::EXPAND: {
      const size_t added = out.index.size() - shape.size();
      for (size_t i = 0; i < added; i++) add_ranges(out.index[i], ended);
      in.index.assign(out.index.begin() + static_cast<std::ptrdiff_t>(added), out.index.end());
      return in;
    }
    case Op::FLIP:
      in.index = out.index;
      for (int64_t a : u.ints()) {
        const auto i = static_cast<size_t>(a);
        in.index[i] = simplify(iconst(shape[i] - 1) + in.index[i] * iconst(-1));
      }
      return in;
    case Op::SHRINK:
      for (size_t i = 0; i < shape.size(); i++)
        in.index.push_back(simplify(out.index[i] + u.src(1).src(i)));
      return in;
    case Op::PAD:
      for (size_t i = 0; i < shape.size(); i++) {
        const UOp at = simplify(out.index[i] - u.src(1).src(i));
        if (at.vmin() < 0) in.valid = both(in.valid, logical_not(at < iconst(0)));
        if (at.vmax() >= shape[i]) in.valid = both(in.valid, at < iconst(shape[i]));
        in.index.push_back(at);
      }
      if (in.valid) in.valid = simplify(in.valid);
      return in;
    default: CHECK(false && "not a movement op"); return in;
  }
}

IndexTuple through_broadcast(UOp operand, const IndexTuple& out, std::vector<UOp>& ended) {
  const auto shape = operand.shape();
  const size_t missing = out.index.size() - shape.size();
  IndexTuple in{{}, out.valid};
  for (size_t i = 0; i < missing; i++) add_ranges(out.index[i], ended);
  for (size_t i = 0; i < shape.size(); i++) {
    const UOp at = out.index[missing + i];
    if (shape[i] == 1 && !at.is_const(0)) {
      add_ranges(at, ended);
      in.index.push_back(iconst(0));
    } else {
      in.index.push_back(at);
    }
  }
  return in;
}

UOp flat_index(const IndexTuple& t, std::span<const int64_t> shape) {
  const UOp flat = linear(t.index, shape);
  return t.valid && !t.valid.is_const(1) ? where(t.valid, flat, invalid()) : flat;
}

}  // namespace beamline
