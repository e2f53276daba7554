// An order of a kernel's buffers and ranges that depends on what the kernel computes alone: not on
// the numbers they have, nor on the order of operands that may change places. Kernels that differ
// in those numbers only get one key.
#pragma once
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// The global PARAMs and the RANGEs of a kernel. Colours of nodes are refined by those of operands
/// and users (Weisfeiler and Leman); where several nodes keep one colour, one of them is set apart
/// and the rest follows from it: such nodes are nearly always interchangeable.
std::vector<UOp> canonical_order(UOp kernel);

}  // namespace beamline
