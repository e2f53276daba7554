// Kernels that no workload gives today. Two as one: kernels of several stores have output loops
// that are no axis of the grid. With a variable: a stride that is an argument.
#pragma once
#include <optional>

#include "engine/rangeify/rangeify.h"

namespace beamline::fuzz {

/// Of two kernels of which neither reads what the other writes. The arguments are those of `a`,
/// then those of `b`; output loops of the same length, one of each, become one where there are
/// such.
KernelAst fused(const KernelAst& a, const KernelAst& b);

/// A factor of its index math becomes a variable; that factor, or nothing where there is none. The
/// kernel has one argument more, of which `buffers` knows nothing yet.
std::optional<int64_t> vary(KernelAst& kernel);

/// Pairs of kernels, one after another, that allow it are fused.
void fuse_pairs(std::vector<KernelAst>& kernels);

}  // namespace beamline::fuzz
