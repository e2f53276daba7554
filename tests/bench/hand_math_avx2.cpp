#include <immintrin.h>

#include <cstdint>
#include <string>

// From here on: standard headers above must stay code for any machine.
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "tests/bench/hand_math_kernels.h"

namespace beamline::bench {
namespace {

struct Vector {
  using F = __m256;
  using D = __m256d;
  using M = __m256;
  using I = __m256i;
  static constexpr int64_t lanes = 8;
  static constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F fms(F a, F b, F c) { return _mm256_fmsub_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F abs(F a) { return _mm256_andnot_ps(set(-0.0f), a); }
  static F round(F a) { return _mm256_round_ps(a, to_nearest); }
  static F power(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  // Two factors reach subnormal numbers and infinity.
  static F scale(F a, F n) {
    const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return a * power(half) * power(_mm256_sub_epi32(whole, half));
  }
  static M less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static M equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static F select(M m, F yes, F no) { return _mm256_blendv_ps(no, yes, m); }
  static void split(F x, F& e, F& m) {  // m in [sqrt(1/2), sqrt(2))
    const M tiny = less(x, set(0x1p-126f));
    const __m256i bits = _mm256_castps_si256(select(tiny, x * set(0x1p25f), x));
    const __m256i from = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3));
    const __m256i n = _mm256_srai_epi32(from, 23);
    m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(n, 23)));
    e = _mm256_cvtepi32_ps(n) - _mm256_and_ps(tiny, set(25));
  }
  static D dset(double x) { return _mm256_set1_pd(x); }
  static D dadd(D a, D b) { return a + b; }
  static D dsub(D a, D b) { return a - b; }
  static D dmul(D a, D b) { return a * b; }
  static D dfma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
  static D dtrunc(D a) { return _mm256_round_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
  static D widen(F a, int half) {
    return _mm256_cvtps_pd(half ? _mm256_extractf128_ps(a, 1) : _mm256_castps256_ps128(a));
  }
  static F narrow(D a, D b) { return _mm256_set_m128(_mm256_cvtpd_ps(b), _mm256_cvtpd_ps(a)); }
  // The low halves of the doubles' bits, and some.
  static I quarters(D a, D b, int more) {
    const F mixed = _mm256_shuffle_ps(_mm256_castpd_ps(a), _mm256_castpd_ps(b), 0x88);
    const I k = _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
    return _mm256_add_epi32(k, _mm256_set1_epi32(more));
  }
  static M has_bit(I k, int bit) {
    const I mask = _mm256_set1_epi32(bit);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(k, mask), mask));
  }
};

}  // namespace

HandMathKernel hand_math_avx2(HandFunction f) { return HandMath<Vector>::find(f); }

}  // namespace beamline::bench
#pragma GCC pop_options
