// The CPU heuristic at work on one kernel: what several sources share. Private to engine/opt.
#pragma once
#include <utility>
#include <vector>

#include "engine/opt/axis_use.h"

namespace beamline {

class CpuHeuristic {
 public:
  CpuHeuristic(UOp ast, const Target& target, const HeuristicLimits& limits);
  Opts run();

 private:
  // What the lanes read and the rows share.
  struct Operand {
    int64_t slot = 0;
    int64_t column_bytes = 0;  // over the whole reduction; 0 = there is none
    int64_t bytes = 0;         // all of it
    bool awkward = false;      // read under a gate or with a stride
    bool constant = false;
    bool window = false;  // gated, or the same elements are read by several steps of the reduction
    bool apart = false;   // columns lie in rows of their own, along the reduction
    bool every_other = false;  // columns are every other element, and windows overlap
    int64_t step = 0;  // bytes from one step of the reduction to the next; 0 = there are several
  };
  // Products of types that the processor has an instruction for.
  void multiply_by_lane();
  // A second sum, of one factor alone, is worth it for many rows.
  static std::ptrdiff_t sums(UOp ast);
  bool has_rows() const;
  bool apply(OptKind kind, UOp range, int64_t amount);
  // The largest output axis, other than `lane`, along which some load is used again; with lanes,
  // best one of theirs.
  const AxisUse* reused(const AxisUse* lane) const;
  void along_outputs(const AxisUse& lane);
  // What the rows read lies along the rows, and a step of the reduction goes to another page: as
  // many steps at a time as prefetchers follow streams, or as fit with the columns into a cache,
  // and rows by halves of cache lines.
  bool streams_tile(const AxisUse& lane, const AxisUse& rows);
  // Rows that go on in another output loop, as parts of a long reduction do, are read to their end.
  void runs_inside(const AxisUse& lane, const AxisUse& rows);
  // A window over each channel on its own: rows share what they read with the rows beside them, so
  // the steps are written out.
  bool window_tile(const AxisUse& lane, const AxisUse& rows);
  // Lanes by rows of sums, held in registers.
  void register_tile(const AxisUse& lane, const AxisUse& rows);
  // The operand's columns stay in the inner caches while all rows pass over them, and are read
  // where they lie: those of the next tile are fetched meanwhile.
  bool reads_ahead(const Operand& shared, int64_t width) const;
  void read_ahead(const Operand& shared, const Operand& across, const AxisUse& lane,
                  const AxisUse& rows, int64_t width);
  // All vectors side by side, and as many rows as leave none of the last block empty, if they can.
  Tile widest_tile(int64_t rows) const;
  // A register tile passes over `most` steps at a time: what its rows read, and what its columns
  // do, then is still in the inner caches for the next tile. Returns the number of blocks; the last
  // one may be shorter than the others.
  int64_t reduce_in_blocks(int64_t most);
  // What comes last then: it ends where the operands do, and results are fetched before they are
  // added to.
  void end_blocks();
  // Where not all columns of a block of the reduction stay in the cache, but all rows do.
  void rows_inside(int64_t column_bytes, int64_t row_bytes, const AxisUse& lane,
                   const AxisUse& rows);
  // Columns are summed up a few rows at a time: each is read from end to end, and the sums so far
  // stay in a cache.
  bool whole_rows(const AxisUse& lane);
  // A constant operand (weights) moves along channels, and not along the pixels, which are stored
  // side by side: laid out ahead of time it is as good for lanes, and no lane is left empty at the
  // end of a row of pixels. The results are transposed in registers, once for a whole reduction.
  bool over_channels(const AxisUse& pixels);
  // Rows of pixels that a tile holds whole: the steps of a filter along them are written out, if
  // there are registers for its weights, and what is padding is left out.
  bool skip_padding(const AxisUse& pixels, int64_t vectors);
  // Its edges are padded in a copy, as far out as there is room for it; then all channels pass over
  // one copy.
  void pack_image(const AxisUse& channels, int64_t slot);
  // Each loop over the row gets lanes of its own where it moves by one element; where rows lie side
  // by side, they are the lanes of all.
  void along_rows();
  // Several steps an iteration of a small tile, if possible along the axis that a load is
  // contiguous on.
  void several_steps();
  // Few columns, and rows whose operand lies along them: the rows become the lanes, their operand
  // is packed a block at a time, and the results, few a block, are scattered.
  bool rows_as_lanes(const AxisUse& columns, const AxisUse& rows, const Operand& across);
  // Long reads count: what is stored in few bytes is read as far as if it were not summed in more.
  int column_vectors(const AxisUse& lane) const;
  int64_t stored_bytes() const;
  int64_t place(UOp r) const;
  // All reductions are few steps, as those of a pool or a depthwise filter are.
  bool only_windows() const;
  // `loop` changes places with `other`, if both are there and it is around it.
  void move_inside(UOp loop, UOp other);
  // The loop that is left of an output axis after splits; null when nothing is.
  UOp loop_of(const AxisUse& a) const;
  Operand operand(const AxisUse& lane, const AxisUse& rows) const;
  bool packable(const Operand& o, const AxisUse& lane) const;
  // A block of them fits if the reduction is in blocks.
  bool deep_columns(const Operand& o) const;
  // That make up for a copy of it.
  int64_t least_rows(const Operand& o) const;
  // Where one vector holds the whole lane axis: the next axis along which the shared operand moves,
  // and how many of its steps lie side by side, without a rest. What the rows read is then read
  // that much less often.
  std::pair<const AxisUse*, int64_t> beside(const AxisUse& lane, const AxisUse& rows,
                                            const Operand& shared, int64_t width) const;
  // Blocks of its columns are copied together; then all rows pass over one block: their loop goes
  // inside of those that the operand depends on.
  void pack(const Operand& shared, const AxisUse& lane, const AxisUse& rows, int64_t width);
  // Stored along one axis, read along another: square blocks, transposed in registers. Two vectors
  // of what is read, so that whole pairs of cache lines are; then on along what is read: past the
  // caches where much is stored, else several blocks side by side, so that the pages being written
  // stay few.
  void across();
  void along_reduction();

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

}  // namespace beamline
