#include "engine/opt/heuristic.h"

#include <algorithm>

#include "engine/ir/tensor_core.h"
#include "engine/opt/axis_use.h"
#include "engine/rangeify/ranges.h"

namespace beamline {
namespace {

class Heuristic {
 public:
  Heuristic(UOp ast, const Target& target, const HeuristicLimits& limits)
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
        lanes_ = std::min<int64_t>(
            lanes_, target.lanes(u.op() == Op::STORE ? u.src(1).dtype() : u.dtype()));
    }
    const std::vector<UOp> all = schedule_.axes(), inner = schedule_.axes_for(OptKind::UNROLL);
    for (size_t i = 0; i < all.size(); i++)
      if (all[i].axis_type() == AxisType::WEAK)
        outputs_.push_back(use_of(ast, all[i], i, !inner.empty()));
    for (size_t i = 0; i < inner.size(); i++) reduces_.push_back(use_of(ast, inner[i], i, true));
  }

  Opts run() {
    if (over_rows_) {
      along_rows();
      return schedule_.applied();
    }
    // Lanes along an output axis that is stored contiguously and not read with a stride; or is once
    // what is read so has been packed, if no long reduction offers lanes.
    const AxisUse* lane = nullptr;
    for (const AxisUse& a : outputs_)
      if (a.unit_store && a.strided_loads == 0) lane = &a;
    const bool dot = std::ranges::any_of(
        reduces_, [&](const AxisUse& r) { return r.unit_loads > 0 && r.size >= lanes_; });
    for (const AxisUse& a : outputs_)
      if (!lane && !dot && a.unit_store && reused(&a) && packable(operand(a, *reused(&a)), a)) {
        lane = &a;
        break;
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

 private:
  // What the lanes read and the rows share.
  struct Operand {
    int64_t slot = 0;
    int64_t column_bytes = 0;  // over the whole reduction; 0 = there is none
    bool awkward = false;      // read under a gate or with a stride
    bool constant = false;
    bool window = false;  // gated, or the same elements are read by several steps of the reduction
  };

  // Products of types that the processor has an instruction for.
  void multiply_by_lane() {
    const auto cores = static_cast<int64_t>(tensor_cores(target_).size());
    if (target_.tensor_cores == TensorCoreUse::Off || over_rows_) return;
    const auto choices = static_cast<int64_t>(schedule_.axes_for(OptKind::UNROLL).size());
    const UOp before = schedule_.ast();
    for (int64_t core = 0; core < cores; core++)
      for (int64_t choice = 0; choice < choices; choice++) {
        KernelSchedule trial = schedule_;
        if (trial.apply(
                {OptKind::TC, choice, {core, 1, static_cast<int64_t>(target_.tensor_cores)}}))
          continue;
        if (sums(trial.ast()) > sums(before) && !has_rows()) continue;
        schedule_ = trial;
        by_lane_ = true;
        return;
      }
  }
  // A second sum, of one factor alone, is worth it for many rows.
  static std::ptrdiff_t sums(UOp ast) {
    return std::ranges::count(toposort(ast), Op::REDUCE, &UOp::op);
  }
  bool has_rows() const {
    const std::vector<UOp> all = schedule_.axes();
    return std::ranges::count_if(all, [&](UOp r) {
             return r.axis_type() == AxisType::WEAK &&
                    KernelSchedule::size(r) >= limits_.moved_rows;
           }) > 1;
  }
  bool apply(OptKind kind, UOp range, int64_t amount) {
    const std::vector<UOp> list = schedule_.axes_for(kind);
    const auto at = std::ranges::find(list, range);
    if (!target_.masked_tails && kind != OptKind::TILE)
      amount = dividing(KernelSchedule::size(range), amount, lanes_);
    return amount > 1 && at != list.end() && !schedule_.apply({kind, at - list.begin(), {amount}});
  }
  // The largest output axis, other than `lane`, along which some load is used again; with lanes,
  // best one of theirs.
  const AxisUse* reused(const AxisUse* lane) const {
    const AxisUse* best = nullptr;
    const auto rank = [&](const AxisUse& a) {
      return std::pair(lane && operand(*lane, a).column_bytes > 0, a.size);
    };
    for (const AxisUse& a : outputs_)
      if (&a != lane && a.constant_loads > 0 && (!best || rank(a) >= rank(*best))) best = &a;
    return best;
  }

  void along_outputs(const AxisUse& lane) {
    const AxisUse* rows = reduces_.empty() ? nullptr : reused(&lane);
    if (!rows) {
      const bool window =
          std::ranges::all_of(reduces_, [&](const AxisUse& r) { return r.size <= limits_.window; });
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
    Operand shared = operand(lane, *rows);
    const bool packs =
        packable(shared, lane) && (shared.constant || rows->size >= limits_.pack_rows);
    Tile tile = best_tile(lane.size, rows->size, lanes_, {.masked = !packs}, target_, limits_);
    // What the rows read may lie along the rows: a step of the reduction then goes to another page.
    const Operand across = operand(*rows, lane);
    const bool strides = across.column_bytes > 0 && !across.awkward;
    const bool wide =
        !by_lane_ && reduces_.size() == 1 && tile.width >= lanes_ * (limits_.tile_vectors - 1);
    if (strides && blocks(lane.size, tile.width) < limits_.few_blocks && !wide &&
        rows_as_lanes(lane, *rows, across))
      return;
    if (!apply(OptKind::UPCAST, lane.range, tile.width)) return;
    if (packs && tile.width >= lane.size && tile.width <= lanes_)
      if (const auto [next, count] = beside(lane, *rows, shared, tile.width); count > 1) {
        apply(OptKind::UPCAST, next->range, count);
        tile.rows = std::max<int64_t>(1, (target_.vector_registers - limits_.spare) / count);
      }
    apply(OptKind::UPCAST, rows->range, balanced(rows->size, tile.rows));
    several_steps();
    bool pays = packs && (by_lane_ || lane.size % tile.width != 0 || shared.awkward ||
                          shared.column_bytes * lane.size > limits_.pack_above);
    const bool few = pays && rows->size < limits_.few_rows &&
                     shared.column_bytes * lane.size <= limits_.few_bytes;
    int64_t parts = 1;
    if (wide && (few || (strides && reduces_[0].size > limits_.long_way)))
      parts = reduce_in_blocks(limits_.reduce_block);
    if (parts > 1 && few) pays = false;
    if (pays) {
      shared.column_bytes /= parts;
      pack(shared, lane, *rows, tile.width);
    } else if (parts > 1) {
      rows_inside(shared.column_bytes / parts, across.column_bytes / parts, lane, *rows);
    }
    if (parts > 1) schedule_.apply({OptKind::PREFETCH, 0, {}});
  }

  // A register tile passes over `most` steps at a time, if they divide: what its rows read, and
  // what its columns do, then is still in the inner caches for the next tile. Returns the number
  // of blocks.
  int64_t reduce_in_blocks(int64_t most) {
    const std::vector<UOp> axes = schedule_.axes();
    const auto loop = std::ranges::find(axes, AxisType::REDUCE, &UOp::axis_type);
    if (loop == axes.end()) return 1;
    const int64_t steps = KernelSchedule::size(*loop), least = blocks(reduces_[0].size, most);
    for (int64_t parts = least; least > 1 && parts <= 2 * least; parts++)
      if (steps % parts == 0 && apply(OptKind::TILE, *loop, steps / parts)) {
        outer_loops_++;
        return parts;
      }
    return 1;
  }
  // Where not all columns of a block of the reduction stay in the cache, but all rows do.
  void rows_inside(int64_t column_bytes, int64_t row_bytes, const AxisUse& lane,
                   const AxisUse& rows) {
    const UOp columns = loop_of(lane), row_loop = loop_of(rows);
    if (!columns || !row_loop || outputs_.size() != 2 ||
        column_bytes * lane.size * 2 <= limits_.pack_bytes ||
        row_bytes * rows.size * 2 > limits_.pack_bytes)
      return;
    const int64_t at = place(row_loop), inner = place(columns);
    if (at < inner) schedule_.apply({OptKind::SWAP, at, {inner}});
  }

  // Columns are summed up a few rows at a time: each is read from end to end, and the sums so far
  // stay in a cache.
  bool whole_rows(const AxisUse& lane) {
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

  // A constant operand (weights) moves along channels, and not along the pixels, which are stored
  // side by side: laid out ahead of time it is as good for lanes, and no lane is left empty at the
  // end of a row of pixels. The results are transposed in registers, once for a whole reduction.
  bool over_channels(const AxisUse& pixels) {
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
    const Tile tile = best_tile(channels->size, pixels.size, lanes_, {.whole_rows = image.window},
                                target_, narrow),
               other = best_tile(pixels.size, channels->size, lanes_, {.masked = true}, target_,
                                 limits_);
    const auto steps = static_cast<double>(weights.column_bytes / dtype_bytes(stored_));
    const auto vectors = static_cast<double>(blocks(channels->size, lanes_) * pixels.size);
    if (tile.time + vectors * limits_.transpose_cost / steps >= other.time ||
        !apply(OptKind::UPCAST, channels->range, tile.width))
      return false;
    apply(OptKind::UPCAST, pixels.range, balanced(pixels.size, tile.rows));
    if (image.window) pack_image(*channels, image.slot);
    schedule_.apply({OptKind::LAYOUT, weights.slot, {}});
    return true;
  }
  // Its edges are padded in a copy, as far out as there is room for it; then all channels pass over
  // one copy.
  void pack_image(const AxisUse& channels, int64_t slot) {
    int64_t loops = 0;
    for (UOp r : schedule_.axes()) loops += r.axis_type() == AxisType::WEAK;
    for (int64_t level = 0; level < loops; level++) {
      const UOp blocks_of_channels = loop_of(channels);
      if (blocks_of_channels && level > place(blocks_of_channels))
        schedule_.apply({OptKind::SWAP, place(blocks_of_channels), {level}});
      if (!schedule_.apply({OptKind::PACK, slot, {level}})) return;
    }
  }

  // Each loop over the row gets lanes of its own where it moves by one element; where rows lie side
  // by side, they are the lanes of all.
  void along_rows() {
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
        apply(
            OptKind::UPCAST, r,
            std::min(lanes_for(KernelSchedule::size(r), lanes_), lanes_ * limits_.stream_vectors));
    for (const AxisUse& r : reduces_)
      if (r.unit_loads > 0)
        apply(OptKind::UNROLL, r.range, std::min(r.size, lanes_ * limits_.reduce_vectors));
    if (stored_bytes() >= limits_.stream_above) schedule_.apply({OptKind::STREAM, 0, {}});
  }

  // Several steps an iteration of a small tile, if possible along the axis that a load is
  // contiguous on.
  void several_steps() {
    if (!fuses(target_)) return;  // the products of all steps would wait in registers
    int64_t held = 1;
    for (UOp r : schedule_.axes())
      if (r.axis_type() == AxisType::UPCAST) held *= KernelSchedule::size(r);
    if (held >= lanes_ * target_.vector_registers / 2) return;
    const AxisUse* steps = nullptr;
    for (const AxisUse& r : reduces_)
      if (r.size % limits_.unroll == 0 && (!steps || r.unit_loads > steps->unit_loads)) steps = &r;
    if (steps) apply(OptKind::UNROLL, steps->range, limits_.unroll);
  }

  // Few columns, and rows whose operand lies along them: the rows become the lanes, their operand
  // is packed a block at a time, and the results, few a block, are scattered.
  bool rows_as_lanes(const AxisUse& columns, const AxisUse& rows, const Operand& across) {
    Tile tile = best_tile(rows.size, std::min(columns.size, limits_.scattered), lanes_, {}, target_,
                          limits_);
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

  // Long reads count: what is stored in few bytes is read as far as if it were not summed in more.
  int column_vectors(const AxisUse& lane) const {
    const int most = target_.vector_registers / 2 / std::max(1, lane.unit_loads);
    return std::min(limits_.column_vectors, most) *
           std::max(1, target_.lanes(stored_) / static_cast<int>(lanes_));
  }
  int64_t stored_bytes() const {
    int64_t bytes = dtype_bytes(stored_);
    for (const AxisUse& a : outputs_) bytes *= a.size;
    return bytes;
  }
  int64_t place(UOp r) const {
    const std::vector<UOp> axes = schedule_.axes();
    return std::ranges::find(axes, r) - axes.begin();
  }
  // The loop that is left of an output axis after splits; null when nothing is.
  UOp loop_of(const AxisUse& a) const {
    for (UOp r : schedule_.axes())
      if (r.axis_type() == AxisType::WEAK && r.range_id() == a.range.range_id() + outer_loops_)
        return r;
    return {};
  }
  Operand operand(const AxisUse& lane, const AxisUse& rows) const {
    Operand out;
    for (UOp u : toposort(ast_)) {
      const bool reads = u.op() == Op::INDEX && u.src(0).op() == Op::PARAM;
      if (!reads || !u.src(1).has_range(lane.range) || u.src(1).has_range(rows.range)) continue;
      UOp gate;
      const UOp flat = split_gate(u.src(1), gate);
      const bool gated = static_cast<bool>(gate);
      bool window = gated;
      int64_t depth = 1;
      for (const Node* n : u.src(1).ranges()) {
        const UOp r(n);
        if (r.axis_type() != AxisType::REDUCE && r.axis_type() != AxisType::UNROLL) continue;
        const int64_t steps = KernelSchedule::size(r);
        depth *= steps;
        const auto step = stride_along(flat, r), moved = stride_along(flat, lane.range);
        window |= step && moved && *step < *moved * lane.size && *moved < *step * steps;
      }
      if (depth > 1)
        out = {u.src(0).param().slot, depth * dtype_bytes(u.dtype()),
               gated || !unit_stride(u.src(1), lane.range), u.src(0).param().constant, window};
    }
    return out;
  }
  bool packable(const Operand& o, const AxisUse& lane) const {
    return o.column_bytes > 0 &&
           o.column_bytes * std::min(lane.size, lanes_ * limits_.tile_vectors) <=
               limits_.pack_bytes;
  }
  // Where one vector holds the whole lane axis: the next axis along which the shared operand moves,
  // and how many of its steps lie side by side, without a rest. What the rows read is then read
  // that much less often.
  std::pair<const AxisUse*, int64_t> beside(const AxisUse& lane, const AxisUse& rows,
                                            const Operand& shared, int64_t width) const {
    const AxisUse* next = nullptr;
    for (const AxisUse& a : outputs_)
      if (&a != &lane && &a != &rows && a.constant_loads > 0) next = &a;
    if (!next) return {nullptr, 1};
    int64_t count = std::min(
        {next->size, limits_.beside, int64_t{target_.vector_registers - limits_.spare} / 3});
    if (count < 2) return {nullptr, 1};
    while (next->size % count != 0 || shared.column_bytes * width * count > limits_.pack_bytes)
      if (--count <= 1) return {nullptr, 1};
    return {next, count};
  }
  // Blocks of its columns are copied together; then all rows pass over one block: their loop goes
  // inside of those that the operand depends on.
  void pack(const Operand& shared, const AxisUse& lane, const AxisUse& rows, int64_t width) {
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
      const bool large = operand(rows, lane).column_bytes * rows.size > limits_.pack_bytes;
      if (together < count && outputs_.size() == 2 && large)
        apply(OptKind::TILE, columns, together);
      inner = place(loop_of(lane));
    } else {
      for (UOp r : schedule_.axes()) inner += r.axis_type() == AxisType::WEAK;
    }
    const int64_t at = place(loop_of(rows));
    if (at < inner) schedule_.apply({OptKind::SWAP, at, {inner}});
    place_operand(std::max(at, inner));
  }

  // Stored along one axis, read along another: square blocks, transposed in registers. Two vectors
  // of what is read, so that whole pairs of cache lines are; then on along what is read: past the
  // caches where much is stored, else several blocks side by side, so that the pages being written
  // stay few.
  void across() {
    const AxisUse* stored = nullptr;
    const AxisUse* read = nullptr;
    for (const AxisUse& a : outputs_) {
      if (a.unit_store) stored = &a;
      if (a.unit_loads > 0 && !a.unit_store) read = &a;
    }
    if (!stored || !read || !apply(OptKind::UPCAST, stored->range, std::min(stored->size, lanes_)))
      return;
    const int64_t pair = 2 * lanes_;
    apply(OptKind::UPCAST, read->range,
          read->size % pair == 0 ? pair : std::min(read->size, lanes_));
    const UOp blocks_read = loop_of(*read), blocks_stored = loop_of(*stored);
    if (!blocks_read || !blocks_stored) return;
    if (stored_bytes() >= limits_.stream_transposed)
      schedule_.apply({OptKind::STREAM, 0, {}});
    else if (KernelSchedule::size(blocks_stored) < 2 * limits_.blocks_across ||
             !apply(OptKind::TILE, blocks_stored, limits_.blocks_across))
      return;
    const int64_t i = place(loop_of(*stored)), j = place(blocks_read);
    if (j < i) schedule_.apply({OptKind::SWAP, j, {i}});
  }

  void along_reduction() {
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

  UOp ast_;  // without opts other than TC
  KernelSchedule schedule_;
  const Target& target_;
  const HeuristicLimits& limits_;
  DType stored_ = DType::F32;
  int64_t lanes_ = 1;
  bool by_lane_ = false;     // products of neighbours
  bool over_rows_ = false;   // loops over one row inside, one after the other (rangeify/rows.h)
  int64_t outer_loops_ = 0;  // that opts have put in front, before all ids
  std::vector<AxisUse> outputs_, reduces_;
};

}  // namespace

Opts heuristic(UOp ast, const Target& target) {
  return target.has_local ? group_heuristic(ast, target) : cpu_heuristic(ast, target);
}
Opts cpu_heuristic(UOp ast, const Target& target, const HeuristicLimits& limits) {
  return Heuristic(ast, target, limits).run();
}

}  // namespace beamline
