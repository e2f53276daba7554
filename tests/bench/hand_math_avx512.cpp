#include <immintrin.h>

#include <cstdint>
#include <string>

// From here on: standard headers above must stay code for any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#include "tests/bench/hand_math_kernels.h"

namespace beamline::bench {
namespace {

struct Vector {
  using F = __m512;
  using D = __m512d;
  using M = __mmask16;
  using I = __m512i;
  static constexpr int64_t lanes = 16;
  static constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F fms(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
  static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F abs(F a) { return _mm512_abs_ps(a); }
  static F round(F a) { return _mm512_roundscale_ps(a, to_nearest); }
  static F scale(F a, F n) { return _mm512_scalef_ps(a, n); }
  static M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static M equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static F select(M m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }
  static void split(F x, F& e, F& m) {  // m in [3/4, 3/2)
    m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
    e = _mm512_getexp_ps(x) - _mm512_getexp_ps(m);
  }
  static D dset(double x) { return _mm512_set1_pd(x); }
  static D dadd(D a, D b) { return a + b; }
  static D dsub(D a, D b) { return a - b; }
  static D dmul(D a, D b) { return a * b; }
  static D dfma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  static D dtrunc(D a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
  static D widen(F a, int half) {
    return _mm512_cvtps_pd(half ? _mm512_extractf32x8_ps(a, 1) : _mm512_castps512_ps256(a));
  }
  static F narrow(D a, D b) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1);
  }
  // The low halves of the doubles' bits, and some.
  static I quarters(D a, D b, int more) {
    const __m256i low = _mm512_cvtepi64_epi32(_mm512_castpd_si512(a));
    const __m256i high = _mm512_cvtepi64_epi32(_mm512_castpd_si512(b));
    const I k = _mm512_inserti32x8(_mm512_castsi256_si512(low), high, 1);
    return _mm512_add_epi32(k, _mm512_set1_epi32(more));
  }
  static M has_bit(I k, int bit) { return _mm512_test_epi32_mask(k, _mm512_set1_epi32(bit)); }
};

}  // namespace

HandMathKernel hand_math_avx512(HandFunction f) { return HandMath<Vector>::find(f); }

}  // namespace beamline::bench
#pragma GCC pop_options
