// What becomes of a node when its operands become vectors, whose lanes are the steps of an axis:
// accesses of neighbours are accesses of whole vectors.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// By how much an index moves from lane to lane, if by a constant; 0 of a scalar.
std::optional<int64_t> lane_step(UOp index);

/// That lane of an index of which lane_step knows the step.
UOp lane_of(UOp index, size_t lane);

/// One vector of what `parts` hold, element by element in turn: part j's lane i becomes lane
/// i * parts + j. Neighbours in memory are read as such.
UOp interleaved(const std::vector<UOp>& parts);

/// Where a vector of what is written to those places goes, in the same order; null if they are no
/// neighbours.
UOp interleaved_place(const std::vector<UOp>& at);

/// u with those sources, of which some have become vectors: an INDEX of neighbours is a SHRINK, a
/// LOAD of every other element two loads of vectors and a shuffle.
UOp with_lanes(UOp u, std::span<const UOp> src);

}  // namespace beamline
