// Types no CPU computes in: bf16 and both fp8 are storage. Their operations run in f32, and their
// conversions are integer arithmetic on the bits. Also conversions that would be rounded twice.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

bool is_storage_float(DType t);
/// An operation on storage floats as one in f32; a CAST from or to one as integer arithmetic; a
/// CAST to f16 or a storage float of what f32 does not hold, through an f32 that remembers what it
/// lost. Null where nothing is to be done.
UOp lower_small_float(UOp u);
/// The same for f16, where a processor cannot convert it: the CASTs between it and f32, and
/// operations on it, which then are casts and an operation in f32.
UOp lower_half(UOp u);

}  // namespace beamline
