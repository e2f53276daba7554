// The schedule a kernel gets without search. On CPUs: lanes along an axis of consecutive elements,
// a register tile where loaded values are used several times, several vectors of partial sums where
// only the reduce axis is contiguous. On targets whose threads come in groups: the reference's
// rules (engine.md 5.3).
#pragma once
#include "engine/opt/schedule.h"

namespace beamline {

/// Constants of the heuristic, in one place. Sources: measurements of register tiles on AVX-512 and
/// AVX2 cores (6x64, 9x48 and 12x32 lie within 5 % of each other on the former, 6x16 leads on the
/// latter), and `schedules` of tests/bench for the rest.
struct HeuristicLimits {
  int tile_vectors = 4;      // most vectors along the lane axis of a register tile
  int tile_rows = 16;        // most rows of it: more are too many streams
  int narrow_rows = 14;      // the same where the columns do not fill a vector
  int64_t few_blocks = 4;    // blocks of columns up to which rows may become the lanes
  int64_t scattered = 8;     // columns of such a tile
  int64_t beside = 7;        // vectors of it along a second axis, where the lane axis has only one
  int spare = 4;             // registers for operands beside such a tile
  int stream_vectors = 2;    // vectors where nothing is used twice and nothing is reduced
  int column_vectors = 16;   // accumulators side by side in a reduction over rows: long reads
  int64_t rows_at_once = 8;  // of one whose columns do not all fit beside each other
  int window_vectors = 4;    // the same where the reduction is a window
  int64_t window_width = 2;  // vectors of it where it is read for several rows
  int reduce_vectors = 4;    // partial sums of a contiguous reduction
  int dot_rows = 4;          // output rows, and columns, of a tile of contiguous reductions
  int window = 8;            // steps of a reduction that is written out, as those of a pool are
  int unroll = 4;            // steps of the reduction in one iteration of a small register tile
  int blocks_across = 8;     // blocks side by side of what is read across
  int64_t stream_above = int64_t{16} << 20;      // bytes of a result that is stored past the caches
  int64_t stream_transposed = int64_t{4} << 20;  // of a transposed one
  int64_t pack_above =
      int64_t{1} << 20;  // bytes of an operand that is packed though nothing is masked
  int64_t pack_bytes = int64_t{1} << 20;   // of a packed block: half of a second-level cache
  int64_t side_bytes = int64_t{1} << 19;   // of packed blocks side by side
  int64_t side_above = int64_t{1} << 20;   // of what rows read, that blocks lie side by side for
  int64_t image_above = int64_t{1} << 20;  // of one read for each of several blocks of channels
  int64_t near_bytes = int64_t{1} << 15;   // that all rows may read again: in a first-level cache
  int64_t ahead_bytes = int64_t{1} << 17;  // of columns read where they lie and fetched ahead
  int64_t ahead_above = int64_t{1} << 18;  // of the operand that they are of
  int64_t same_sets = 1024;  // bytes: steps of a multiple of it share few sets of the inner caches
  int64_t ahead_steps = 4;   // most steps of an iteration that fetches ahead
  double by_lines = 1.05;    // what reading lines of an image to their end is worth
  bool rows_inside = false;  // all rows pass over one block of columns that is not packed, too
  int64_t pack_rows = 32;    // least rows that read a packed block
  int64_t copied_rows = 16;  // of a copy without which each product is summed up by itself
  int64_t moved_rows = 8;    // and that make up for a sum of what they share
  int64_t few_rows = 48;     // that read it often enough where the reduction is in blocks
  int64_t reduce_block = 448;  // most steps of a reduction between visits to the result
  int64_t near_block = 128;    // the same where the columns of the block lie close by
  int64_t streams = 32;        // and where each step is a stream of its own: those of a prefetcher
  int64_t past_caches = int64_t{1} << 24;  // bytes of an operand that comes from memory each time
  int64_t long_way = 1024;                 // steps of one whose rows are read across
  double fma_ports = 2, load_ports = 2;
  double loop_cost = 1.5;     // cycles of an iteration besides its arithmetic
  double load_weight = 0.1;   // of loads that have a free port, as a share of a cycle
  double copy_cost = 8;       // of a vector that is copied from where its elements lie apart
  double transpose_cost = 6;  // cycles of a vector that is transposed and stored
};

/// Those of targets with groups. Source: engine.md 5.3, unless a line says otherwise.
struct GroupLimits {
  int64_t tile[4] = {5, 4, 3, 2};  // tensor core products a warp computes along m, and along n
  int64_t warps[2] = {4, 2};       // warps of a group, along n
  int64_t rows_group = 8, rows_local = 4, rows_upcast = 4;  // of a matrix times a vector
  int64_t few_outputs = 2048;  // that a reduction is split over a group for
  int64_t group_top = 16;
  int64_t masked_axis = 7, masked_product = 49;  // a gated axis that is written out
  int64_t many_outputs = 1024,
          most_upcast = 32;  // while so many are left, and not yet so many held
  int64_t unroll_all = 32, unroll_both = 3, unroll_part = 4;
  int64_t unroll_below = 64;  // of values held, and 4 or less without a tile
  int64_t local_threads = 128, local_axes = 3;
};

/// When a kernel that nobody tuned is split over threads. Sources: what one core of the machines
/// named above does at least, and some ten times what waking a thread takes.
struct ThreadLimits {
  double flops_per_ns = 40, bytes_per_ns = 10;
  double least_ns = 50e3;    // of work for each thread
  int64_t uneven_steps = 8;  // of a loop for each thread, where it does not divide
};

/// A legal sequence for the kernel; empty where nothing helps.
Opts heuristic(UOp ast, const Target& target);
Opts cpu_heuristic(UOp ast, const Target& target, const HeuristicLimits& limits = {});
/// What it would choose with other constants, the most likely first: processors differ in their
/// caches and ports, so a search starts from all of these. Without that of heuristic().
std::vector<Opts> heuristic_variants(UOp ast, const Target& target);
Opts group_heuristic(UOp ast, const Target& target, const GroupLimits& limits = {});
/// The same with THREAD for a kernel of so much work, as many as the target allows at most. A
/// search starts without: it finds out what threads are worth here.
Opts across_threads(UOp ast, const Opts& opts, const Target& target, double flops, double bytes,
                    const ThreadLimits& limits = {});

}  // namespace beamline
