// Powers of floats (S43, S44, Z5): by constants first, then in general through exp2 and log2 with
// every special case of IEEE pow. Results are rounded differently, their NaN and Inf are the same.
#include <cmath>

#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

UOp number(double v, UOp like) { return fconst(v, like.dtype()); }
UOp equals(UOp a, UOp b) { return alu(Op::CMPEQ, {a, b}); }

UOp by_squaring(UOp x, int64_t n) {
  UOp r;
  for (UOp square = x;; square = square * square) {
    if (n % 2 != 0) r = r ? r * square : square;
    n /= 2;
    if (n == 0) return r;
  }
}

// x ** c
UOp constant_exponent(UOp x, UOp k) {
  constexpr double most = 64;  // a longer product rounds more often than exp2(log2) errs
  const double c = k.fval();
  if (c == 0) return number(1, x);  // of NaN too
  if (!(std::fabs(c) <= most) || std::floor(c * 2) != c * 2) return {};
  if (c < 0) return alu(Op::RECIPROCAL, {alu(Op::POW, {x, number(-c, x)})});
  const auto whole = static_cast<int64_t>(c);
  if (static_cast<double>(whole) == c) return by_squaring(x, whole);
  // pow(-0, c) is +0 and pow(-inf, c) is +inf, the square root's are -0 and NaN.
  const UOp root = alu(Op::SQRT, {x}) + number(0, x);
  const UOp r = whole == 0 ? root : by_squaring(x, whole) * root;
  return where(equals(x, number(-INFINITY, x)), number(INFINITY, x), r);
}

// c ** x
UOp constant_base(UOp k, UOp x) {
  const double c = k.fval();
  if (c == 1) return number(1, x);
  const bool wide = x.dtype() == DType::F32 || x.dtype() == DType::F64;
  if (!(c > 0) || !std::isfinite(c) || (!wide && c != 2)) return {};
  return alu(Op::EXP2, {c == 2 ? x : x * number(std::log2(c), x)});
}

UOp general(UOp x, UOp y) {
  if (x.dtype() != DType::F32 && x.dtype() != DType::F64) return {};
  const UOp zero = number(0, x), one = number(1, x), infinity = number(INFINITY, x);
  const UOp minus = x * number(-1, x);
  const UOp magnitude = where(x < zero, minus, x);
  const UOp m = where(equals(magnitude, one), one, alu(Op::EXP2, {alu(Op::LOG2, {magnitude}) * y}));
  const UOp whole = equals(alu(Op::TRUNC, {y}), y), half = y * number(0.5, y);
  const UOp signed_m = where(ne(alu(Op::TRUNC, {half}), half), m * number(-1, x), m);
  const UOp extreme = equals(magnitude, infinity) | equals(magnitude, zero);
  const UOp negative = where(whole, signed_m, where(extreme, m, number(NAN, x)));
  const UOp is_negative = (x < zero) | (alu(Op::RECIPROCAL, {x}) < zero);  // -0 is
  return where(equals(y, zero) | equals(x, one), one, where(is_negative, negative, m));
}

// clang-format off
constexpr RuleOf<void> by_constants[] = {
    rounding("power-constant", ordered(node(Op::POW, x.floats(), k.floats())), [](X x_, K k_) { return x_.dtype() == k_.dtype() ? constant_exponent(x_, k_) : UOp{}; }),
    rounding("constant-power", ordered(node(Op::POW, k.floats(), x.floats())), [](X x_, K k_) { return x_.dtype() == k_.dtype() ? constant_base(k_, x_) : UOp{}; }),
};
constexpr RuleOf<void> expansion[] = {
    rounding("power",          node(Op::POW, x.floats(), y.floats()),          [](X x_, Y y_) { return x_.dtype() == y_.dtype() ? general(x_, y_) : UOp{}; }),
};
// clang-format on

}  // namespace

const Rules<>& power_rules() {
  static const Rules<> r(by_constants);
  return r;
}
const Rules<>& power_expansion_rules() {
  static const Rules<> r(expansion);
  return r;
}

}  // namespace beamline
