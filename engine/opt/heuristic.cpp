#include "engine/opt/heuristic.h"

#include <algorithm>

#include "engine/ir/tensor_core.h"
#include "engine/opt/cpu_heuristic.h"
#include "engine/rangeify/ranges.h"

namespace beamline {

CpuHeuristic::CpuHeuristic(UOp ast, const Target& target, const HeuristicLimits& limits)
    : ast_(ast), schedule_(ast, target), target_(target), limits_(limits) {
  const std::vector<UOp> order = toposort(ast);
  for (UOp r : schedule_.axes())
    over_rows_ |= r.axis_type() == AxisType::WEAK && would_repeat_reduction(order, r);
  multiply_by_lane();
  ast = ast_ = schedule_.ast();
  lanes_ = target.vector_bytes;
  for (UOp u : toposort(ast)) {
    if (u.op() == Op::STORE) stored_ = u.src(1).dtype();
    // What is summed is held in vectors of its own type.
    if (u.op() == Op::STORE || u.op() == Op::REDUCE || u.op() == Op::WMMA)
      lanes_ = std::min<int64_t>(lanes_,
                                 target.lanes(u.op() == Op::STORE ? u.src(1).dtype() : u.dtype()));
  }
  const std::vector<UOp> all = schedule_.axes(), inner = schedule_.axes_for(OptKind::UNROLL);
  for (size_t i = 0; i < all.size(); i++)
    if (all[i].axis_type() == AxisType::WEAK)
      outputs_.push_back(use_of(ast, all[i], i, !inner.empty()));
  for (size_t i = 0; i < inner.size(); i++) reduces_.push_back(use_of(ast, inner[i], i, true));
}

Opts CpuHeuristic::run() {
  if (over_rows_) {
    along_rows();
    return schedule_.applied();
  }
  // Lanes along an output axis that is stored contiguously and not read with a stride; or is once
  // what is read so has been packed, if no long reduction offers lanes or enough rows read it.
  const AxisUse* lane = nullptr;
  for (const AxisUse& a : outputs_)
    if (a.unit_store && a.strided_loads == 0) lane = &a;
  const bool dot = std::ranges::any_of(
      reduces_, [&](const AxisUse& r) { return r.unit_loads > 0 && r.size >= lanes_; });
  for (const AxisUse& a : outputs_) {
    if (lane || !a.unit_store) continue;
    const AxisUse* rows = reused(&a);
    if (!rows) continue;
    const Operand columns = operand(a, *rows);
    const bool fits = packable(columns, a) || (dot && deep_columns(columns));
    if (fits && (!dot || rows->size >= least_rows(columns))) lane = &a;
  }
  if (lane && !by_lane_ && over_channels(*lane)) return schedule_.applied();
  if (lane)
    along_outputs(*lane);
  else if (reduces_.empty())
    across();
  else
    along_reduction();
  return schedule_.applied();
}

void CpuHeuristic::multiply_by_lane() {
  const auto cores = static_cast<int64_t>(tensor_cores(target_).size());
  if (target_.tensor_cores == TensorCoreUse::Off || over_rows_) return;
  const auto choices = static_cast<int64_t>(schedule_.axes_for(OptKind::UNROLL).size());
  const UOp before = schedule_.ast();
  for (int64_t core = 0; core < cores; core++)
    for (int64_t choice = 0; choice < choices; choice++) {
      KernelSchedule trial = schedule_;
      if (trial.apply({OptKind::TC, choice, {core, 1, static_cast<int64_t>(target_.tensor_cores)}}))
        continue;
      if (sums(trial.ast()) > sums(before) && !has_rows()) continue;
      schedule_ = trial;
      by_lane_ = true;
      return;
    }
}

std::ptrdiff_t CpuHeuristic::sums(UOp ast) {
  return std::ranges::count(toposort(ast), Op::REDUCE, &UOp::op);
}

bool CpuHeuristic::has_rows() const {
  const std::vector<UOp> all = schedule_.axes();
  return std::ranges::count_if(all, [&](UOp r) {
           return r.axis_type() == AxisType::WEAK && KernelSchedule::size(r) >= limits_.moved_rows;
         }) > 1;
}

bool CpuHeuristic::apply(OptKind kind, UOp range, int64_t amount) {
  const std::vector<UOp> list = schedule_.axes_for(kind);
  const auto at = std::ranges::find(list, range);
  if (!target_.masked_tails && kind != OptKind::TILE)
    amount = dividing(KernelSchedule::size(range), amount, lanes_);
  return amount > 1 && at != list.end() && !schedule_.apply({kind, at - list.begin(), {amount}});
}

const AxisUse* CpuHeuristic::reused(const AxisUse* lane) const {
  const AxisUse* best = nullptr;
  const auto rank = [&](const AxisUse& a) {
    return std::pair(lane && operand(*lane, a).column_bytes > 0, a.size);
  };
  for (const AxisUse& a : outputs_)
    if (&a != lane && a.constant_loads > 0 && (!best || rank(a) >= rank(*best))) best = &a;
  return best;
}

void CpuHeuristic::along_outputs(const AxisUse& lane) {
  const AxisUse* rows = reduces_.empty() ? nullptr : reused(&lane);
  if (!rows) {
    const bool window = only_windows();
    const int vectors = reduces_.empty() ? limits_.stream_vectors
                        : window         ? limits_.window_vectors
                                         : column_vectors(lane);
    if (!window && lane.size > lanes_ * vectors && whole_rows(lane)) return;
    apply(OptKind::UPCAST, lane.range, std::min(lanes_for(lane.size, lanes_), lanes_ * vectors));
    if (reduces_.empty() && stored_bytes() >= limits_.stream_above &&
        lane.size % (lanes_ * vectors) == 0)
      schedule_.apply({OptKind::STREAM, 0, {}});
    // A window is written out.
    for (const AxisUse& r : reduces_)
      if (r.size <= limits_.window) apply(OptKind::UNROLL, r.range, r.size);
    return;
  }
  if (!window_tile(lane, *rows)) register_tile(lane, *rows);
}

bool CpuHeuristic::only_windows() const {
  return std::ranges::all_of(reduces_, [&](const AxisUse& r) { return r.size <= limits_.window; });
}

bool CpuHeuristic::window_tile(const AxisUse& lane, const AxisUse& rows) {
  if (!only_windows() || operand(lane, rows).column_bytes > 0 ||
      operand(rows, lane).column_bytes > 0)
    return false;
  const int64_t vectors = std::min(blocks(lane.size, lanes_), limits_.window_width);
  apply(OptKind::UPCAST, lane.range, std::min(lanes_for(lane.size, lanes_), vectors * lanes_));
  apply(OptKind::UPCAST, rows.range,
        balanced(rows.size, (target_.vector_registers / 2 - 2) / vectors));
  for (const AxisUse& r : reduces_) apply(OptKind::UNROLL, r.range, r.size);
  return true;
}

bool CpuHeuristic::whole_rows(const AxisUse& lane) {
  if (reduces_.size() != 1) return false;
  const int64_t rows = dividing(reduces_[0].size, limits_.rows_at_once, 1);
  if (rows < 2 || rows == reduces_[0].size || !apply(OptKind::TILE, reduces_[0].range, rows))
    return false;
  outer_loops_++;
  // The loop over blocks is outermost; only that over the columns need lie inside.
  for (int64_t at = 0; at + 1 < place(loop_of(lane)); at++)
    schedule_.apply({OptKind::SWAP, at, {at + 1}});
  apply(OptKind::UPCAST, loop_of(lane), lanes_ * limits_.window_vectors);
  for (UOp r : schedule_.axes_for(OptKind::UNROLL))
    if (r.axis_type() == AxisType::REDUCE) apply(OptKind::UNROLL, r, rows);
  return true;
}

void CpuHeuristic::along_rows() {
  for (const AxisUse& a : outputs_)
    if (a.unit_store && a.unit_loads > 0 && a.strided_loads == 0 &&
        !std::ranges::any_of(reduces_, [](const AxisUse& r) { return r.unit_loads > 0; })) {
      apply(OptKind::UPCAST, a.range, lanes_for(std::min(a.size, lanes_ * 2), lanes_));
      return;
    }
  for (const AxisUse& a : outputs_)
    if (a.unit_store)
      apply(OptKind::UPCAST, a.range,
            std::min(lanes_for(a.size, lanes_), lanes_ * limits_.stream_vectors));
  for (UOp r : schedule_.axes())
    if (r.axis_type() == AxisType::LOOP)
      apply(OptKind::UPCAST, r,
            std::min(lanes_for(KernelSchedule::size(r), lanes_), lanes_ * limits_.stream_vectors));
  for (const AxisUse& r : reduces_)
    if (r.unit_loads > 0)
      apply(OptKind::UNROLL, r.range, std::min(r.size, lanes_ * limits_.reduce_vectors));
  if (stored_bytes() >= limits_.stream_above) schedule_.apply({OptKind::STREAM, 0, {}});
}

int CpuHeuristic::column_vectors(const AxisUse& lane) const {
  const int most = target_.vector_registers / 2 / std::max(1, lane.unit_loads);
  return std::min(limits_.column_vectors, most) *
         std::max(1, target_.lanes(stored_) / static_cast<int>(lanes_));
}

int64_t CpuHeuristic::stored_bytes() const {
  int64_t bytes = dtype_bytes(stored_);
  for (const AxisUse& a : outputs_) bytes *= a.size;
  return bytes;
}

int64_t CpuHeuristic::place(UOp r) const {
  const std::vector<UOp> axes = schedule_.axes();
  return std::ranges::find(axes, r) - axes.begin();
}

UOp CpuHeuristic::loop_of(const AxisUse& a) const {
  for (UOp r : schedule_.axes())
    if (r.axis_type() == AxisType::WEAK && r.range_id() == a.range.range_id() + outer_loops_)
      return r;
  return {};
}

void CpuHeuristic::move_inside(UOp loop, UOp other) {
  if (loop && other && place(loop) < place(other))
    schedule_.apply({OptKind::SWAP, place(loop), {place(other)}});
}

void CpuHeuristic::across() {
  const AxisUse* stored = nullptr;
  const AxisUse* read = nullptr;
  for (const AxisUse& a : outputs_) {
    if (a.unit_store) stored = &a;
    if (a.unit_loads > 0 && !a.unit_store) read = &a;
  }
  if (!stored || !read || !apply(OptKind::UPCAST, stored->range, std::min(stored->size, lanes_)))
    return;
  const int64_t pair = 2 * lanes_;
  apply(OptKind::UPCAST, read->range, read->size % pair == 0 ? pair : std::min(read->size, lanes_));
  const UOp blocks_read = loop_of(*read), blocks_stored = loop_of(*stored);
  if (!blocks_read || !blocks_stored) return;
  if (stored_bytes() >= limits_.stream_transposed)
    schedule_.apply({OptKind::STREAM, 0, {}});
  else if (KernelSchedule::size(blocks_stored) < 2 * limits_.blocks_across ||
           !apply(OptKind::TILE, blocks_stored, limits_.blocks_across))
    return;
  move_inside(blocks_read, loop_of(*stored));
}

void CpuHeuristic::along_reduction() {
  for (const AxisUse& r : reduces_) {
    if (r.unit_loads == 0) continue;
    const AxisUse* rows = reused(nullptr);
    const AxisUse* columns = nullptr;
    for (const AxisUse& a : outputs_)
      if (&a != rows && a.constant_loads > 0) columns = &a;
    const int64_t vectors = columns ? 1 : rows ? 2 : limits_.reduce_vectors;
    if (!apply(OptKind::UNROLL, r.range, std::min(r.size, lanes_ * vectors))) continue;
    // Sums, an operand of each row and one of a column at a time.
    const int64_t most = limits_.dot_rows, fewer = (target_.vector_registers - 1) / (most + 1);
    for (const AxisUse* a : {rows, columns})
      if (a)
        apply(OptKind::UPCAST, a->range,
              balanced(a->size,
                       columns && a->unit_store ? std::clamp<int64_t>(fewer, 1, most) : most));
    return;
  }
}

Opts heuristic(UOp ast, const Target& target) {
  return target.has_local ? group_heuristic(ast, target) : cpu_heuristic(ast, target);
}
Opts cpu_heuristic(UOp ast, const Target& target, const HeuristicLimits& limits) {
  return CpuHeuristic(ast, target, limits).run();
}

std::vector<Opts> heuristic_variants(UOp ast, const Target& target) {
  if (target.has_local) return {};
  constexpr double always = -1e6, never = 1e6;  // cycles of a transposed vector
  using Change = void (*)(HeuristicLimits&);
  // What operands lie where, and what the lanes are, times how many vectors a tile has.
  constexpr Change places[] = {
      [](HeuristicLimits&) {},
      [](HeuristicLimits& l) { l.transpose_cost = never; },
      [](HeuristicLimits& l) { l.transpose_cost = never, l.pack_above = 0, l.pack_rows = 2; },
      [](HeuristicLimits& l) { l.transpose_cost = never, l.pack_above = l.side_above = 0; },
      [](HeuristicLimits& l) { l.transpose_cost = never, l.pack_bytes = 0; },
      [](HeuristicLimits& l) { l.transpose_cost = never, l.pack_bytes = 0, l.rows_inside = true; },
      [](HeuristicLimits& l) { l.transpose_cost = always, l.image_above = 0; },
      [](HeuristicLimits& l) { l.transpose_cost = always, l.image_above = INT64_MAX; },
      [](HeuristicLimits& l) { l.pack_bytes *= 2, l.side_bytes *= 4; },
      [](HeuristicLimits& l) { l.ahead_bytes = 0; },
      [](HeuristicLimits& l) { l.transpose_cost = never, l.ahead_bytes *= 8, l.ahead_above = 0; },
      [](HeuristicLimits& l) { l.few_rows = 0, l.long_way = INT64_MAX, l.streams = INT32_MAX; },
      [](HeuristicLimits& l) { l.streams = INT32_MAX; },
      [](HeuristicLimits& l) { l.narrow_rows = 24, l.streams = l.near_block; },
      [](HeuristicLimits& l) { l.stream_above = l.stream_transposed = 0; },
      [](HeuristicLimits& l) { l.stream_above = l.stream_transposed = INT64_MAX; },
  };
  std::vector<Opts> all{cpu_heuristic(ast, target)};
  for (const int vectors : {HeuristicLimits{}.tile_vectors, 3, 2})
    for (const Change change : places) {
      HeuristicLimits limits;
      limits.tile_vectors = vectors;
      change(limits);
      Opts opts = cpu_heuristic(ast, target, limits);
      if (std::ranges::find(all, opts) == all.end()) all.push_back(std::move(opts));
    }
  all.erase(all.begin());
  return all;
}

}  // namespace beamline
