#include <immintrin.h>

#include <cstdint>
#include <string>
#include <vector>

// From here on: standard headers above must stay code for any machine.
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "tests/bench/hand_kernels.h"

namespace beamline::bench {
namespace {

struct Vector {
  using F = __m256;
  static constexpr int64_t lanes = 8;
  static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, F v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }
  static void stream(float* p, F v) { _mm256_stream_ps(p, v); }
  static void fence() { _mm_sfence(); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F scale(F a, F n) {
    const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return a * _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
  }
  static F reciprocal(F a) {
    const F r = _mm256_rcp_ps(a);
    return r * _mm256_fnmadd_ps(a, r, set(2.0f));
  }
  static float sum_of(F a) {
    float s = 0;
    for (int i = 0; i < lanes; i++) s += a[i];
    return s;
  }
  static float max_of(F a) {
    float m = a[0];
    for (int i = 1; i < lanes; i++) m = m > a[i] ? m : a[i];
    return m;
  }
  static F max_of_pairs(F a, F b) {
    const F m = max(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(m), 0xd8));
  }
  static void transpose(F (&v)[8]) {
    F t[8];
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
      for (int k = 0; k < 2; k++) {
        v[i + 2 * k] = _mm256_shuffle_ps(t[i + k], t[i + 2 + k], 0x44);
        v[i + 2 * k + 1] = _mm256_shuffle_ps(t[i + k], t[i + 2 + k], 0xee);
      }
    for (int k = 0; k < 4; k++) {
      t[k] = _mm256_permute2f128_ps(v[k], v[4 + k], 0x20);
      t[4 + k] = _mm256_permute2f128_ps(v[k], v[4 + k], 0x31);
    }
    for (int k = 0; k < 8; k++) v[k] = t[k];
  }
};

}  // namespace

HandKernel hand_avx2(HandOp op, bool streaming) {
  return streaming ? HandKernels<Vector>::find<true>(op) : HandKernels<Vector>::find<false>(op);
}

}  // namespace beamline::bench
#pragma GCC pop_options
