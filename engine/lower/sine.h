// sin(x) and cos(x) by arithmetic alone, for targets without an instruction.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

/// x is f32 or f64. For f32 within 1.5 units of the last place (tests/bench/ulp), for f64 with an
/// absolute error below 2^-50, up to the largest number; NaN and infinities give NaN.
UOp decompose_sin(UOp x);
UOp decompose_cos(UOp x);

}  // namespace beamline
