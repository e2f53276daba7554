// What becomes of a node when its operands become vectors, whose lanes are the steps of an axis:
// accesses of neighbours are accesses of whole vectors.
#pragma once
#include <optional>
#include <span>

#include "engine/ir/uop.h"

namespace beamline {

/// By how much an index moves from lane to lane, if by a constant; 0 of a scalar.
std::optional<int64_t> lane_step(UOp index);

/// That lane of an index of which lane_step knows the step.
UOp lane_of(UOp index, size_t lane);

/// u with those sources, of which some have become vectors: an INDEX of neighbours is a SHRINK, a
/// LOAD of every other element two loads of vectors and a shuffle.
UOp with_lanes(UOp u, std::span<const UOp> src);

}  // namespace beamline
