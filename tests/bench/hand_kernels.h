// Memory-bound kernels written by hand with intrinsics: what the compiled ones are held against.
// A template over a vector type (hand_avx2.cpp, hand_avx512.cpp); what each does is the best that
// was found by hand: registers transposed in square tiles, one pass over a row that stays in the
// first-level cache, rows of accumulators, even and odd lanes by permutation. Sizes along a vector
// are multiples of its lanes, except those of max_pool.
#pragma once
#include <cstdint>

#include "tests/bench/hand.h"

namespace beamline::bench {

template <class V>
struct HandKernels {
  using F = typename V::F;
  static constexpr int64_t L = V::lanes;
  static constexpr int64_t longest_row = 16384;

  template <bool nt>
  static void put(float* p, F v) {
    if constexpr (nt)
      V::stream(p, v);
    else
      V::store(p, v);
  }

  // 2^n * 2^f, f in [-1/2, 1/2] times ln 2: Taylor's series, relative error 2e-7.
  static F exp(F x) {
    x = V::max(V::min(x, V::set(88.0f)), V::set(-87.0f));
    const F n = V::round(V::mul(x, V::set(1.44269504f)));
    F r = V::fma(n, V::set(-0.693359375f), x);
    r = V::fma(n, V::set(2.12194440e-4f), r);
    F p = V::set(1.0f / 720);
    for (float c : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = V::fma(p, r, V::set(c));
    return V::scale(p, n);
  }

  template <bool nt>
  static void add(const HandArgs& a) {
    for (int64_t i = 0; i < a.rows * a.columns; i += 2 * L) {
      put<nt>(a.out + i, V::add(V::load(a.in[0] + i), V::load(a.in[1] + i)));
      put<nt>(a.out + i + L, V::add(V::load(a.in[0] + i + L), V::load(a.in[1] + i + L)));
    }
  }

  // x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3).
  template <bool nt>
  static void gelu(const HandArgs& a) {
    const F c1 = V::set(-2 * 0.7978845608f), c3 = V::set(-2 * 0.7978845608f * 0.044715f);
    const F one = V::set(1.0f);
    const auto step = [&](int64_t i) {
      const F x = V::load(a.in[0] + i);
      const F u = V::mul(x, V::fma(V::mul(x, x), c3, c1));
      put<nt>(a.out + i, V::mul(x, V::reciprocal(V::add(one, exp(u)))));
    };
    for (int64_t i = 0; i < a.rows * a.columns; i += 2 * L) step(i), step(i + L);
  }

  template <bool nt>
  static void softmax(const HandArgs& a) {
    alignas(64) float row[longest_row];
    for (int64_t r = 0; r < a.rows; r++) {
      const float* x = a.in[0] + r * a.columns;
      F m0 = V::load(x), m1 = m0;
      for (int64_t i = 0; i < a.columns; i += 2 * L)
        m0 = V::max(m0, V::load(x + i)), m1 = V::max(m1, V::load(x + i + L));
      const F most = V::set(V::max_of(V::max(m0, m1)));
      F s0 = V::set(0), s1 = s0;
      for (int64_t i = 0; i < a.columns; i += 2 * L) {
        const F e0 = exp(V::sub(V::load(x + i), most)), e1 = exp(V::sub(V::load(x + i + L), most));
        V::store(row + i, e0), V::store(row + i + L, e1);
        s0 = V::add(s0, e0), s1 = V::add(s1, e1);
      }
      const F share = V::set(1.0f / V::sum_of(V::add(s0, s1)));
      float* y = a.out + r * a.columns;
      for (int64_t i = 0; i < a.columns; i += L) put<nt>(y + i, V::mul(V::load(row + i), share));
    }
  }

  // Sums of differences to the row's first element, in one pass.
  template <bool nt>
  static void layer_norm(const HandArgs& a) {
    for (int64_t r = 0; r < a.rows; r++) {
      const float* x = a.in[0] + r * a.columns;
      const F shift = V::set(x[0]);
      F s[4], q[4];
      for (int k = 0; k < 4; k++) s[k] = q[k] = V::set(0);
      for (int64_t i = 0; i < a.columns; i += 4 * L)
        for (int k = 0; k < 4; k++) {
          const F d = V::sub(V::load(x + i + k * L), shift);
          s[k] = V::add(s[k], d), q[k] = V::fma(d, d, q[k]);
        }
      const auto n = static_cast<float>(a.columns);
      const float mean = V::sum_of(V::add(V::add(s[0], s[1]), V::add(s[2], s[3]))) / n;
      const float square = V::sum_of(V::add(V::add(q[0], q[1]), V::add(q[2], q[3]))) / n;
      const float scale = 1 / __builtin_sqrtf(square - mean * mean + a.epsilon);
      const F m = V::set(-(mean + x[0]) * scale), f = V::set(scale);
      float* y = a.out + r * a.columns;
      for (int64_t i = 0; i < a.columns; i += L)
        put<nt>(y + i,
                V::fma(V::fma(V::load(x + i), f, m), V::load(a.in[1] + i), V::load(a.in[2] + i)));
    }
  }

  // Streaming: tiles of one vector of rows by two of columns, so that pairs of cache lines are
  // read whole. Otherwise such tiles inside of blocks of 64 rows by 256 columns.
  template <bool nt>
  static void transpose(const HandArgs& a) {
    const int64_t block_rows = nt ? L : 64, block_columns = nt ? 2 * L : 256;
    for (int64_t r0 = 0; r0 < a.rows; r0 += block_rows)
      for (int64_t c0 = 0; c0 < a.columns; c0 += block_columns)
        for (int64_t c = c0; c < c0 + block_columns; c += L)
          for (int64_t r = r0; r < r0 + block_rows; r += L) {
            F v[L];
            for (int64_t i = 0; i < L; i++) v[i] = V::load(a.in[0] + (r + i) * a.columns + c);
            V::transpose(v);
            for (int64_t i = 0; i < L; i++) put<nt>(a.out + (c + i) * a.rows + r, v[i]);
          }
  }

  // 2x2, stride 2, of rows * columns planes laid out one below the other; the width is even.
  template <bool nt>
  static void max_pool(const HandArgs& a) {
    const int64_t width = a.columns / 2;
    const bool streams = nt && width % L == 0;  // such stores are aligned
    for (int64_t r = 0; r < a.rows / 2; r++) {
      const float* x = a.in[0] + 2 * r * a.columns;
      const float* below = x + a.columns;
      float* y = a.out + r * width;
      int64_t i = 0;
      for (; i + L <= width; i += L) {
        const F v0 = V::max(V::load(x + 2 * i), V::load(below + 2 * i));
        const F v1 = V::max(V::load(x + 2 * i + L), V::load(below + 2 * i + L));
        if (streams)
          V::stream(y + i, V::max_of_pairs(v0, v1));
        else
          V::store(y + i, V::max_of_pairs(v0, v1));
      }
      if (const int64_t rest = width - i; rest > 0) {
        const int64_t first = 2 * rest < L ? 2 * rest : L, second = 2 * rest - first;
        const F v0 = V::max(V::load(x + 2 * i, first), V::load(below + 2 * i, first));
        const F v1 = V::max(V::load(x + 2 * i + L, second), V::load(below + 2 * i + L, second));
        V::store(y + i, V::max_of_pairs(v0, v1), rest);
      }
    }
  }

  template <bool nt>
  static void row_sum(const HandArgs& a) {
    for (int64_t r = 0; r < a.rows; r++) {
      const float* x = a.in[0] + r * a.columns;
      F s[8];
      for (F& v : s) v = V::set(0);
      for (int64_t i = 0; i < a.columns; i += 8 * L)
        for (int k = 0; k < 8; k++) s[k] = V::add(s[k], V::load(x + i + k * L));
      for (int step = 4; step > 0; step /= 2)
        for (int k = 0; k < step; k++) s[k] = V::add(s[k], s[k + step]);
      a.out[r] = V::sum_of(s[0]);
    }
  }

  // Eight rows at a time onto a row of sums that stays in the first-level cache.
  template <bool nt>
  static void column_sum(const HandArgs& a) {
    for (int64_t r = 0; r < a.rows; r += 8)
      for (int64_t i = 0; i < a.columns; i += L) {
        const float* x = a.in[0] + r * a.columns + i;
        F s = r == 0 ? V::set(0) : V::load(a.out + i);
        F t = V::load(x);
        for (int k = 1; k < 8; k++)
          (k % 2 ? s : t) = V::add(k % 2 ? s : t, V::load(x + k * a.columns));
        V::store(a.out + i, V::add(s, t));
      }
  }

  template <bool nt>
  static HandKernel find(HandOp op) {
    switch (op) {
      case HandOp::Add: return [](const HandArgs& a) { add<nt>(a), V::fence(); };
      case HandOp::Gelu: return [](const HandArgs& a) { gelu<nt>(a), V::fence(); };
      case HandOp::Softmax: return [](const HandArgs& a) { softmax<nt>(a), V::fence(); };
      case HandOp::LayerNorm: return [](const HandArgs& a) { layer_norm<nt>(a), V::fence(); };
      case HandOp::Transpose: return [](const HandArgs& a) { transpose<nt>(a), V::fence(); };
      case HandOp::MaxPool: return [](const HandArgs& a) { max_pool<nt>(a), V::fence(); };
      case HandOp::RowSum: return nt ? nullptr : row_sum<nt>;
      case HandOp::ColumnSum: return nt ? nullptr : column_sum<nt>;
    }
    return nullptr;
  }
};

}  // namespace beamline::bench
