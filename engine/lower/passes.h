// The passes of lower(), in the order in which it runs them. Each takes and returns a graph in the
// current arena. Numbers refer to the reference's pass list (engine.md 5.1).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/target.h"
#include "engine/ir/uop.h"
#include "engine/lower/lower.h"
#include "engine/opt/schedule.h"
#include "engine/rewrite/rule.h"

namespace beamline {

/// Reference mode: every float is computed in f64; written float PARAMs become f64. Before any opt.
UOp widen_floats(UOp ast);

/// 13, 25: a value INDEX becomes a LOAD; the validity inside an index moves to the LOAD or STORE as
/// (alt, gate). Afterwards no index holds Invalid.
UOp add_loads(UOp ast);

/// The last tile of an axis that a tile does not divide begins sooner, where it then repeats some
/// of the one before: no access needs a mask, and in the innermost loop masks cost as much as
/// products do. Not where the kernel reads what it writes, or where another thread may. After
/// add_loads.
UOp overlap_tails(UOp ast, const std::vector<Packing>& packings,
                  const std::vector<Skipping>& skippings);

/// PACK: the operands' tiles are copied into buffers of their own at their place among the loops,
/// and read from there; rows of values that a kernel keeps (STAGE) get buffers too. After
/// add_loads.
UOp stage_operands(UOp ast, const std::vector<Packing>& packings, int64_t vector_lanes);

/// The axes whose steps become the lanes of vectors of at most `vector_lanes`: the UPCAST or UNROLL
/// axis along which most accesses are of consecutive elements and fewest have a stride, then the
/// best among those that no value depends on together with one of them; none = scalar code.
std::vector<UOp> choose_lanes(UOp ast, int64_t vector_lanes);

/// SKIP: a loop over padding begins later and ends sooner, both as the loops around it say; written
/// out, a value is the identity where its gates are closed, and expand() leaves it out.
UOp skip_padding(UOp ast, const std::vector<Skipping>& skippings, const std::vector<UOp>& lanes);

/// 10: a REDUCE with loops becomes a register accumulator: initialised after the enclosing loops,
/// updated in its own, read after their END. Lanes on a reduce axis give partial sums, added up
/// after the loop. With `prefetch` a NOOP of each place that is known there and stored to later
/// stands before the initialisation: the hint to fetch it for writing, maybe beyond the buffer.
/// Those of `prefetches` stand in the loop that moves their operand.
UOp reduce_to_accumulator(UOp ast, const std::vector<UOp>& lanes, bool prefetch = false,
                          const std::vector<Prefetch>& prefetches = {});

/// 10, 11: a REDUCE over ranges of the group becomes one over what its threads left in shared
/// memory, after a barrier. After add_loads.
UOp reduce_across_groups(UOp ast);

/// 12: THREAD ranges become the special `core_id`, GLOBAL ones `gidx0`.., LOCAL and GROUP_REDUCE
/// ones `lidx0`..; `grid` receives their sizes.
UOp add_grid(UOp ast, Grid& grid);

/// 9, 14: UPCAST and UNROLL ranges are written out. Lane axes are cut into vectors of at most
/// `vector_lanes`, which stay vectors (shape (n)); the other axes are unrolled.
/// Nothing, if more than `max_pieces` values would come of it.
std::optional<UOp> expand(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes,
                          size_t max_pieces = 20000);

/// n vectors, n a power of two that divides their lanes: of every n lanes, vector i of the result
/// has the i-th of each. Shuffles of two vectors, written as STACKs of their lanes: n log2 n of
/// them.
std::vector<UOp> transpose_registers(std::vector<UOp> rows);

/// Sums in index math are regrouped so that what changes in outer loops is added first and
/// constants last: loop-invariant parts become nodes of their own, and constants fold into
/// addresses.
UOp order_index_sums(UOp ast);

/// 16: scalar accesses of neighbours become accesses of vectors of four or two, where their place
/// is a multiple of that.
UOp coalesce_accesses(UOp ast);

/// 19: weak integers become `index_dtype`.
UOp lower_index_dtypes(UOp ast, DType index_dtype);

/// 24: integer division by constants becomes multiplications (magic_division.h).
UOp magic_division(UOp ast, Trace* trace = nullptr);

/// 22, 24: ops no CPU instruction has: floor division and modulo, reciprocal, sin, exp2 and log2.
/// Sines of f32 are computed in f64; without `doubles` they stay what they are. Without `halves`
/// f16 is converted by integer arithmetic.
UOp decompose(UOp ast, bool doubles = true, bool halves = true, Trace* trace = nullptr);

/// 28: where a loop writes shared memory again that other threads may still read, the group's
/// threads wait for each other at the end of each step. Barriers between the write and the reads
/// are there already (reduce_across_groups).
UOp add_implicit_barriers(UOp ast);

/// 30: variables become loads from arguments behind the buffers (kernel_variables). Nothing after
/// this knows their bounds.
UOp number_params(UOp ast);

/// 26, 29: the list. ENDs of several ranges are split; a loop's nodes stand between its RANGE and
/// its END.
std::vector<UOp> linearize(UOp sink);

}  // namespace beamline
