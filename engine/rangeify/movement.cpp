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

}  // namespace

IndexTuple through_movement(UOp u, const IndexTuple& out, std::vector<UOp>& ended) {
  const UOp src = u.src(0);
  const auto shape = src.shape();
  IndexTuple in{{}, out.valid};
  switch (u.op()) {
    case Op::RESHAPE: {
      const UOp flat = linear(out.index, u.shape());
      int64_t stride = 1;
      in.index.resize(shape.size());
      for (size_t i = shape.size(); i-- > 0;) {
        in.index[i] =
            shape[i] == 1 ? iconst(0) : simplify((flat / iconst(stride)) % iconst(shape[i]));
        stride *= shape[i];
      }
      return in;
    }
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
