// exp2, log2 and what is a factor away from them (exp, log, sigmoid ...) by arithmetic alone.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

/// x is f32 or f64; the result is within 1.5 units of the last place (tests/bench/ulp). Where x is
/// a product with a constant, it is not rounded before its use; a constant that is log2 e times a
/// simple number counts as exactly that, so that exp comes out as exact as exp2.
UOp decompose_exp2(UOp x);
/// log2(x) * factor; a factor that is ln 2 times a simple number counts as exactly that.
UOp decompose_log2(UOp x, double factor = 1);

}  // namespace beamline
