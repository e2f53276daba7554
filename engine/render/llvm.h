// LLVM IR of a linear kernel, as text. Vectors stay vectors; tails use masked loads and stores;
// products and sums may be contracted to fused multiply-adds. No performance decision is made here.
#pragma once
#include <string>

#include "engine/lower/lower.h"

namespace beamline {

/// `void entry(ptr buffers, i64 core_id)`: buffers is an array of pointers in slot order. The
/// buffers do not overlap. An op this target has no code for is an error text in `error`, and the
/// result is empty.
std::string render_llvm(const LinearKernel& kernel, const std::string& entry, std::string& error);

}  // namespace beamline
