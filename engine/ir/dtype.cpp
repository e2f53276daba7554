#include "engine/ir/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.h"

namespace beamline {
namespace {

struct Info {
  std::string_view name;
  int bytes;
};
constexpr std::array<Info, dtype_count> infos = {{
#define X(name, text, bytes, kind) {text, bytes},
    BEAMLINE_FOR_EACH_DTYPE(X)
#undef X
}};
const Info& info(DType t) { return infos[static_cast<size_t>(t)]; }

// Precision and exponent range of the small floats; also what rounding needs.
struct FloatFormat {
  int mantissa;  // stored bits
  int min_exp;   // exponent of the smallest normal
  double max;
};
FloatFormat format(DType t) {
  switch (t) {
    case DType::Fp8e4m3: return {3, -6, 448.0};
    case DType::Fp8e5m2: return {2, -14, 57344.0};
    case DType::F16: return {10, -14, 65504.0};
    case DType::BF16: return {7, -126, 3.3895313892515355e38};
    default: return {52, -1022, std::numeric_limits<double>::max()};
  }
}

struct BitLayout {
  int exponent_bits, mantissa_bits;
  bool infinite;  // has infinities; e4m3 has a single NaN pattern instead
};
BitLayout bit_layout(DType t) {
  switch (t) {
    case DType::Fp8e4m3: return {4, 3, false};
    case DType::Fp8e5m2: return {5, 2, true};
    case DType::F16: return {5, 10, true};
    case DType::BF16: return {8, 7, true};
    case DType::F32: return {8, 23, true};
    default: return {11, 52, true};
  }
}

DType signed_of_bytes(int bytes) {
  return bytes == 1 ? DType::I8 : bytes == 2 ? DType::I16 : bytes == 4 ? DType::I32 : DType::I64;
}

}  // namespace

std::string_view dtype_name(DType t) { return info(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < dtype_count; i++)
    if (infos[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int dtype_bytes(DType t) { return info(t).bytes; }

int64_t dtype_min(DType t) {
  if (t == DType::Bool || is_unsigned(t)) return 0;
  const int bits = info(t).bytes * 8;
  return bits >= 64 || bits == 0 ? std::numeric_limits<int64_t>::min()
                                 : -(int64_t{1} << (bits - 1));
}
int64_t dtype_max(DType t) {
  if (t == DType::Bool) return 1;
  const int bits = info(t).bytes * 8;
  if (bits >= 64 || bits == 0) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (is_unsigned(t) ? bits : bits - 1)) - 1;
}

DType join(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Invalid || a == DType::Void) return b;
  if (b == DType::Invalid || b == DType::Void) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_float(a) != is_float(b)) {
    const DType f = is_float(a) ? a : b, i = is_float(a) ? b : a;
    return f == DType::WeakFloat && !is_weak(i) ? DType::F32 : f;
  }
  if (is_weak(a)) return b;
  if (is_weak(b)) return a;
  const int na = dtype_bytes(a), nb = dtype_bytes(b);
  if (is_float(a)) {
    if (na == nb) return na == 1 ? DType::F16 : DType::F32;  // e4m3+e5m2, f16+bf16
    return na > nb ? a : b;
  }
  if (is_unsigned(a) == is_unsigned(b)) return na > nb ? a : b;
  const DType s = is_unsigned(a) ? b : a, u = is_unsigned(a) ? a : b;
  if (dtype_bytes(s) > dtype_bytes(u)) return s;
  return u == DType::U64 ? DType::F32 : signed_of_bytes(dtype_bytes(u) * 2);
}

DType least_float(DType t) {
  if (is_float(t)) return t;
  return t == DType::WeakInt ? DType::WeakFloat : DType::F32;
}

bool lossless(DType from, DType to) {
  if (from == to || from == DType::Bool) return to != DType::Void && to != DType::Invalid;
  if (is_weak(from) || is_weak(to)) return false;
  if (is_int(from) && is_int(to)) {
    if (is_unsigned(from) == is_unsigned(to)) return dtype_bytes(from) <= dtype_bytes(to);
    return is_unsigned(from) && dtype_bytes(from) < dtype_bytes(to);
  }
  if (is_int(from) && is_float(to)) {
    const int bits = dtype_bytes(from) * 8 - (is_unsigned(from) ? 0 : 1);
    const int mantissa = to == DType::F32 ? 24 : format(to).mantissa + 1;
    return bits <= mantissa && to != DType::Fp8e4m3 && to != DType::Fp8e5m2;
  }
  if (is_float(from) && is_float(to)) return join(from, to) == to;
  return false;
}

double round_to(DType t, double v) {
  if (t == DType::F32) return static_cast<double>(static_cast<float>(v));
  if (t == DType::Fp8e4m3 && std::isinf(v)) return std::numeric_limits<double>::quiet_NaN();
  if (!is_float(t) || t == DType::F64 || t == DType::WeakFloat || !std::isfinite(v) || v == 0)
    return v;
  const FloatFormat f = format(t);
  int exp = 0;
  std::frexp(v, &exp);  // v = m * 2^exp, m in [0.5, 1)
  const int step = std::max(exp - 1, f.min_exp) - f.mantissa;
  const double r = std::ldexp(std::nearbyint(std::ldexp(v, -step)), step);
  if (std::fabs(r) > f.max)
    return t == DType::Fp8e4m3 ? std::numeric_limits<double>::quiet_NaN()
                               : std::copysign(std::numeric_limits<double>::infinity(), v);
  return r;
}

uint64_t float_to_bits(DType t, double v) {
  CHECK(is_float(t) && !is_weak(t));
  if (t == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(v));
  if (t == DType::F64) return std::bit_cast<uint64_t>(v);
  const BitLayout l = bit_layout(t);
  const uint64_t sign = uint64_t{std::signbit(v)} << (l.exponent_bits + l.mantissa_bits);
  const uint64_t top = ((uint64_t{1} << l.exponent_bits) - 1) << l.mantissa_bits;
  const double r = round_to(t, v);
  if (std::isnan(r))
    return sign | top |
           (l.infinite ? uint64_t{1} << (l.mantissa_bits - 1)
                       : (uint64_t{1} << l.mantissa_bits) - 1);
  if (std::isinf(r))
    return sign | (l.infinite ? top : top | ((uint64_t{1} << l.mantissa_bits) - 1));
  if (r == 0) return sign;
  const int bias = (1 << (l.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(r), 1 - bias);  // below: a denormal
  const auto mantissa = static_cast<uint64_t>(std::ldexp(std::fabs(r), l.mantissa_bits - exponent));
  const uint64_t one = uint64_t{1} << l.mantissa_bits;
  if (mantissa < one) return sign | mantissa;
  return sign | static_cast<uint64_t>(exponent + bias) << l.mantissa_bits | (mantissa - one);
}

double float_from_bits(DType t, uint64_t bits) {
  CHECK(is_float(t) && !is_weak(t));
  const BitLayout l = bit_layout(t);
  const uint64_t one = uint64_t{1} << l.mantissa_bits;
  const uint64_t mantissa = bits & (one - 1);
  const auto exponent =
      static_cast<int>(bits >> l.mantissa_bits & ((uint64_t{1} << l.exponent_bits) - 1));
  const double sign = bits >> (l.exponent_bits + l.mantissa_bits) & 1 ? -1 : 1;
  const int bias = (1 << (l.exponent_bits - 1)) - 1;
  if (exponent == (1 << l.exponent_bits) - 1) {
    if (l.infinite && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    if (l.infinite || mantissa == one - 1) return std::numeric_limits<double>::quiet_NaN();
  }
  const double m = static_cast<double>(exponent == 0 ? mantissa : mantissa + one);
  return sign * std::ldexp(m, std::max(exponent, 1) - bias - l.mantissa_bits);
}

int64_t wrap_to(DType t, int64_t v) {
  switch (t) {
    case DType::Bool: return v != 0;
    case DType::I8: return static_cast<int8_t>(v);
    case DType::U8: return static_cast<uint8_t>(v);
    case DType::I16: return static_cast<int16_t>(v);
    case DType::U16: return static_cast<uint16_t>(v);
    case DType::I32: return static_cast<int32_t>(v);
    case DType::U32: return static_cast<uint32_t>(v);
    default: return v;
  }
}

}  // namespace beamline
