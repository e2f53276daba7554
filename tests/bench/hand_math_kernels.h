// The functions as a template over a vector type (hand_math_avx2.cpp, hand_math_avx512.cpp): F are
// floats, D doubles (half as many lanes), M what a comparison gives, I 32-bit integers. fma(a, b,
// c) is a b + c, fms(a, b, c) a b - c.
#pragma once
#include <cstdint>

#include "tests/bench/hand_math.h"

namespace beamline::bench {

template <class V>
struct HandMath {
  using F = typename V::F;
  using D = typename V::D;
  using M = typename V::M;
  using I = typename V::I;
  static constexpr int64_t L = V::lanes;

  template <int N>
  static F polynomial(F x, const float (&c)[N]) {  // highest power first
    F p = V::set(c[0]);
    for (int i = 1; i < N; i++) p = V::fma(p, x, V::set(c[i]));
    return p;
  }

  // 2^(n + d): degree 6 with the least largest relative error.
  static F power(F n, F d) {
    constexpr float c[] = {1.53458122e-4f,
                           1.33999312e-3f,
                           9.61848896e-3f,
                           5.55032878e-2f,
                           2.40226469e-1f,
                           6.93147206e-1f,
                           1};
    return V::scale(polynomial(d, c), n);
  }
  static F exp2(F x) {
    x = V::min(V::set(129), V::max(V::set(-151), x));  // NaN, the second operand, stays
    const F n = V::round(x);
    return power(n, V::sub(x, n));
  }
  static F exp(F x) {
    const F c = V::set(1.44269502f);
    x = V::min(V::set(89.4f), V::max(V::set(-104.7f), x));
    const F n = V::round(V::mul(x, c));
    return power(n, V::fma(x, V::set(1.92596303e-8f), V::fms(x, c, n)));
  }

  // e and ln m of x = 2^e m, the latter as f - less.
  struct Log {
    F e, f, less;
  };
  static Log log_parts(F x) {
    Log r;
    F m;
    V::split(x, r.e, m);
    r.f = V::sub(m, V::set(1));
    const F s = V::div(r.f, V::add(r.f, V::set(2))), z = V::mul(s, s);
    constexpr float c[] = {2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3};
    const F h = V::mul(V::mul(r.f, r.f), V::set(0.5f));
    r.less = V::fnma(s, V::fma(polynomial(z, c), z, h), h);
    return r;
  }
  static F log_edges(F x, F r) {
    const F infinity = V::set(__builtin_inff()), zero = V::set(0);
    r = V::select(V::less(x, infinity), r, infinity);
    const F none =
        V::select(V::equal(x, zero), V::set(-__builtin_inff()), V::set(__builtin_nanf("")));
    return V::select(V::less(zero, x), r, none);
  }
  static F log2(F x) {
    const Log r = log_parts(x);
    const F high = V::set(0x1.715476p0f);
    const F low = V::fms(r.f, V::set(0x1.4ae0cp-26f), V::mul(r.less, high));
    return log_edges(x, V::add(V::fma(r.f, high, low), r.e));
  }
  static F log(F x) {
    const Log r = log_parts(x);
    const F low = V::fms(r.e, V::set(1.42860677e-6f), r.less);
    return log_edges(x, V::fma(r.e, V::set(0x1.62e4p-1f), V::add(r.f, low)));
  }

  // sin(x + quarters pi/2): whole turns are left out of products with parts of 1/(2 pi).
  static D reduce(D x, D& shifted) {
    constexpr double parts[] = {0x1.45f306dp-3, 0x1.9391054p-32, 0x1.4fe13abp-61, 0x1.d1f534dp-90,
                                0x1.b81b6c5p-119};
    D turns[5], sum;
    for (int i = 0; i < 5; i++) {
      const D t = V::dmul(x, V::dset(parts[i]));
      turns[i] = V::dsub(t, V::dtrunc(t));
      sum = i == 0 ? turns[0] : V::dadd(sum, turns[i]);
    }
    const D magic = V::dset(0x1.8p52);
    shifted = V::dfma(sum, V::dset(4), magic);
    D rest = V::dfma(V::dsub(shifted, magic), V::dset(-0.25), turns[0]);
    for (int i = 1; i < 5; i++) rest = V::dadd(rest, turns[i]);
    rest = V::dfma(x, V::dset(0x1.5993c439041fep-150), rest);
    return V::dmul(rest, V::dset(6.283185307179586));
  }
  template <int quarters>
  static F sine(F x) {
    D shifted[2];
    const D low = reduce(V::widen(x, 0), shifted[0]), high = reduce(V::widen(x, 1), shifted[1]);
    const F r = V::narrow(low, high), z = V::mul(r, r);
    const I k = V::quarters(shifted[0], shifted[1], quarters);
    constexpr float s[] = {1.0f / 362880, -1.0f / 5040, 1.0f / 120, -1.0f / 6};
    constexpr float c[] = {-1.0f / 3628800, 1.0f / 40320, -1.0f / 720, 1.0f / 24, -0.5f, 1};
    const F value =
        V::select(V::has_bit(k, 1), polynomial(z, c), V::fma(polynomial(z, s), V::mul(r, z), r));
    return V::select(V::has_bit(k, 2), V::sub(V::set(0), value), value);
  }

  static F tanh(F x) {
    constexpr float limit = 0.625f;
    constexpr float c[] = {1.180963861977363e-07f,  -1.6100230640993649e-06f,
                           2.1743384294740332e-05f, -0.0002964827803683265f,
                           0.0040484248725046095f,  -0.05602212918097837f,
                           0.9396094915163384f};
    const F s = V::fms(V::mul(x, x), V::set(2 / (limit * limit)), V::set(1));
    const F small = V::mul(x, polynomial(s, c));
    const F e = exp(V::mul(x, V::set(-2)));
    const F large = V::sub(V::div(V::set(2), V::add(e, V::set(1))), V::set(1));
    return V::select(V::less(V::abs(x), V::set(limit)), small, large);
  }
  static F erf(F x) {
    constexpr float near[] = {-7.552378571474216e-08f,  1.2316395977478375e-06f,
                              -1.7536914180800595e-05f, 0.0002175119206908899f,
                              -0.002285485612212242f,   0.019852497722455814f,
                              -0.14053608902112114f,    0.9654687386695371f};
    constexpr float far[] = {
        1.4902436306825285e-05f, 1.0038734352369696e-05f, -0.00021304382596404323f,
        -0.0004442396421528122f, 0.0025358644993226636f,  0.019924936681168567f,
        0.07445456261589361f,    0.19430105388073776f,    0.13699945762506138f};
    const F square = V::mul(x, x), magnitude = V::abs(x), one = V::set(1);
    const F small = V::mul(x, polynomial(V::fms(square, V::set(2), one), near));
    const F s = V::fms(V::div(one, V::add(magnitude, V::set(2))), V::set(6), one);
    const F tail = V::mul(exp(V::sub(V::set(0), square)), polynomial(s, far));
    const F positive = V::sub(one, tail);
    const F large = V::select(V::less(x, V::set(0)), V::sub(V::set(0), positive), positive);
    return V::select(V::less(magnitude, one), small, large);
  }

  template <F (*f)(F)>
  static void all(float* out, const float* in, int64_t n) {
    for (int64_t i = 0; i < n; i += 2 * L) {
      V::store(out + i, f(V::load(in + i)));
      V::store(out + i + L, f(V::load(in + i + L)));
    }
  }
  static HandMathKernel find(HandFunction f) {
    switch (f) {
      case HandFunction::Sin: return all<sine<0>>;
      case HandFunction::Cos: return all<sine<1>>;
      case HandFunction::Exp2: return all<exp2>;
      case HandFunction::Log2: return all<log2>;
      case HandFunction::Exp: return all<exp>;
      case HandFunction::Log: return all<log>;
      case HandFunction::Tanh: return all<tanh>;
      case HandFunction::Erf: return all<erf>;
    }
    return nullptr;
  }
};

}  // namespace beamline::bench
