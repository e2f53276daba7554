// Shapes with symbolic dims. A dim is a CONST, or an expression of bounded variables; UOp::shape()
// has the upper bound of each, which is what is allocated and indexed by. Keys hold the expressions
// themselves: they are operands (of PARAM, RESHAPE, EXPAND, ...) or the ends of ranges.
#pragma once
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// The dims of u's value, in order; every dim's vmax is the entry of u.shape(). Iterative. In the
/// current arena.
std::vector<UOp> symbolic_shape(UOp u);

/// Null when the dims of every elementwise node below root are equal or 1, as expressions; else the
/// first node of which two operands only happen to have the same upper bound.
UOp mismatched_dims(UOp root);

}  // namespace beamline
