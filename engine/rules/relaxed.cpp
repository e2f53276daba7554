// What is true of numbers but not of NaN, Inf and the sign of zero (S33-S37 of floats, Y10,
// Z10-Z15). Only for workloads that ask for it.
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

UOp inverse(UOp x) { return alu(Op::RECIPROCAL, {x}); }
constexpr Pat inverse(const Pat& p) { return node(Op::RECIPROCAL, p); }
constexpr Pat over(const Pat& a, const Pat& b) { return node(Op::FDIV, a, b); }
inline constexpr Pat xf = x.floats();
// 1 - 1/d
UOp rest(UOp d) { return const_like(d, 1) - inverse(d); }
using D = Cap<"d">;
inline constexpr Pat d = (x + 1).as("d");  // 1 + x

// clang-format off
constexpr RuleOf<void> table[] = {
    relaxed("float-mul-zero",   xf * 0,                                 [](X x_)         { return const_like(x_, 0); }),
    relaxed("float-add-zero",   xf + 0,                                 [](X x_)         { return x_; }),
    relaxed("one-over",         over(1, xf),                            [](X x_)         { return inverse(x_); }),
    relaxed("over-self",        over(xf, x),                            [](X x_)         { return const_like(x_, 1); }),
    relaxed("mul-over",         over(xf * y, y),                        [](X x_, Y)      { return x_; }),
    relaxed("inverse-self",     xf * inverse(x),                        [](X x_)         { return const_like(x_, 1); }),
    relaxed("mul-inverse",      (xf * y) * inverse(y),                  [](X x_, Y)      { return x_; }),
    relaxed("over-over",        over(over(xf, y), z),                   [](X x_, Y y_, Z z_) { return y_ == z_ ? UOp{} : alu(Op::FDIV, {x_, y_ * z_}); }),
    relaxed("inverse-square",   inverse(xf * x),                        [](X x_)         { return inverse(x_) * inverse(x_); }),
    relaxed("inverse-cube",     inverse((xf * x) * x),                  [](X x_)         { return inverse(x_) * inverse(x_) * inverse(x_); }),
    relaxed("inverse-multiple", inverse(xf * k.floats()),               [](X x_, K k_)   { return k_.fval() == 0 ? UOp{} : inverse(x_) * fconst(1 / k_.fval(), x_.dtype()); }),
    relaxed("ratio-over",       over(xf, d),                            [](X, D d_)      { return rest(d_); }),
    relaxed("ratio",            xf * inverse(d),                        [](X, D d_)      { return rest(d_); }),
    relaxed("ratio-times",      (xf * y) * inverse(d),                  [](X, D d_, Y y_) { return rest(d_) * y_; }),
    relaxed("ratio-plus",       xf * (inverse(d) + y),                  [](X x_, D d_, Y y_) { return rest(d_) + x_ * y_; }),
};
// clang-format on

}  // namespace

const Rules<>& relaxed_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
