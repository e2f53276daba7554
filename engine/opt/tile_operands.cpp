// The part of the CPU heuristic that says where the operands of a register tile lie: what they are
// like, and whether they are copied, laid out, or fetched ahead.
#include <algorithm>

#include "engine/opt/cpu_heuristic.h"

namespace beamline {

CpuHeuristic::Operand CpuHeuristic::operand(const AxisUse& lane, const AxisUse& rows) const {
  Operand out;
  for (UOp u : toposort(ast_)) {
    const bool reads = u.op() == Op::INDEX && u.src(0).op() == Op::PARAM;
    if (!reads || !u.src(1).has_range(lane.range) || u.src(1).has_range(rows.range)) continue;
    UOp gate;
    const UOp flat = split_gate(u.src(1), gate);
    const auto moved = stride_along(flat, lane.range);
    Operand o;
    o.slot = u.src(0).param().slot;
    o.constant = u.src(0).param().constant;
    o.bytes = u.src(0).numel() * dtype_bytes(u.dtype());
    o.window = static_cast<bool>(gate);
    int64_t depth = 1;
    bool adjacent = false;
    for (const Node* n : u.src(1).ranges()) {
      const UOp r(n);
      if (r.axis_type() != AxisType::REDUCE && r.axis_type() != AxisType::UNROLL) continue;
      const int64_t steps = KernelSchedule::size(r);
      depth *= steps;
      const auto step = stride_along(flat, r);
      o.window |= step && moved && *step < *moved * lane.size && *moved < *step * steps;
      o.step = depth == steps && step ? *step * dtype_bytes(u.dtype()) : 0;
      adjacent |= step == 1;
    }
    if (depth == 1) continue;
    o.column_bytes = depth * dtype_bytes(u.dtype());
    o.awkward = gate || moved != 1;
    o.apart = !o.window && moved != 1 && adjacent;
    o.every_other = !gate && o.window && moved == 2;
    out = o;
  }
  return out;
}

bool CpuHeuristic::deep_columns(const Operand& o) const {
  return o.column_bytes > 0 && !o.window && !by_lane_ && reduces_.size() == 1 &&
         limits_.pack_bytes > 0;
}

int64_t CpuHeuristic::least_rows(const Operand& o) const {
  if (o.constant) return o.apart ? limits_.dot_rows + 1 : 1;
  return o.apart ? limits_.copied_rows : limits_.pack_rows;
}

bool CpuHeuristic::packable(const Operand& o, const AxisUse& lane) const {
  return o.column_bytes > 0 &&
         o.column_bytes * std::min(lane.size, lanes_ * limits_.tile_vectors) <= limits_.pack_bytes;
}

std::pair<const AxisUse*, int64_t> CpuHeuristic::beside(const AxisUse& lane, const AxisUse& rows,
                                                        const Operand& shared,
                                                        int64_t width) const {
  const AxisUse* next = nullptr;
  for (const AxisUse& a : outputs_)
    if (&a != &lane && &a != &rows && a.constant_loads > 0) next = &a;
  if (!next) return {nullptr, 1};
  int64_t count =
      std::min({next->size, limits_.beside, int64_t{target_.vector_registers - limits_.spare} / 3});
  if (count < 2) return {nullptr, 1};
  while (next->size % count != 0 || shared.column_bytes * width * count > limits_.pack_bytes)
    if (--count <= 1) return {nullptr, 1};
  return {next, count};
}

void CpuHeuristic::pack(const Operand& shared, const AxisUse& lane, const AxisUse& rows,
                        int64_t width) {
  const auto place_operand = [&](int64_t level) {
    if (!shared.constant || schedule_.apply({OptKind::LAYOUT, shared.slot, {}}))
      schedule_.apply({OptKind::PACK, shared.slot, {level}});
  };
  if (!loop_of(rows)) return place_operand(0);
  int64_t inner = -1;
  if (const UOp columns = loop_of(lane)) {
    const int64_t count = KernelSchedule::size(columns);
    const int64_t together = evenly(count, limits_.side_bytes / (shared.column_bytes * width));
    // Blocks side by side are worth it where nothing lies between, and where what the rows read
    // would not stay in the cache from one block to the next.
    // Where the rows lie side by side, the next ones are in the same lines of the cache.
    const Operand read = operand(rows, lane);
    const bool large = read.awkward && read.column_bytes * rows.size > limits_.side_above;
    if (together < count && outputs_.size() == 2 && large) apply(OptKind::TILE, columns, together);
    inner = place(loop_of(lane));
  } else {
    for (UOp r : schedule_.axes()) inner += r.axis_type() == AxisType::WEAK;
  }
  const int64_t at = place(loop_of(rows));
  if (at < inner) schedule_.apply({OptKind::SWAP, at, {inner}});
  place_operand(std::max(at, inner));
}

bool CpuHeuristic::reads_ahead(const Operand& shared, int64_t width) const {
  return !shared.constant && !shared.awkward && !shared.window && width > lanes_ &&
         shared.step % limits_.same_sets != 0 && shared.bytes > limits_.ahead_above &&
         shared.column_bytes * width <= limits_.ahead_bytes;
}

void CpuHeuristic::read_ahead(const Operand& shared, const Operand& across, const AxisUse& lane,
                              const AxisUse& rows, int64_t width) {
  // As many steps an iteration as give each tile of rows one line to fetch.
  const UOp loop = loop_of(rows);
  const int64_t tiles = loop ? KernelSchedule::size(loop) : 1;
  const int64_t lines = blocks(width * shared.column_bytes / reduces_[0].size, line_bytes);
  int64_t steps = 1;
  while (2 * steps * lines <= tiles && steps < limits_.ahead_steps &&
         reduces_[0].size % (2 * steps) == 0)
    steps *= 2;
  move_inside(loop, loop_of(lane));
  apply(OptKind::UNROLL, reduces_[0].range, steps);
  if (across.constant) schedule_.apply({OptKind::LAYOUT, across.slot, {}});
  schedule_.apply({OptKind::PREFETCH, shared.slot, {}});
}

void CpuHeuristic::pack_image(const AxisUse& channels, int64_t slot) {
  int64_t loops = 0;
  for (UOp r : schedule_.axes()) loops += r.axis_type() == AxisType::WEAK;
  for (int64_t level = 0; level < loops; level++) {
    const UOp blocks_of_channels = loop_of(channels);
    if (blocks_of_channels && level > place(blocks_of_channels))
      schedule_.apply({OptKind::SWAP, place(blocks_of_channels), {level}});
    if (!schedule_.apply({OptKind::PACK, slot, {level}})) return;
  }
}

}  // namespace beamline
