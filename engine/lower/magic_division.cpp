#include "engine/lower/magic_division.h"

#include <algorithm>
#include <bit>

#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

using namespace pat;
using Wide = unsigned __int128;

constexpr Wide two_to(int n) { return Wide{1} << n; }

struct Magic {
  Wide multiplier;  // at most one bit longer than the largest dividend
  int shift;
};
// 3 <= d <= most / 2, d no power of two.
Magic magic_of(uint64_t most, uint64_t d) {
  const Wide last = (Wide{most} + 1) / d * d - 1;  // the largest x <= most with x % d == d - 1
  for (int s = 0;; s++) {
    const Wide missing = d - 1 - (two_to(s) - 1) % d;
    if (two_to(s) > last * missing) return {(two_to(s) + missing) / d, s};
  }
}

int bits_of(DType t) { return 8 * dtype_bytes(t); }
UOp constant(uint64_t v, DType t) { return iconst(wrap_to(t, static_cast<int64_t>(v)), t); }
UOp shifted(UOp x, int by) { return by == 0 ? x : alu(Op::SHR, {x, iconst(by, x.dtype())}); }
UOp as(UOp x, DType t) { return x.dtype() == t ? x : make(Op::CAST, t, {x}); }
UOp negated(UOp x) { return alu(Op::MUL, {x, const_like(x, -1)}); }
// All ones where x is negative.
UOp sign_of(UOp x) { return shifted(x, bits_of(x.dtype()) - 1); }

// The upper half of a product of u64, by halves.
UOp high_product(UOp x, uint64_t m) {
  const auto u64 = [](uint64_t v) { return constant(v, DType::U64); };
  const uint64_t half = 0xffffffff;
  const UOp x0 = x & u64(half), x1 = shifted(x, 32), m0 = u64(m & half), m1 = u64(m >> 32);
  const UOp middle = x1 * m0 + shifted(x0 * m0, 32);
  return x1 * m1 + shifted(middle, 32) + shifted(x0 * m1 + (middle & u64(half)), 32);
}

// x / d of a value 0 <= x <= most, in x's type.
UOp quotient(UOp x, uint64_t most, uint64_t d) {
  const DType t = x.dtype();
  if (most < d) return const_like(x, 0);
  if (std::has_single_bit(d)) return shifted(x, std::countr_zero(d));
  if (most / d == 1) return where(x < constant(d, t), const_like(x, 0), const_like(x, 1));
  const auto [m, s] = magic_of(most, d);
  const int value_bits = bits_of(t) - (is_unsigned(t) ? 0 : 1);
  const auto fits = [&](int n) { return most == 0 || m <= (two_to(n) - 1) / most; };
  for (const auto& [type, n] : {std::pair(t, value_bits), {DType::U32, 32}, {DType::U64, 64}})
    if (bits_of(type) >= bits_of(t) && fits(n))
      return as(shifted(as(x, type) * constant(static_cast<uint64_t>(m), type), s), t);
  const UOp wide = as(x, DType::U64);
  if (most < two_to(32)) {  // m has 33 bits: x * m = x * (m - 2^32) + x * 2^32
    const UOp low = wide * constant(static_cast<uint64_t>(m - two_to(32)), DType::U64);
    return as(shifted(shifted(low, 32) + wide, s - 32), t);
  }
  if (m >= two_to(64)) {  // 65 bits; the sum of halves does not carry
    const UOp high = high_product(wide, static_cast<uint64_t>(m - two_to(64)));
    return as(shifted(shifted(wide + negated(high), 1) + high, s - 65), t);
  }
  const int more = std::max(0, 64 - s);
  return as(shifted(high_product(wide, static_cast<uint64_t>(m << more)), s + more - 64), t);
}

struct Bounds {
  int64_t low;
  uint64_t most;  // the largest of x and ~x
};
Bounds bounds_of(UOp x) {
  if (x.dtype() == DType::U64) return {0, ~uint64_t{0}};  // bounds end at 2^63 - 1
  return {x.vmin(), static_cast<uint64_t>(std::max(x.vmax(), ~x.vmin()))};
}

UOp truncating(UOp x, int64_t d);

// floor(x / d). Below zero it is ~((~x) / d); by -d it is -ceil(x / d).
UOp flooring(UOp x, int64_t d) {
  const DType t = x.dtype();
  if (is_unsigned(t) || x.vmin() >= 0) {
    if (is_unsigned(t) || d > 0) return quotient(x, bounds_of(x).most, static_cast<uint64_t>(d));
  }
  if (d == dtype_min(t))
    return where(alu(Op::CMPEQ, {x, constant(static_cast<uint64_t>(d), t)}), const_like(x, 1),
                 where(const_like(x, 0) < x, const_like(x, -1), const_like(x, 0)));
  if (d < 0) {
    const UOp q = flooring(x, -d), rest = x + q * const_like(x, d);
    return negated(q + where(ne(rest, const_like(x, 0)), const_like(x, 1), const_like(x, 0)));
  }
  const auto divisor = static_cast<uint64_t>(d);
  if (std::has_single_bit(divisor)) return shifted(x, std::countr_zero(divisor));
  const UOp sign = sign_of(x);
  return quotient(x ^ sign, bounds_of(x).most, divisor) ^ sign;
}

// Rounds towards zero: the quotient of the absolute values, which are unsigned, with the sign.
UOp truncating(UOp x, int64_t d) {
  const DType t = x.dtype();
  if (is_unsigned(t) || (x.vmin() >= 0 && d > 0)) return flooring(x, d);
  if (d == dtype_min(t))
    return where(alu(Op::CMPEQ, {x, constant(static_cast<uint64_t>(d), t)}), const_like(x, 1),
                 const_like(x, 0));
  if (d < 0) return negated(truncating(x, -d));
  constexpr DType unsigned_of[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  const DType wide = unsigned_of[std::countr_zero(static_cast<unsigned>(dtype_bytes(t)))];
  const UOp sign = sign_of(x), size = as((x ^ sign) + negated(sign), wide);
  const UOp q = as(quotient(size, bounds_of(x).most + 1, static_cast<uint64_t>(d)), t);
  return (q ^ sign) + negated(sign);
}

template <UOp divided(UOp, int64_t)>
UOp magic_quotient(UOp x, UOp d) {
  if (!is_int(x.dtype()) || is_weak(x.dtype()) || x.dtype() != d.dtype() || d.ival() == 0)
    return {};
  return divided(x, d.ival());
}
template <UOp divided(UOp, int64_t)>
UOp magic_remainder(UOp x, UOp d) {
  const UOp q = magic_quotient<divided>(x, d);
  if (!q) return {};
  const auto divisor = static_cast<uint64_t>(d.ival());
  const bool whole = is_unsigned(x.dtype()) || d.ival() > 0;
  if (whole && std::has_single_bit(divisor) && (divided == flooring || x.vmin() >= 0))
    return x & constant(divisor - 1, x.dtype());
  return x + negated(q * d);
}

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("magic-floordiv", x / c0,                   [](X a, C0 d) { return magic_quotient<flooring>(a, d); }),
    rule("magic-floormod", x % c0,                   [](X a, C0 d) { return magic_remainder<flooring>(a, d); }),
    rule("magic-cdiv",     node(Op::CDIV, x, c0),    [](X a, C0 d) { return magic_quotient<truncating>(a, d); }),
    rule("magic-cmod",     node(Op::CMOD, x, c0),    [](X a, C0 d) { return magic_remainder<truncating>(a, d); }),
};
// clang-format on

}  // namespace

const Rules<>& magic_division_rules() {
  static const Rules<> rules(table);
  return rules;
}

UOp magic_division(UOp ast, Trace* trace) {
  static const Matcher<> m{magic_division_rules()};
  RewriteOptions options;
  options.trace = trace;
  return graph_rewrite(ast, m, nullptr, options);
}

}  // namespace beamline
