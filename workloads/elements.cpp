#include "workloads/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/check.h"

namespace beamline::workloads {
namespace {

struct Layout {
  int exponent_bits, mantissa_bits;
  bool infinite;  // has infinities; e4m3 has a single NaN pattern instead
};
Layout layout(DType t) {
  switch (t) {
    case DType::Fp8e4m3: return {4, 3, false};
    case DType::Fp8e5m2: return {5, 2, true};
    case DType::F16: return {5, 10, true};
    case DType::BF16: return {8, 7, true};
    case DType::F32: return {8, 23, true};
    default: return {11, 52, true};
  }
}

}  // namespace

uint64_t float_bits(DType t, double v) {
  CHECK(is_float(t) && !is_weak(t));
  const Layout l = layout(t);
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

double float_value(DType t, uint64_t bits) {
  CHECK(is_float(t) && !is_weak(t));
  const Layout l = layout(t);
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

double smallest_normal(DType t) {
  return std::ldexp(1.0, 2 - (1 << (layout(t).exponent_bits - 1)));
}

void store(std::span<std::byte> buffer, DType t, size_t i, double v) {
  if (!is_float(t)) return store(buffer, t, i, static_cast<int64_t>(v));
  const auto n = static_cast<size_t>(dtype_bytes(t));
  CHECK((i + 1) * n <= buffer.size());
  uint64_t bits = 0;
  if (t == DType::F32)
    bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  else if (t == DType::F64)
    bits = std::bit_cast<uint64_t>(v);
  else
    bits = float_bits(t, v);
  std::memcpy(buffer.data() + i * n, &bits, n);
}

void store(std::span<std::byte> buffer, DType t, size_t i, int64_t v) {
  if (is_float(t)) return store(buffer, t, i, static_cast<double>(v));
  const auto n = static_cast<size_t>(dtype_bytes(t));
  CHECK((i + 1) * n <= buffer.size());
  const int64_t w = t == DType::Bool ? v != 0 : v;
  std::memcpy(buffer.data() + i * n, &w, n);  // little endian: the low bytes come first
}

double load(std::span<const std::byte> buffer, DType t, size_t i) {
  const auto n = static_cast<size_t>(dtype_bytes(t));
  CHECK((i + 1) * n <= buffer.size());
  uint64_t bits = 0;
  std::memcpy(&bits, buffer.data() + i * n, n);
  if (is_float(t)) return float_value(t, bits);
  if (is_unsigned(t) || t == DType::Bool) return static_cast<double>(bits);
  const int shift = 64 - static_cast<int>(n) * 8;
  return static_cast<double>(static_cast<int64_t>(bits << shift) >> shift);
}
static_assert(std::endian::native == std::endian::little);

}  // namespace beamline::workloads
