#include <cmath>
#include <unordered_map>

#include "engine/lower/passes.h"
#include "engine/lower/sine.h"
#include "engine/lower/small_floats.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

using namespace pat;

bool nonnegative(UOp u) { return u.vmin() >= 0; }
int log2_exact(UOp u) {
  if (!u.is_const() || u.ival() <= 0 || (u.ival() & (u.ival() - 1))) return -1;
  return __builtin_ctzll(static_cast<uint64_t>(u.ival()));
}
UOp f(double v, UOp like) { return fconst(v, like.dtype()); }
UOp as_int(UOp x, DType t) { return make(Op::CAST, t, {x}); }
UOp bits(UOp x, DType t) { return make(Op::BITCAST, t, {x}); }

UOp floor_division(UOp a, UOp b) {
  if (nonnegative(a) && b.vmin() > 0) {
    if (const int k = log2_exact(b); k >= 0) return alu(Op::SHR, {a, iconst(k, a.dtype())});
    return alu(Op::CDIV, {a, b});
  }
  const UOp q = alu(Op::CDIV, {a, b}), r = alu(Op::CMOD, {a, b});
  const UOp zero = const_like(r, 0);
  return q + where(ne(r, zero) & ne(r < zero, b < const_like(b, 0)), const_like(q, -1),
                   const_like(q, 0));
}
UOp floor_modulo(UOp a, UOp b) {
  if (nonnegative(a) && b.vmin() > 0) {
    if (const int k = log2_exact(b); k >= 0)
      return alu(Op::AND, {a, iconst((int64_t{1} << k) - 1, a.dtype())});
    return alu(Op::CMOD, {a, b});
  }
  const UOp r = alu(Op::CMOD, {a, b}), zero = const_like(r, 0);
  return r + where(ne(r, zero) & ne(r < zero, b < const_like(b, 0)), b, zero);
}

// exp2(x) = 2^n * 2^f with n = round(x), |f| <= 1/2. The polynomial is the Taylor series of 2^f in
// f*ln 2: degree 7 leaves (ln2/2)^8/8! < 6e-9 relative for f32, degree 13 under 3e-18 for f64.
UOp exp2_of(UOp x) {
  const bool single = x.dtype() == DType::F32;
  const DType it = single ? DType::I32 : DType::I64;
  const double low = single ? -151.0 : -1080.0, high = single ? 129.0 : 1025.0;
  // NaN fails both comparisons and goes through; these are one minimum and one maximum instruction.
  const UOp above = where(x < f(low, x), f(low, x), x);
  const UOp clipped = where(f(high, x) < above, f(high, x), above);
  // 1.5 * 2^23 (2^52) leaves no bits for a fraction: adding it rounds to nearest, and the integer
  // is what the sum's bits differ from those of the constant by. Conversions would cost more.
  const double magic = single ? 0x1.8p23 : 0x1.8p52;
  const UOp shifted = clipped + f(magic, x);
  const UOp rounded = shifted + f(-magic, x);
  const UOp whole =
      bits(shifted, it) + iconst(single ? -int64_t{0x4b400000} : -int64_t{0x4338000000000000}, it);
  const UOp t = (clipped - rounded) * f(M_LN2, x);
  const int degree = single ? 7 : 13;
  double c = 1;
  for (int i = 2; i <= degree; i++) c /= i;
  UOp p = f(c, x);
  for (int i = degree; i >= 1; i--) p = p * t + f(c *= i, x);
  // Two factors, so that subnormal results are reached and nothing overflows early.
  const UOp half = alu(Op::SHR, {whole, iconst(1, it)});
  const auto power = [&](UOp n) {
    return bits(alu(Op::SHL, {n + iconst(single ? 127 : 1023, it), iconst(single ? 23 : 52, it)}),
                x.dtype());
  };
  return p * power(half) * power(whole - half);
}

// log2(x) = e + log2(m), m in [sqrt 1/2, sqrt 2). With f = m - 1, which is exact, s = f/(2+f) and z
// = s^2: ln m = 2s (1 + z/3 + z^2/5 + ...) = f - (h - s (h + R)), h = f^2/2, R = z (2/3 + 2z/5 +
// ...); |s| < 0.1716, so 6 terms are exact to f32 and 11 to f64. 1/ln 2 is a high and a low part,
// so that nearly all of the result is one multiply-add of f.
UOp log2_of(UOp x) {
  const bool single = x.dtype() == DType::F32;
  const DType it = single ? DType::I32 : DType::I64;
  const int mantissa = single ? 23 : 52;
  const double smallest = single ? 0x1p-126 : 0x1p-1022, scale = single ? 0x1p25 : 0x1p54;
  const UOp tiny = x < f(smallest, x);
  const UOp normal = where(tiny, x * f(scale, x), x);
  const UOp b = bits(normal, it);
  // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
  const UOp base = single ? iconst(0x3f3504f3, it) : iconst(0x3fe6a09e667f3bcd, it);
  const UOp e = alu(Op::SHR, {b - base, iconst(mantissa, it)});
  const UOp m = bits(b - alu(Op::SHL, {e, iconst(mantissa, it)}), x.dtype());
  const UOp part = m + f(-1, x), s = alu(Op::FDIV, {part, part + f(2, x)}), z = s * s;
  const int count = single ? 6 : 11;
  UOp p = f(2.0 / (2 * count - 1), x);
  for (int k = count - 1; k >= 2; k--) p = p * z + f(2.0 / (2 * k - 1), x);
  const UOp half_square = part * part * f(0.5, x);
  const UOp less = half_square - s * (half_square + p * z);
  const double high = single ? 0x1.715476p0 : 0x1.71547652b82fep0;
  const double low = single ? 0x1.4ae0c0p-26 : 0x1.777d0ffda0d24p-56;
  const UOp small = part * f(low, x) - less * f(high, x);
  const UOp exponent = cast(e, x.dtype()) - where(tiny, f(std::log2(scale), x), f(0, x));
  const UOp r = part * f(high, x) + small + exponent;
  const UOp infinite = f(INFINITY, x);
  const UOp at_edge = where(alu(Op::CMPEQ, {x, infinite}), x,
                            where(alu(Op::CMPEQ, {x, f(0, x)}), f(-INFINITY, x), r));
  return where(alu(Op::CMPNE, {x, x}) | (x < f(0, x)), f(NAN, x), at_edge);
}

// threefry2x32-20 (engine/interpret/arithmetic.cpp names the source) in u32.
UOp threefry_of(UOp counter, UOp key) {
  const auto half = [](UOp u, int by) {
    return as_int(by == 0 ? u : alu(Op::SHR, {u, iconst(by, DType::U64)}), DType::U32);
  };
  const auto u32 = [](int64_t v) { return iconst(v, DType::U32); };
  const UOp k0 = half(key, 0), k1 = half(key, 32);
  const UOp k[3] = {k0, k1, k0 ^ k1 ^ u32(0x1BD11BDA)};
  constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  UOp x0 = half(counter, 0) + k0, x1 = half(counter, 32) + k1;
  for (int round = 0; round < 20; round++) {
    const int by = rotations[round % 8];
    x0 = x0 + x1;
    x1 = (alu(Op::SHL, {x1, u32(by)}) | alu(Op::SHR, {x1, u32(32 - by)})) ^ x0;
    if (round % 4 != 3) continue;
    const int group = round / 4 + 1;
    x0 = x0 + k[group % 3];
    x1 = x1 + k[(group + 1) % 3] + u32(group);
  }
  return as_int(x0, DType::U64) | alu(Op::SHL, {as_int(x1, DType::U64), iconst(32, DType::U64)});
}

// Small floats compute in f32.
UOp through_f32(UOp u, UOp (*g)(UOp)) {
  const DType t = u.dtype();
  if (t == DType::F32 || t == DType::F64) return g(u);
  return cast(g(cast(u, DType::F32)), t);
}

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("lower-small-float", node(ops::alu | Op::CAST | Op::REDUCE).tail().as("u"), [](Cap<"u"> u) { return lower_small_float(u); }),
    rule("lower-sin",        node(Op::SIN, x),             [](X a)       { return through_f32(a, decompose_sin); }),
    rule("lower-threefry",   node(Op::THREEFRY, x, y),     [](X a, Y b)  { return threefry_of(a, b); }),
    rule("lower-floordiv",   node(Op::FLOORDIV, x, y),     [](X a, Y b)  { return floor_division(a, b); }),
    rule("lower-floormod",   node(Op::FLOORMOD, x, y),     [](X a, Y b)  { return floor_modulo(a, b); }),
    rule("lower-reciprocal", node(Op::RECIPROCAL, x),      [](X a)       { return alu(Op::FDIV, {const_like(a, 1), a}); }),
    rule("lower-exp2",       node(Op::EXP2, x),            [](X a)       { return through_f32(a, exp2_of); }),
    rule("lower-log2",       node(Op::LOG2, x),            [](X a)       { return through_f32(a, log2_of); }),
};
// clang-format on

}  // namespace

UOp decompose(UOp ast, Trace* trace) {
  static const Matcher<> m{Rules<>(table)};
  RewriteOptions options;
  options.trace = trace;
  return graph_rewrite(ast, m, nullptr, options);
}

}  // namespace beamline
