#include "workloads/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/check.h"

namespace beamline::workloads {
namespace {

int exponent_bits(DType t) {
  switch (t) {
    case DType::Fp8e4m3: return 4;
    case DType::Fp8e5m2:
    case DType::F16: return 5;
    case DType::BF16:
    case DType::F32: return 8;
    default: return 11;
  }
}

}  // namespace

uint64_t float_bits(DType t, double v) { return float_to_bits(t, v); }
double float_value(DType t, uint64_t bits) { return float_from_bits(t, bits); }

double smallest_normal(DType t) { return std::ldexp(1.0, 2 - (1 << (exponent_bits(t) - 1))); }

void store(std::span<std::byte> buffer, DType t, size_t i, double v) {
  if (!is_float(t)) return store(buffer, t, i, static_cast<int64_t>(v));
  const auto n = static_cast<size_t>(dtype_bytes(t));
  CHECK((i + 1) * n <= buffer.size());
  const uint64_t bits = float_bits(t, v);
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
