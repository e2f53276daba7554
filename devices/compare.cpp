#include "devices/compare.h"

#include <cfloat>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/check.h"

namespace beamline {
namespace {

struct Half {
  _Float16 v;
  explicit operator double() const { return static_cast<double>(static_cast<float>(v)); }
};
struct Brain {
  uint16_t bits;
  explicit operator double() const {
    const uint32_t wide = uint32_t{bits} << 16;
    float f;
    std::memcpy(&f, &wide, 4);
    return static_cast<double>(f);
  }
};
template <DType T>
struct Tiny {  // fp8
  uint8_t bits;
  explicit operator double() const { return float_from_bits(T, bits); }
};
using E4m3 = Tiny<DType::Fp8e4m3>;
using E5m2 = Tiny<DType::Fp8e5m2>;
struct Bool {
  unsigned char v;
};

// Calls f with a pointer of the type that holds t.
template <class F>
auto with_type(DType t, const void* p, F&& f) {
  switch (t) {
    case DType::F64: return f(static_cast<const double*>(p));
    case DType::F32: return f(static_cast<const float*>(p));
    case DType::F16: return f(static_cast<const Half*>(p));
    case DType::BF16: return f(static_cast<const Brain*>(p));
    case DType::Fp8e4m3: return f(static_cast<const E4m3*>(p));
    case DType::Fp8e5m2: return f(static_cast<const E5m2*>(p));
    case DType::I8: return f(static_cast<const int8_t*>(p));
    case DType::U8: return f(static_cast<const uint8_t*>(p));
    case DType::I16: return f(static_cast<const int16_t*>(p));
    case DType::U16: return f(static_cast<const uint16_t*>(p));
    case DType::I32: return f(static_cast<const int32_t*>(p));
    case DType::U32: return f(static_cast<const uint32_t*>(p));
    case DType::I64: return f(static_cast<const int64_t*>(p));
    case DType::U64: return f(static_cast<const uint64_t*>(p));
    default: CHECK(t == DType::Bool); return f(static_cast<const Bool*>(p));
  }
}

template <class T>
constexpr bool floating =
    std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, Half> ||
    std::is_same_v<T, Brain> || std::is_same_v<T, E4m3> || std::is_same_v<T, E5m2>;

template <class T>
std::string text_of(T v) {
  if constexpr (floating<T>)
    return fmt::format("{:.17g}", static_cast<double>(v));
  else if constexpr (std::is_same_v<T, Bool>)
    return v.v < 2 ? (v.v ? "true" : "false") : fmt::format("byte {}", v.v);
  else
    return fmt::format("{}", +v);
}

// One element of poison. NaNs carry a payload, so that a NaN that was computed is told from no
// write.
uint64_t pattern(DType t, int turn) {
  const bool odd = turn % 2 != 0;
  switch (t) {
    case DType::F64: return odd ? 0xFFFA5A5A5A5A5A5A : 0xFFFDA5A5A5A5A5A5;
    case DType::F32: return odd ? 0xFFDA5A5A : 0xFFE5A5A5;
    case DType::F16: return odd ? 0xFF5A : 0xFEA5;
    case DType::BF16: return odd ? 0xFFDA : 0xFFE5;
    // e4m3 has one NaN of each sign: a kernel whose result is this one looks as if it wrote
    // nothing.
    case DType::Fp8e4m3: return 0xFF;
    case DType::Fp8e5m2: return odd ? 0xFF : 0xFD;
    default: return odd ? 0x5A5A5A5A5A5A5A5A : 0xA5A5A5A5A5A5A5A5;
  }
}

void note_bad(Comparison& c, int64_t i, bool unwritten, const std::string& got,
              const std::string& want) {
  if (c.bad++ == 0) {
    c.first_bad = i;
    c.got = unwritten ? got + " (never written)" : got;
    c.want = want;
  }
  c.unwritten += unwritten;
}

// Error of one float in units of (|ref| + rms); infinite where NaN or Inf do not match in place.
double relative_error(double got, double want, double rms, DType got_type) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : DBL_MAX;
  if (got == want) return 0;
  // A reference wider than the output may be finite where the output has to overflow.
  if (std::isinf(got) && std::isfinite(want)) want = round_to(got_type, want);
  if (std::isinf(got) || std::isinf(want)) return got == want ? 0 : DBL_MAX;
  // A wider reference may lie between two numbers of the output's type, which are no nearer to each
  // other than its least positive one is to zero.
  if (got_type != DType::F64 && std::abs(got - want) <= float_from_bits(got_type, 1)) return 0;
  const double scale = std::abs(want) + rms;
  return scale > 0 ? std::min(std::abs(got - want) / scale, DBL_MAX) : DBL_MAX;
}

template <class G, class W>
void compare_floats(Comparison& c, const G* got, const W* want, int64_t n, double rtol, double rms,
                    DType got_type, uint64_t unwritten) {
  for (int64_t i = 0; i < n; i++) {
    const double g = static_cast<double>(got[i]), w = static_cast<double>(want[i]);
    c.all_zero &= g == 0;
    c.want_all_zero &= w == 0;
    const bool untouched = std::memcmp(&got[i], &unwritten, sizeof(G)) == 0 &&
                           !(got_type == DType::Fp8e4m3 && std::isnan(w));
    const double error = untouched ? DBL_MAX : relative_error(g, w, rms, got_type);
    c.max_err = std::max(c.max_err, error);
    if (error > rtol) note_bad(c, i, untouched, text_of(got[i]), text_of(want[i]));
  }
}

template <class T>
void compare_exact(Comparison& c, const T* got, const T* want, int64_t n, uint64_t unwritten) {
  static constexpr T zero = {};
  for (int64_t i = 0; i < n; i++) {
    c.all_zero &= std::memcmp(&got[i], &zero, sizeof(T)) == 0;
    c.want_all_zero &= std::memcmp(&want[i], &zero, sizeof(T)) == 0;
    if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0) continue;
    c.max_err = DBL_MAX;
    note_bad(c, i, std::memcmp(&got[i], &unwritten, sizeof(T)) == 0, text_of(got[i]),
             text_of(want[i]));
  }
}

}  // namespace

bool comparable(DType t) {
  switch (t) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::Fp8e4m3:
    case DType::Fp8e5m2:
    case DType::Bool: return true;
    default: return is_int(t) && !is_weak(t);
  }
}

bool comparable(DType got, DType want) {
  return comparable(got) && (got == want || (is_float(got) && want == DType::F64));
}

double rms_of(const void* data, DType t, int64_t n) {
  if (!is_float(t) || n == 0) return 0;
  return with_type(t, data, [&](auto* p) {
    using T = std::remove_cvref_t<decltype(*p)>;
    double sum = 0;
    int64_t finite = 0;
    if constexpr (floating<T>) {
      for (int64_t i = 0; i < n; i++) {
        const double v = static_cast<double>(p[i]);
        if (!std::isfinite(v)) continue;
        sum += v * v;
        finite++;
      }
    }
    // A square that overflows must not make every error small.
    return finite > 0 && std::isfinite(sum) ? std::sqrt(sum / static_cast<double>(finite)) : 0.0;
  });
}

void poison(void* data, DType t, int64_t n, int turn) {
  const uint64_t bits = pattern(t, turn);
  const size_t size = static_cast<size_t>(dtype_bytes(t));
  auto* out = static_cast<unsigned char*>(data);
  for (int64_t i = 0; i < n; i++) std::memcpy(out + static_cast<size_t>(i) * size, &bits, size);
}

Comparison compare_output(const void* got, DType got_type, const void* want, DType want_type,
                          int64_t n, double rtol, double rms, int turn) {
  CHECK(comparable(got_type, want_type));
  Comparison c;
  c.all_zero = c.want_all_zero = true;
  const uint64_t unwritten = pattern(got_type, turn);
  with_type(got_type, got, [&](auto* g) {
    using G = std::remove_cvref_t<decltype(*g)>;
    if constexpr (floating<G>) {
      if (want_type == DType::F64) {
        compare_floats(c, g, static_cast<const double*>(want), n, rtol, rms, got_type, unwritten);
      } else {
        compare_floats(c, g, static_cast<const G*>(want), n, rtol, rms, got_type, unwritten);
      }
    } else {
      compare_exact(c, g, static_cast<const G*>(want), n, unwritten);
    }
  });
  c.ok = c.bad == 0;
  return c;
}

}  // namespace beamline
