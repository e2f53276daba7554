// Tall reductions in two kernels (split_reduceop, engine.md section 4): one element from 32768 or
// more would leave all but one worker idle, so slices are reduced on their own first.
#pragma once
#include <optional>

#include "engine/ir/uop.h"

namespace beamline {

struct SplitReduction {
  UOp first;   // stores the slices' results into PARAM `slot`
  UOp second;  // the kernel, its reduction over the slices
  DType dtype;
  int64_t elements;  // of that buffer
};
/// `kernel` is prepared and has no PARAM `slot`. Nothing where it has no single tall reduction, or
/// none that divides.
std::optional<SplitReduction> split_reduction(UOp kernel, int64_t slot);

}  // namespace beamline
