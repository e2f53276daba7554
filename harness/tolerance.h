// How far a right kernel may be from its reference (architecture.md "Tolerance of a kernel"):
//   |got - ref| <= rtol * (|ref| + rms(ref)),  rtol = 4 u_out + u_acc (16 + 4 sqrt(R))
// u: unit round-off of the output type and of the types computed in; R: steps of the reductions, of
// several the sum, for one after the other adds its own errors. A maximum makes none.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

/// 2^-24 for f32, 2^-11 for f16, ...; 0 for integers and bool.
double unit_roundoff(DType t);

/// Of a prepared kernel; 0 where only integers are written: they are exact.
double kernel_tolerance(UOp prepared);

}  // namespace beamline
