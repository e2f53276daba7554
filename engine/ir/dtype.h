// Element types and the promotion lattice. Weak types (`weakint`, `weakfloat`) are literals and
// index math of no width yet; they never own storage. `invalid` is the type of the one poison
// constant.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace beamline {

// name, text, bytes, kind (v void, b bool, i signed, u unsigned, f float, p poison)
// clang-format off
#define BEAMLINE_FOR_EACH_DTYPE(X)                                                         \
  X(Void, "void", 0, 'v')       X(Bool, "bool", 1, 'b')        X(WeakInt, "weakint", 8, 'i') \
  X(I8, "i8", 1, 'i')           X(U8, "u8", 1, 'u')            X(I16, "i16", 2, 'i')         \
  X(U16, "u16", 2, 'u')         X(I32, "i32", 4, 'i')          X(U32, "u32", 4, 'u')         \
  X(I64, "i64", 8, 'i')         X(U64, "u64", 8, 'u')          X(WeakFloat, "weakfloat", 8, 'f') \
  X(Fp8e4m3, "fp8e4m3", 1, 'f') X(Fp8e5m2, "fp8e5m2", 1, 'f')  X(F16, "f16", 2, 'f')         \
  X(BF16, "bf16", 2, 'f')       X(F32, "f32", 4, 'f')          X(F64, "f64", 8, 'f')         \
  X(Invalid, "invalid", 0, 'p')
// clang-format on

enum class DType : uint8_t {
#define X(name, text, bytes, kind) name,
  BEAMLINE_FOR_EACH_DTYPE(X)
#undef X
      Count
};
inline constexpr size_t dtype_count = static_cast<size_t>(DType::Count);

std::string_view dtype_name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);
/// Bytes of one element in memory; 0 for void and invalid.
int dtype_bytes(DType t);
inline constexpr std::array<char, dtype_count> dtype_kinds = {
#define X(name, text, bytes, kind) kind,
    BEAMLINE_FOR_EACH_DTYPE(X)
#undef X
};
constexpr char dtype_kind(DType t) { return dtype_kinds[static_cast<size_t>(t)]; }
/// Signed and unsigned integers, weakint; not bool.
constexpr bool is_int(DType t) { return dtype_kind(t) == 'i' || dtype_kind(t) == 'u'; }
constexpr bool is_unsigned(DType t) { return dtype_kind(t) == 'u'; }
constexpr bool is_float(DType t) { return dtype_kind(t) == 'f'; }  // weakfloat too
constexpr bool is_weak(DType t) { return t == DType::WeakInt || t == DType::WeakFloat; }
/// Smallest and largest integer value of an integer or bool type, clipped to 64-bit signed.
int64_t dtype_min(DType t);
int64_t dtype_max(DType t);

/// The least type both convert to (engine.md section 1 and the joins named in product.md).
DType join(DType a, DType b);
/// The least float type that holds the results of exp2, sqrt, ... of a value of type t.
DType least_float(DType t);
/// True when every value of `from` is a value of `to`.
bool lossless(DType from, DType to);

/// Rounds v to the values of float type t (identity for f64 and weakfloat).
double round_to(DType t, double v);
/// The bits of v as a storable float type, in the low bytes, and the value of such bits.
uint64_t float_to_bits(DType t, double v);
double float_from_bits(DType t, uint64_t bits);
/// Wraps an integer to the width of t (bool: v != 0).
int64_t wrap_to(DType t, int64_t v);

}  // namespace beamline
