#include "engine/interpret/matrix_product.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/interpret/arithmetic.h"

namespace beamline {
namespace {

struct Held {
  int lane = 0, element = 0;
};
// Of A(m, k), B(k, n) and C(m, n).
struct LaneMap {
  std::string_view family;
  int k = 0;
  bool tf32 = false;
  Held (*a)(int m, int k);
  Held (*b)(int k, int n);
  Held (*c)(int m, int n);
  int copies = 1;  // of A and B, at lanes 16 apart
};

// Steps 0..3, 4..7, 8..11, 12..15: which half of the lanes, and from which element on.
Held rdna4(int line, int k) {
  constexpr int shift[] = {0, 4, 4, 8}, half[] = {0, 16, 0, 16};
  return {line + half[k / 4], k - shift[k / 4]};
}
template <int K>
Held cdna(int line, int k) {
  return {16 * (k / (K / 4)) + line, k % (K / 4)};
}
Held cuda_c(int m, int n) { return {n / 2 + 4 * (m % 8), n % 2 + 2 * (m / 8)}; }
Held cdna_c(int m, int n) { return {n + 16 * (m / 4), m % 4}; }

// clang-format off
constexpr LaneMap maps[] = {
    {"cuda",   8, false, [](int m, int k) { return Held{k / 2 + 4 * (m % 8), k % 2 + 2 * (m / 8)}; },
                         [](int k, int n) { return Held{k / 2 + 4 * n, k % 2}; }, cuda_c},
    {"cuda",   8, true,  [](int m, int k) { return Held{k % 4 + 4 * (m % 8), 2 * (k / 4) + m / 8}; },
                         [](int k, int n) { return Held{k % 4 + 4 * n, k / 4}; }, cuda_c},
    {"cuda",  16, false, [](int m, int k) { return Held{k / 2 % 4 + 4 * (m % 8), k % 2 + 2 * (m / 8) + 4 * (k / 8)}; },
                         [](int k, int n) { return Held{k / 2 % 4 + 4 * n, k % 2 + 2 * (k / 8)}; }, cuda_c},
    {"cuda",  32, false, [](int m, int k) { return Held{k / 4 % 4 + 4 * (m % 8), k % 4 + 4 * (m / 8) + 8 * (k / 16)}; },
                         [](int k, int n) { return Held{k / 4 % 4 + 4 * n, k % 4 + 4 * (k / 16)}; }, cuda_c},
    {"rdna3", 16, false, [](int m, int k) { return Held{m, k}; },
                         [](int k, int n) { return Held{n, k}; },
                         [](int m, int n) { return Held{n + 16 * (m % 2), m / 2}; }, 2},
    {"rdna4", 16, false, rdna4,
                         [](int k, int n) { return rdna4(n, k); },
                         [](int m, int n) { return Held{n + 16 * (m / 8), m % 8}; }},
    {"cdna",  16, false, cdna<16>,  [](int k, int n) { return cdna<16>(n, k); },  cdna_c},
    {"cdna",  32, false, cdna<32>,  [](int k, int n) { return cdna<32>(n, k); },  cdna_c},
    {"cdna", 128, false, cdna<128>, [](int k, int n) { return cdna<128>(n, k); }, cdna_c},
    {"metal",  8, false, [](int m, int k) { return Held{k / 2 % 2 + 2 * (m % 4) + 8 * (k / 4) + 16 * (m / 4), k % 2}; },
                         [](int k, int n) { return Held{n / 2 % 2 + 2 * (k % 4) + 8 * (n / 4) + 16 * (k / 4), n % 2}; },
                         [](int m, int n) { return Held{n / 2 % 2 + 2 * (m % 4) + 8 * (n / 4) + 16 * (m / 4), n % 2}; }},
};
// clang-format on

const LaneMap& map_of(const TensorCore& core) {
  for (const LaneMap& m : maps)
    if (m.family == core.shape->family && m.k == core.shape->k && m.tf32 == core.tf32) return m;
  CHECK(false && "a tensor core without a lane map");
  return maps[0];
}

// 10 bits of mantissa, to nearest even.
double round_tf32(double v) {
  if (v == 0 || !std::isfinite(v)) return v;
  const double unit = std::ldexp(1.0, std::ilogb(v) - 10);
  return std::nearbyint(v / unit) * unit;
}

// sum + x * y, not rounded yet.
Lane plus_product(Lane sum, Lane x, Lane y) {
  sum.f += x.f * y.f;
  sum.i = static_cast<int64_t>(static_cast<uint64_t>(sum.i) +
                               static_cast<uint64_t>(x.i) * static_cast<uint64_t>(y.i));
  return sum;
}
Lane rounded(DType t, Lane sum) {
  if (is_float(t))
    sum.f = round_to(t, sum.f);
  else
    sum.i = wrap_to(t, sum.i);
  return sum;
}

}  // namespace

void multiply_lanes(const TensorCore& core, const LaneValues& v) {
  const auto steps = static_cast<size_t>(core.shape->k);
  for (size_t i = 0; i < v.lanes; i++) {
    Lane sum = v.c[v.c_elements == 1 ? 0 : i];
    for (size_t k = 0; k < steps; k++)
      sum = plus_product(sum, v.a[v.a_elements == steps ? k : i * steps + k],
                         v.b[v.b_elements == steps ? k : i * steps + k]);
    v.d[i] = rounded(core.out, sum);
  }
}

std::optional<std::string> multiply_matrices(const TensorCore& core, const WarpValues& values) {
  const MatrixShape& s = *core.shape;
  const LaneMap& map = map_of(core);
  // Every copy of an element must agree.
  std::optional<std::string> error;
  const auto factor = [&](const std::vector<const Lane*>& held, Held h) {
    const auto at = [&](int lane) {
      return held[static_cast<size_t>(lane)][static_cast<size_t>(h.element)];
    };
    const Lane v = at(h.lane);
    for (int lane = h.lane + 16; lane < h.lane + 16 * map.copies; lane += 16) {
      const Lane w = at(lane);
      if (v.i != w.i || !(v.f == w.f || (std::isnan(v.f) && std::isnan(w.f))))
        error = fmt::format("lanes {} and {} hold different elements {} of {}", h.lane, lane,
                            h.element, &held == &values.a ? "A" : "B");
    }
    return core.tf32 ? Lane{0, round_tf32(v.f)} : v;
  };
  std::vector<Lane> a, b;
  for (int m = 0; m < s.m; m++)
    for (int k = 0; k < s.k; k++) a.push_back(factor(values.a, map.a(m, k)));
  for (int n = 0; n < s.n; n++)
    for (int k = 0; k < s.k; k++) b.push_back(factor(values.b, map.b(k, n)));
  for (int m = 0; m < s.m; m++)
    for (int n = 0; n < s.n; n++) {
      const Held place = map.c(m, n);
      const auto lane = static_cast<size_t>(place.lane), e = static_cast<size_t>(place.element);
      Lane sum = values.c[lane][e];
      for (int k = 0; k < s.k; k++)
        sum = plus_product(sum, a[static_cast<size_t>(m * s.k + k)],
                           b[static_cast<size_t>(n * s.k + k)]);
      values.d[lane][e] = rounded(core.out, sum);
    }
  return error;
}

}  // namespace beamline
