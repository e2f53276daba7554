// Two kernels as one: kernels of several stores, which no workload gives today, have output loops
// that are no axis of the grid.
#pragma once
#include "engine/rangeify/rangeify.h"

namespace beamline::fuzz {

/// Of two kernels of which neither reads what the other writes. The arguments are those of `a`,
/// then those of `b`; output loops of the same length, one of each, become one where there are
/// such.
KernelAst fused(const KernelAst& a, const KernelAst& b);

/// Pairs of kernels, one after another, that allow it are fused.
void fuse_pairs(std::vector<KernelAst>& kernels);

}  // namespace beamline::fuzz
