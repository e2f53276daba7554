// Elements in memory: numbers to the bytes of a dtype and back. Rounding is to nearest even,
// integers wrap.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/ir/dtype.h"

namespace beamline::workloads {

/// The bits of v as float type t, in the low bytes.
uint64_t float_bits(DType t, double v);
/// The value of the bits of float type t.
double float_value(DType t, uint64_t bits);
/// Smallest positive normal number of float type t.
double smallest_normal(DType t);

/// Writes v as element i of a buffer of dtype t; v is rounded (floats) or converted (integers,
/// bool).
void store(std::span<std::byte> buffer, DType t, size_t i, double v);
void store(std::span<std::byte> buffer, DType t, size_t i, int64_t v);
/// Element i as a double: exact for all but i64 and u64.
double load(std::span<const std::byte> buffer, DType t, size_t i);

}  // namespace beamline::workloads
