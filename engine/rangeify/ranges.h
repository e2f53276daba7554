// Loops of kernels, as several steps of cutting and scheduling look at them.
#pragma once
#include <span>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// Number of steps of a RANGE.
int64_t size_of(UOp range);
/// The RANGEs that a STAGE, END or REDUCE closes, in order.
std::vector<UOp> ranges_of(UOp u);
/// Post-order that does not enter STAGEs below the root.
std::vector<UOp> closed_walk(UOp root);
/// Whether a reduction among the nodes does not depend on r: a loop over r outside would repeat it.
bool would_repeat_reduction(std::span<const UOp> nodes, UOp r);
/// Whether u by itself takes so many instructions that it is kept rather than computed again.
bool is_dear(UOp u);

}  // namespace beamline
