#include "engine/opt/heuristic.h"

#include <algorithm>

namespace beamline {
namespace {

struct AxisUse {
  size_t axis = 0;  // index in the list of its kind
  int64_t size = 0;
  int unit_loads = 0;   // loads that move by one element along it
  int other_loads = 0;  // loads that move otherwise
  int constant_loads = 0;
  bool unit_store = false;
};

AxisUse use_of(UOp ast, UOp r, size_t axis) {
  AxisUse a{axis, KernelSchedule::size(r)};
  std::vector<UOp> order = toposort(ast), stored;
  for (UOp u : order)
    if (u.op() == Op::STORE) stored.push_back(u.src(0));
  for (UOp u : order) {
    if (u.op() != Op::INDEX) continue;
    const UOp at = u.src(1).op() == Op::WHERE ? u.src(1).src(1) : u.src(1);
    const bool unit = unit_stride(at, r);
    if (std::ranges::find(stored, u) != stored.end())
      a.unit_store |= unit;
    else if (unit)
      a.unit_loads++;
    else if (at.has_range(r))
      a.other_loads++;
    else
      a.constant_loads++;
  }
  return a;
}

// The row count that leaves the last block fullest, larger first.
int64_t rows_for(int64_t size, int64_t most) {
  int64_t best = 1;
  double best_waste = 1e9;
  for (int64_t k = std::min(most, size); k >= 2; k--) {
    const auto blocks = static_cast<double>((size + k - 1) / k);
    const double waste = blocks * static_cast<double>(k) / static_cast<double>(size) +
                         0.02 * static_cast<double>(most - k);
    if (waste < best_waste) best = k, best_waste = waste;
  }
  return best;
}

}  // namespace

Opts cpu_heuristic(UOp ast, const Target& target, const HeuristicLimits& limits) {
  KernelSchedule s(ast, target);
  const auto apply = [&](OptKind kind, size_t axis, int64_t amount) {
    return amount > 1 && !s.apply({kind, static_cast<int64_t>(axis), {amount}});
  };
  DType stored = DType::F32;
  for (UOp u : toposort(ast))
    if (u.op() == Op::STORE) stored = u.src(1).dtype();
  const int64_t lanes = target.lanes(stored);
  const std::vector<UOp> all = s.axes();
  std::vector<AxisUse> outputs, reduces;
  for (size_t i = 0; i < all.size(); i++)
    if (all[i].axis_type() == AxisType::WEAK) outputs.push_back(use_of(ast, all[i], i));
  const std::vector<UOp> reduce_axes = s.axes_for(OptKind::UNROLL);
  for (size_t i = 0; i < reduce_axes.size(); i++) reduces.push_back(use_of(ast, reduce_axes[i], i));

  // Lanes along an output axis that is stored contiguously and not read with a stride.
  const AxisUse* lane = nullptr;
  for (const AxisUse& a : outputs)
    if (a.unit_store && (a.unit_loads > 0 || a.other_loads == 0)) lane = &a;
  if (!lane) {
    // Else partial sums along a contiguous reduce axis.
    for (const AxisUse& a : reduces)
      if (a.unit_loads > 0 &&
          apply(OptKind::UNROLL, a.axis, std::min<int64_t>(a.size, lanes * limits.reduce_vectors)))
        break;
    return s.applied();
  }
  const AxisUse* rows = nullptr;  // an axis along which some lane load is reused
  if (!reduces.empty())
    for (const AxisUse& a : outputs)
      if (&a != lane && a.constant_loads > 0 && (!rows || a.size >= rows->size)) rows = &a;
  const int vectors = rows ? limits.lane_vectors : limits.stream_vectors;
  int64_t width = lanes * vectors;
  while (width > lanes && width > lane->size) width -= lanes;
  width = std::min(width, lane->size);
  // Splitting the lane axis first keeps the numbers of the axes before it.
  if (!apply(OptKind::UPCAST, lane->axis, width) || !rows) return s.applied();
  const int64_t row_vectors = (width + lanes - 1) / lanes;
  const int64_t most =
      std::min<int64_t>(limits.max_rows, (target.vector_registers - row_vectors - 1) / row_vectors);
  size_t axis = rows->axis;
  if (width == lane->size && rows->axis > lane->axis)
    axis--;  // the lane loop is gone from the list
  apply(OptKind::UPCAST, axis, rows_for(rows->size, most));
  return s.applied();
}

}  // namespace beamline
