// What an operation does to single numbers, shared by the interpreters of kernels and of tensor
// graphs. Results are not rounded to a float type here; integers wrap to their width, u64 is held
// as the int64_t of the same bits.
#pragma once
#include <cstdint>
#include <optional>

#include "engine/ir/dtype.h"
#include "engine/ir/ops.h"

namespace beamline {

/// MAX gives NaN if either is. CHECKs that the op has a meaning for floats.
double real_arithmetic(Op op, double a, double b, double c);
/// Nothing for a division by zero, a shift by more than the width, an op without meaning.
std::optional<int64_t> whole_arithmetic(Op op, DType t, int64_t a, int64_t b, int64_t c);
/// CMPLT, CMPNE, CMPEQ of integers of type t.
bool compare_wholes(Op op, DType t, int64_t a, int64_t b);
/// A float as an integer: cut off, out of range to the nearest there is, NaN to 0.
int64_t saturated(double v, DType t);
/// threefry2x32-20: two words for `counter` under `key`, low words first.
uint64_t threefry(uint64_t counter, uint64_t key);

}  // namespace beamline
