#include <immintrin.h>

#include <cstdint>
#include <string>
#include <vector>

// From here on: standard headers above must stay code for any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#include "tests/bench/hand_kernels.h"

namespace beamline::bench {
namespace {

struct Vector {
  using F = __m512;
  static constexpr int64_t lanes = 16;
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static void store(float* p, F v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static void stream(float* p, F v) { _mm512_stream_ps(p, v); }
  static void fence() { _mm_sfence(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT); }
  static F scale(F a, F n) { return _mm512_scalef_ps(a, n); }
  static F reciprocal(F a) {
    const F r = _mm512_rcp14_ps(a);
    return r * _mm512_fnmadd_ps(a, r, set(2.0f));
  }
  static float sum_of(F a) { return _mm512_reduce_add_ps(a); }
  static float max_of(F a) { return _mm512_reduce_max_ps(a); }
  static F max_of_pairs(F a, F b) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    return max(_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b));
  }
  // Pairs of lanes, then of pairs, then quarters across the vector.
  static void transpose(F (&v)[16]) {
    F t[16];
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
      for (int k = 0; k < 2; k++) {
        const __m512d a = _mm512_castps_pd(t[i + k]), b = _mm512_castps_pd(t[i + 2 + k]);
        v[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
        v[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
      }
    for (int k = 0; k < 4; k++) {
      t[k] = _mm512_shuffle_f32x4(v[k], v[4 + k], 0x88);
      t[4 + k] = _mm512_shuffle_f32x4(v[k], v[4 + k], 0xdd);
      t[8 + k] = _mm512_shuffle_f32x4(v[8 + k], v[12 + k], 0x88);
      t[12 + k] = _mm512_shuffle_f32x4(v[8 + k], v[12 + k], 0xdd);
    }
    for (int k = 0; k < 4; k++) {
      v[k] = _mm512_shuffle_f32x4(t[k], t[8 + k], 0x88);
      v[8 + k] = _mm512_shuffle_f32x4(t[k], t[8 + k], 0xdd);
      v[4 + k] = _mm512_shuffle_f32x4(t[4 + k], t[12 + k], 0x88);
      v[12 + k] = _mm512_shuffle_f32x4(t[4 + k], t[12 + k], 0xdd);
    }
  }
};

}  // namespace

HandKernel hand_avx512(HandOp op, bool streaming) {
  return streaming ? HandKernels<Vector>::find<true>(op) : HandKernels<Vector>::find<false>(op);
}

}  // namespace beamline::bench
#pragma GCC pop_options
