#include "engine/lower/exponential.h"

#include <cmath>
#include <vector>

#include "engine/base/check.h"

namespace beamline {
namespace {

// A number as the sum of two doubles.
struct Pair {
  double high = 0, low = 0;
};
constexpr Pair log2_e = {0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56};
constexpr Pair ln_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// What f32 and f64 differ in.
struct Format {
  DType integer;
  int mantissa, bias, degree, terms;
  double low, high;  // 2^low rounds to zero, 2^high to infinity
  double smallest, scale;
  double magic;       // 1.5 * 2^mantissa: sums with it have no fraction
  int64_t root_half;  // bits of sqrt(1/2)
  int spare;          // bits of an exponent, and some
};
constexpr Format single = {DType::I32, 23,       127,    6,        6,          -151,
                           129,        0x1p-126, 0x1p25, 0x1.8p23, 0x3f3504f3, 9};
constexpr Format twice = {
    DType::I64, 52, 1023, 13, 11, -1076, 1025, 0x1p-1022, 0x1p54, 0x1.8p52, 0x3fe6a09e667f3bcd, 12};

// Of 2^d, |d| <= 1/2, for f32, with the least largest relative error: 1.9e-9 (Remez's exchange, in
// 40 digits).
constexpr double power_of_2[] = {0x1.00000002614f8p+0, 0x1.62e430c7e8fafp-1, 0x1.ebfbdadcb1bcep-3,
                                 0x1.c6aed4b98241ap-5, 0x1.3b2dbbc08f82cp-7, 0x1.5f456a784f2dfp-10,
                                 0x1.41d333a2e39d1p-13};

const Format& format(DType t) {
  CHECK(t == DType::F32 || t == DType::F64);
  return t == DType::F32 ? single : twice;
}
UOp f(double v, UOp like) { return fconst(v, like.dtype()); }
UOp bits(UOp x, DType t) { return make(Op::BITCAST, t, {x}); }

// c as k times the constant, where c is that number as exactly as its type holds it and k has few
// digits; else as itself.
Pair recognised(double c, Pair constant, DType t) {
  int exponent = 0;
  const double m = std::frexp(c / constant.high, &exponent);
  const double k = std::ldexp(std::nearbyint(std::ldexp(m, 10)), exponent - 10);
  if (!std::isfinite(k) || round_to(t, k * constant.high) != c) return {c, 0};
  return {k * constant.high, std::fma(k, constant.high, -(k * constant.high)) + k * constant.low};
}

}  // namespace

// 2^x = 2^n 2^d with n = round(x), |d| <= 1/2. The polynomial of f64 is the Taylor series: degree
// 13 leaves under 3e-18 relative.
UOp decompose_exp2(UOp x) {
  const Format& of = format(x.dtype());
  double factor = 1, lost = 0;  // x = y * (factor + lost)
  UOp y = x;
  if (x.op() == Op::MUL && x.src(1).is_const()) {
    const double c = x.src(1).fval();
    if (std::fabs(c) > 0x1p-60 && std::fabs(c) < 0x1p60) {
      const Pair whole = recognised(c, log2_e, x.dtype());
      y = x.src(0), factor = c, lost = (whole.high - c) + whole.low;
    }
  }
  const auto times = [&](double c) { return c == 1 ? y : y * f(c, x); };
  const double first = of.low / factor, second = of.high / factor;
  const UOp least = f(std::fmin(first, second), x), most = f(std::fmax(first, second), x);
  // NaN fails both comparisons and goes through; these are one minimum and one maximum instruction.
  y = where(y < least, least, y);
  y = where(most < y, most, y);
  // Adding the magic number rounds to nearest, and leaves n in the lowest bits of the sum.
  const UOp shifted = times(factor) + f(of.magic, x);
  const UOp rounded = shifted + f(-of.magic, x);
  UOp d = factor == 1 ? y - rounded : times(-factor) + rounded;  // one product, used once: it fuses
  if (factor != 1 && lost != 0) d = times(-lost) + d;
  const double sign = factor == 1 ? 1 : -1;
  std::vector<double> c;  // twice the power, see below
  if (x.dtype() == DType::F32)
    for (double of_d : power_of_2) c.push_back(2 * of_d * (c.size() % 2 == 1 ? sign : 1));
  else
    for (c.push_back(2); c.size() <= static_cast<size_t>(of.degree);)
      c.push_back(c.back() * M_LN2 * sign / static_cast<double>(c.size()));
  UOp p = f(c.back(), x);
  for (int i = of.degree - 1; i >= 0; i--) p = p * d + f(c[static_cast<size_t>(i)], x);
  // 2^(n-1) times twice the rest does not overflow early; below 1 another 2^64 is taken out at the
  // end, so that subnormal results are rounded once.
  const DType it = of.integer;
  const UOp n = alu(Op::SHL, {bits(shifted, it), iconst(of.mantissa, it)});
  const UOp negative = shifted < f(of.magic, x);
  const auto biased = [&](int by) {
    return iconst(static_cast<int64_t>(of.bias + by) << of.mantissa, it);
  };
  const UOp r = p * bits(n + where(negative, biased(63), biased(-1)), x.dtype());
  return where(negative, r * f(0x1p-64, x), r);
}

// log2(x) = e + log2(m), m in [sqrt 1/2, sqrt 2). With f = m - 1, which is exact, s = f/(2+f) and z
// = s^2: ln m = 2s (1 + z/3 + z^2/5 + ...) = f - (h - s (h + R)), h = f^2/2, R = z (2/3 + 2z/5 +
// ...); |s| < 0.1716, so 6 terms are exact to f32 and 11 to f64. Constants are a high and a low
// part, so that nearly all of the result is one multiply-add of f.
UOp decompose_log2(UOp x, double factor) {
  const Format& of = format(x.dtype());
  const DType t = x.dtype(), it = of.integer;
  const Pair k = factor == 1 ? Pair{1, 0} : recognised(factor, ln_2, t);
  const UOp tiny = x < f(of.smallest, x);
  const UOp normal = where(tiny, x * f(of.scale, x), x);
  const UOp b = bits(normal, it);
  // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
  const UOp e = alu(Op::SHR, {b - iconst(of.root_half, it), iconst(of.mantissa, it)});
  const UOp m = bits(b - alu(Op::SHL, {e, iconst(of.mantissa, it)}), t);
  const UOp part = m + f(-1, x), s = alu(Op::FDIV, {part, part + f(2, x)}), z = s * s;
  UOp p = f(2.0 / (2 * of.terms - 1), x);
  for (int i = of.terms - 1; i >= 2; i--) p = p * z + f(2.0 / (2 * i - 1), x);
  const UOp half_square = part * part * f(0.5, x);
  const UOp less = half_square - s * (half_square + p * z);
  // Of ln m: factor * log2 e. Of e: the factor, with a high part whose products with e are exact.
  const double scale = k.high * log2_e.high;
  const double high = round_to(t, scale), low = (std::fma(k.high, log2_e.high, -high)) +
                                                k.high * log2_e.low + k.low * log2_e.high;
  const double unit = std::ldexp(1.0, std::ilogb(k.high) - (of.mantissa - of.spare));
  const double whole = std::nearbyint(k.high / unit) * unit, rest = (k.high - whole) + k.low;
  const auto plus = [&](UOp sum, UOp u, double c) {
    return round_to(t, c) == 0 ? sum : c == 1 ? sum + u : u * f(c, x) + sum;
  };
  const UOp exponent = cast(e, t) - where(tiny, f(std::log2(of.scale), x), f(0, x));
  UOp r = high == 1 ? less * f(-1, x) : less * f(-high, x);
  r = plus(r, part, std::fabs(low) < std::fabs(high) * 0x1p-70 ? 0 : low);
  r = plus(r, exponent, rest);
  r = plus(plus(r, part, high), exponent, whole);
  const UOp infinite = f(INFINITY, x);
  const double end = std::copysign(INFINITY, factor);
  const UOp finite = where(x < infinite, r, f(end, x));
  const UOp none = where(alu(Op::CMPEQ, {x, f(0, x)}), f(-end, x), f(NAN, x));
  return where(f(0, x) < x, finite, none);
}

}  // namespace beamline
