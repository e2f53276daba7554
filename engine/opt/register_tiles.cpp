// The part of the CPU heuristic that is for sums of products: register tiles.
#include <algorithm>

#include "engine/opt/cpu_heuristic.h"

namespace beamline {

void CpuHeuristic::register_tile(const AxisUse& lane, const AxisUse& rows) {
  if (streams_tile(lane, rows)) return;
  Operand shared = operand(lane, rows);
  // So long a reduction that no block of columns fits into the cache is summed up in blocks, too.
  const bool deep = !packable(shared, lane) && deep_columns(shared);
  const bool packs = (packable(shared, lane) || deep) && rows.size >= least_rows(shared);
  Tile tile = best_tile(lane.size, rows.size, lanes_, false, target_, limits_);
  // A large operand for few rows is read where it is, as far along as a tile goes.
  const bool few = packs && !by_lane_ && !shared.constant && !shared.awkward &&
                   reduces_.size() == 1 && rows.size < limits_.few_rows &&
                   lane.size >= lanes_ * limits_.tile_vectors &&
                   shared.column_bytes * lane.size > limits_.pack_above;
  if (few) tile = widest_tile(rows.size);
  // What the rows read may lie along the rows: a step of the reduction then goes to another page.
  const Operand across = operand(rows, lane);
  const bool strides = across.column_bytes > 0 && !across.awkward;
  const bool wide =
      !by_lane_ && reduces_.size() == 1 && tile.width >= lanes_ * (limits_.tile_vectors - 1);
  if (strides && blocks(lane.size, tile.width) < limits_.few_blocks && !wide &&
      rows_as_lanes(lane, rows, across))
    return;
  if (!apply(OptKind::UPCAST, lane.range, tile.width)) return;
  if (packs && tile.width >= lane.size && tile.width <= lanes_)
    if (const auto [next, count] = beside(lane, rows, shared, tile.width); count > 1) {
      apply(OptKind::UPCAST, next->range, count);
      tile.rows = std::max<int64_t>(1, (target_.vector_registers - limits_.spare) / count);
    }
  apply(OptKind::UPCAST, rows.range, balanced(rows.size, tile.rows));
  if (packs && !by_lane_ && reads_ahead(shared, tile.width))
    return read_ahead(shared, across, lane, rows, tile.width);
  several_steps();
  bool pays = packs && (by_lane_ || (shared.awkward && !shared.every_other) ||
                        shared.column_bytes * lane.size > limits_.pack_above);
  int64_t parts = 1;
  if (wide && few)
    parts =
        reduce_in_blocks(shared.bytes > limits_.past_caches ? limits_.streams : limits_.near_block);
  else if (packs && deep)
    parts = reduce_in_blocks(limits_.pack_bytes /
                             (shared.column_bytes / reduces_[0].size * tile.width));
  else if (wide && strides && reduces_[0].size > limits_.long_way)
    parts = reduce_in_blocks(limits_.reduce_block);
  if (parts > 1 && few) pays = false;
  if (pays) {
    shared.column_bytes /= parts;
    pack(shared, lane, rows, tile.width);
  } else if (parts > 1) {
    rows_inside(shared.column_bytes / parts, across.column_bytes / parts, lane, rows);
  }
  if (!pays && parts == 1) runs_inside(lane, rows);
  if (!pays && parts == 1 && limits_.rows_inside) move_inside(loop_of(rows), loop_of(lane));
  if (across.constant) schedule_.apply({OptKind::LAYOUT, across.slot, {}});
  if (parts > 1) end_blocks();
}

bool CpuHeuristic::streams_tile(const AxisUse& lane, const AxisUse& rows) {
  const Operand shared = operand(lane, rows), across = operand(rows, lane);
  const int64_t high = target_.vector_registers >= 32 ? 8 : 4;
  if (by_lane_ || outputs_.size() != 2 || reduces_.size() != 1 || across.column_bytes == 0 ||
      across.awkward || shared.awkward || shared.constant || lane.size <= lanes_ ||
      rows.size < 4 * high || reduces_[0].size < 4 * limits_.streams)
    return false;
  const auto vectors = [&](int64_t v) { return blocks(lane.size, v * lanes_) * v; };
  int64_t best = 1;
  for (int64_t v = 2; v <= (target_.vector_registers - 1) / (high + 1); v++)
    if (20 * vectors(v) <= 21 * vectors(best)) best = v;
  const int64_t step = shared.column_bytes / reduces_[0].size * vectors(best) * lanes_;
  const bool near = shared.bytes <= limits_.pack_above &&
                    lane.size * rows.size * dtype_bytes(stored_) <= 2 * limits_.pack_bytes;
  int64_t most = near ? limits_.streams : limits_.near_block;
  while (!near && most * step > limits_.pack_bytes) most /= 2;
  if (most < limits_.streams) return false;
  const KernelSchedule before = schedule_;
  apply(OptKind::UPCAST, lane.range, best * lanes_);
  apply(OptKind::UPCAST, rows.range, high);
  if (reduce_in_blocks(most) == 1) {
    schedule_ = before;
    return false;
  }
  if (!near) schedule_.apply({OptKind::PACK, shared.slot, {1}});
  end_blocks();
  return true;
}

void CpuHeuristic::runs_inside(const AxisUse& lane, const AxisUse& rows) {
  for (UOp u : toposort(ast_)) {
    if (u.op() != Op::INDEX || !u.src(1).has_range(rows.range) || u.src(1).has_range(lane.range))
      continue;
    UOp gate;
    const UOp at = split_gate(u.src(1), gate);
    for (const AxisUse& a : outputs_) {
      const auto step = stride_along(at, a.range), row = stride_along(at, rows.range);
      if (&a != &lane && &a != &rows && step && row && *step > 0 && *step < *row)
        move_inside(loop_of(a), loop_of(rows));
    }
  }
}

Tile CpuHeuristic::widest_tile(int64_t rows) const {
  const int64_t vectors = limits_.tile_vectors;
  Tile tile{lanes_ * vectors, 1};
  int64_t least = rows;
  for (int64_t r = 2; r <= (target_.vector_registers - vectors - 1) / vectors; r++)
    if (const int64_t computed = blocks(rows, r) * r; computed <= least || tile.rows == 1)
      tile.rows = r, least = computed;
  return tile;
}

int64_t CpuHeuristic::reduce_in_blocks(int64_t most) {
  const std::vector<UOp> axes = schedule_.axes();
  const auto loop = std::ranges::find(axes, AxisType::REDUCE, &UOp::axis_type);
  if (loop == axes.end()) return 1;
  const int64_t steps = KernelSchedule::size(*loop), least = blocks(reduces_[0].size, most);
  if (least == 1) return 1;
  int64_t parts = least;
  while (parts <= 2 * least && steps % parts != 0) parts++;
  if (steps % parts != 0) parts = least;
  if (!apply(OptKind::TILE, *loop, blocks(steps, parts))) return 1;
  outer_loops_++;
  return blocks(steps, blocks(steps, parts));
}

void CpuHeuristic::end_blocks() {
  const std::vector<UOp> axes = schedule_.axes();
  const auto loop = std::ranges::find(axes, AxisType::REDUCE, &UOp::axis_type);
  schedule_.apply({OptKind::SKIP, loop - axes.begin(), {}});
  schedule_.apply({OptKind::PREFETCH, 0, {}});
}

void CpuHeuristic::rows_inside(int64_t column_bytes, int64_t row_bytes, const AxisUse& lane,
                               const AxisUse& rows) {
  if (outputs_.size() != 2 || column_bytes * lane.size <= limits_.near_bytes ||
      row_bytes * rows.size * 2 > limits_.pack_bytes)
    return;
  move_inside(loop_of(rows), loop_of(lane));
}

bool CpuHeuristic::over_channels(const AxisUse& pixels) {
  const AxisUse* channels = nullptr;
  Operand weights, image;
  for (const AxisUse& a : outputs_)
    if (&a != &pixels && operand(a, pixels).constant && operand(pixels, a).column_bytes > 0 &&
        (!channels || a.size > channels->size))
      channels = &a, weights = operand(a, pixels), image = operand(pixels, a);
  if (!channels || channels->size < lanes_) return false;
  HeuristicLimits narrow = limits_;
  narrow.tile_vectors = static_cast<int>(std::clamp<int64_t>(
      limits_.pack_bytes / (weights.column_bytes * lanes_), 1, limits_.tile_vectors));
  const Tile tile = best_tile(channels->size, pixels.size, lanes_, image.window, target_, narrow),
             other = best_tile(pixels.size, channels->size, lanes_, false, target_, limits_);
  const auto steps = static_cast<double>(weights.column_bytes / dtype_bytes(stored_));
  const auto vectors = static_cast<double>(blocks(channels->size, lanes_) * pixels.size);
  // Lanes of pixels go through a large image by whole lines; but others than consecutive ones are
  // copied first.
  const Operand by_pixels = operand(pixels, *channels);
  const bool large = image.bytes > limits_.image_above;
  double worth = other.time;
  if (by_pixels.awkward)
    worth *= 1 + limits_.copy_cost / static_cast<double>(channels->size);
  else if (large && reads_ahead(by_pixels, other.width))
    worth /= limits_.by_lines;
  if (tile.time + vectors * limits_.transpose_cost / steps >= worth ||
      !apply(OptKind::UPCAST, channels->range, tile.width))
    return false;
  apply(OptKind::UPCAST, pixels.range, balanced(pixels.size, tile.rows));
  if (tile.rows >= pixels.size && skip_padding(pixels, blocks(tile.width, lanes_))) {
    schedule_.apply({OptKind::LAYOUT, weights.slot, {}});
    return true;
  }
  const bool again = large && channels->size > tile.width, ahead = again && !image.awkward;
  if (ahead)
    move_inside(loop_of(*channels), loop_of(pixels));
  else if (image.window || again)
    pack_image(*channels, image.slot);
  schedule_.apply({OptKind::LAYOUT, weights.slot, {}});
  if (ahead) schedule_.apply({OptKind::PREFETCH, image.slot, {}});
  return true;
}

bool CpuHeuristic::skip_padding(const AxisUse& pixels, int64_t vectors) {
  const KernelSchedule before = schedule_;
  for (const AxisUse& r : reduces_) {
    const bool gated = std::ranges::any_of(toposort(ast_), [&](UOp u) {
      return u.op() == Op::CMPLT && u.has_range(r.range) && u.has_range(pixels.range);
    });
    if (gated && vectors * (pixels.size + r.size) < target_.vector_registers)
      apply(OptKind::UNROLL, r.range, r.size);
  }
  int axes = 0;
  for (size_t i = 0; i < schedule_.axes().size(); i++) {
    const UOp r = schedule_.axes()[i];
    if (!schedule_.apply({OptKind::SKIP, static_cast<int64_t>(i), {}}))
      axes += r.axis_type() == AxisType::UNROLL;
  }
  if (axes == 0) schedule_ = before;
  return axes > 0;
}

void CpuHeuristic::several_steps() {
  if (!fuses(target_)) return;  // the products of all steps would wait in registers
  int64_t held = 1;
  for (UOp r : schedule_.axes())
    if (r.axis_type() == AxisType::UPCAST) held *= KernelSchedule::size(r);
  // Half of the registers, and of few ones less, are for what the steps read.
  const int64_t most = lanes_ * target_.vector_registers / 2;
  if (held > most || (held == most && target_.vector_registers < 32)) return;
  const AxisUse* steps = nullptr;
  for (const AxisUse& r : reduces_)
    if (r.size % limits_.unroll == 0 && (!steps || r.unit_loads > steps->unit_loads)) steps = &r;
  if (steps) apply(OptKind::UNROLL, steps->range, limits_.unroll);
}

bool CpuHeuristic::rows_as_lanes(const AxisUse& columns, const AxisUse& rows,
                                 const Operand& across) {
  Tile tile = best_tile(rows.size, std::min(columns.size, limits_.scattered), lanes_, false,
                        target_, limits_);
  tile.width = std::min(tile.width, limits_.pack_bytes / across.column_bytes / lanes_ * lanes_);
  if (tile.width < lanes_ || rows.size <= tile.width ||
      !apply(OptKind::UPCAST, rows.range, tile.width))
    return false;
  apply(OptKind::UPCAST, columns.range, balanced(columns.size, tile.rows));
  several_steps();
  if (const UOp row_loop = loop_of(rows))
    schedule_.apply({OptKind::PACK, across.slot, {place(row_loop) + 1}});
  return true;
}

}  // namespace beamline
