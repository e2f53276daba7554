// sin(x) by arithmetic alone, for targets without an instruction.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

/// x is f32 or f64. The absolute error stays below 2^-23 (f32) and 2^-50 (f64) up to the largest
/// number; NaN and infinities give NaN.
UOp decompose_sin(UOp x);

}  // namespace beamline
