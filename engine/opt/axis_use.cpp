#include "engine/opt/axis_use.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace beamline {

AxisUse use_of(UOp ast, UOp r, size_t axis, bool reducing) {
  AxisUse a{axis, r, KernelSchedule::size(r)};
  std::vector<UOp> order = toposort(ast), stored;
  UOp step;  // of a product by lanes, whose neighbours are read together
  for (UOp u : order) {
    if (u.op() == Op::STORE) stored.push_back(u.src(0));
    if (u.op() == Op::WMMA && step_of_lanes(ast, u.src(3))) step = u.src(3);
  }
  for (UOp u : order) {
    if (u.op() != Op::INDEX) continue;
    const UOp at = u.src(1).op() == Op::WHERE ? u.src(1).src(1) : u.src(1);
    auto stride = stride_along(at, r);
    if (step && stride == KernelSchedule::size(step) && unit_stride(at, step)) stride = 1;
    if (std::ranges::find(stored, u) != stored.end()) {
      a.unit_store |= stride == 1;
      continue;
    }
    const bool inner = std::ranges::any_of(
        at.ranges(), [](const Node* n) { return UOp(n).axis_type() == AxisType::REDUCE; });
    if (reducing && !inner) continue;
    (stride == 1   ? a.unit_loads
     : stride == 2 ? a.even_loads
     : stride == 0 ? a.constant_loads
                   : a.strided_loads)++;
  }
  return a;
}

int64_t blocks(int64_t size, int64_t amount) { return (size + amount - 1) / amount; }

int64_t balanced(int64_t size, int64_t most) {
  most = std::clamp<int64_t>(most, 1, size);
  return blocks(size, blocks(size, most));
}

int64_t evenly(int64_t count, int64_t most) {
  const int64_t first = balanced(count, most);
  int64_t best = first;
  for (int64_t n = first; n > 0 && n * 2 >= first; n--)
    if (blocks(count, n) * n < blocks(count, best) * best) best = n;
  return best;
}

int64_t lanes_for(int64_t size, int64_t lanes) {
  return size >= lanes ? blocks(size, lanes) * lanes
                       : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
}

int64_t dividing(int64_t size, int64_t most, int64_t lanes) {
  if (most > 0 && size % most == 0) return most;
  for (int64_t k = most / lanes * lanes; k >= lanes; k -= lanes)
    if (size % k == 0) return k;
  int64_t k = std::max<int64_t>(1, std::min(most, size));
  while (size % k != 0) k--;
  return k;
}

bool fuses(const Target& target) {
  return target.instructions.empty() || has_instruction(target.instructions, "fma");
}

Tile best_tile(int64_t columns, int64_t rows, int64_t lanes, bool whole_rows, const Target& target,
               const HeuristicLimits& limits) {
  const auto fits = [&](int64_t size, int64_t amount) {
    return target.masked_tails || size % amount == 0;
  };
  Tile best{lanes_for(columns, lanes), 1, INFINITY};
  if (!target.masked_tails)
    best.width =
        dividing(columns, std::min(best.width, lanes * (target.vector_registers / 2)), lanes);
  const int spare = fuses(target) ? 1 : 2;  // what a row shares, and a product
  for (int64_t v = 1; v <= limits.tile_vectors; v++) {
    const int64_t width = std::min(lanes_for(columns, lanes), v * lanes);
    const int64_t vectors = blocks(width, lanes);
    if (!fits(columns, width)) {
      if (width >= columns) break;
      continue;
    }
    const int64_t most = std::min<int64_t>(width < lanes ? limits.narrow_rows : limits.tile_rows,
                                           (target.vector_registers - vectors - spare) / vectors);
    for (int64_t r = 1; r <= std::min(most, rows); r++) {
      if (!fits(rows, r) || (whole_rows && rows % r != 0)) continue;
      const auto fmas = static_cast<double>(vectors * r), loads = static_cast<double>(vectors + r);
      const double step = std::max(fmas / limits.fma_ports, loads / limits.load_ports) +
                          limits.loop_cost + limits.load_weight * loads;
      const double time = static_cast<double>(blocks(columns, width) * blocks(rows, r)) * step;
      if (time < best.time) best = {width, r, time};
    }
    if (width >= columns) break;
  }
  return best;
}

}  // namespace beamline
