// The schedule a CPU kernel gets without search: lanes along the contiguous axis, a register tile
// over the other output axes, several vectors of partial sums where only the reduce axis is
// contiguous.
#pragma once
#include "engine/opt/schedule.h"

namespace beamline {

/// Constants of the heuristic, in one place. Source: cpu-schedule measurements on AVX2 and AVX-512
/// cores.
struct HeuristicLimits {
  int lane_vectors = 2;    // vectors along the lane axis of a register tile
  int stream_vectors = 4;  // the same where there is nothing to tile
  int max_rows = 8;        // rows of a register tile
  int reduce_vectors = 4;  // vectors of partial sums in a contiguous reduction
};

/// A legal sequence for the kernel; empty where nothing helps.
Opts cpu_heuristic(UOp ast, const Target& target, const HeuristicLimits& limits = {});

}  // namespace beamline
