// Identities of one operation, true for every value (engine.md S1-S32). Those that would change the
// NaN or Inf of a float ask for integers.
#include <cmath>

#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
using M = Cap<"m">;

constexpr OpSet div_or_shift = Op::SHR | Op::FLOORDIV;

bool clears_only_low_bits(int64_t mask, int64_t bits) {
  return bits >= 0 && bits < 62 && (mask | ((int64_t{1} << bits) - 1)) == -1;
}
// (x & mask) >> n, (x & mask) // 2^n where the mask clears only bits that are shifted out.
UOp drop_mask(UOp u, UOp x, UOp mask, UOp n) {
  int64_t bits = n.ival();
  if (x.dtype() != u.dtype()) return {};
  if (u.op() == Op::FLOORDIV) {
    if (bits <= 0 || (bits & (bits - 1)) != 0) return {};
    bits = __builtin_ctzll(static_cast<uint64_t>(bits));
  }
  int64_t m = mask.ival();
  const DType t = u.dtype();
  if (is_unsigned(t) && t != DType::U64) m |= ~dtype_max(t);
  return clears_only_low_bits(m, bits) ? alu(u.op(), {x, n}) : UOp{};
}
UOp of_bools(UOp u, UOp x, UOp y, Op op) {
  return x.dtype() == DType::Bool && y.dtype() == DType::Bool && u.dtype() == DType::Bool
             ? alu(op, {x, y})
             : UOp{};
}
// int(b) != c
UOp compare_cast_bool(UOp u, UOp b, UOp c) {
  const bool equal = u.op() == Op::CMPEQ;
  c = as_type(c, join(u.src(0).dtype(), u.src(1).dtype()));
  if (c.is_const(0)) return equal ? negation(b) : b;
  if (c.is_const(1)) return equal ? b : negation(b);
  return bool_const(!equal);
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("add-zero",        xi + 0,                                       [](X x_)            { return x_; }),
    law("xor-zero",        xi ^ 0,                                       [](X x_)            { return x_; }),
    law("or-zero",         xi | 0,                                       [](X x_)            { return x_; }),
    law("shift-zero",      node(ops::shifts, x, 0),                      [](X x_)            { return x_; }),
    law("mul-one",         x * 1,                                        [](X x_)            { return x_; }),
    law("mul-zero",        xi * 0,                                       [](X x_)            { return const_like(x_, 0); }),
    law("div-self",        xi / x,                                       [](X x_)            { return const_like(x_, 1); }),
    law("div-one",         xi / 1,                                       [](X x_)            { return x_; }),
    law("mod-self",        xi % x,                                       [](X x_)            { return const_like(x_, 0); }),
    law("mod-one",         xi % 1,                                       [](X x_)            { return const_like(x_, 0); }),
    law("mod-mod",         (xi % y).as("m") % y,                         [](X, Y, M m)       { return m; }),
    law("xor-xor",         (x ^ y) ^ y,                                  [](X x_, Y)         { return x_; }),
    law("xor-self",        x ^ x,                                        [](X x_)            { return const_like(x_, 0); }),
    law("and-zero",        xi & 0,                                       [](X x_)            { return const_like(x_, 0); }),
    law("and-ones",        xi & Pat(-1),                                 [](X x_)            { return x_; }),
    law("and-false",       b & untruth,                                  [](B)               { return bool_const(false); }),
    law("and-true",        b & truth,                                    [](B b_)            { return b_; }),
    law("or-false",        b | untruth,                                  [](B b_)            { return b_; }),
    law("or-true",         b | truth,                                    [](B)               { return bool_const(true); }),
    law("idempotent",      node(ops::idempotent, x, x),                  [](X x_)            { return x_; }),
    law("and-absorbs",     x & (x | y),                                  [](X x_, Y)         { return x_; }),
    law("or-absorbs",      x | (x & y),                                  [](X x_, Y)         { return x_; }),
    law("and-opposite",    b & negated(b),                               [](B)               { return bool_const(false); }),
    law("or-opposite",     b | negated(b),                               [](B)               { return bool_const(true); }),
    law("ne-false",        node(Op::CMPNE, b, untruth),                  [](B b_)            { return b_; }),
    law("eq-true",         node(Op::CMPEQ, b, truth),                    [](B b_)            { return b_; }),
    law("eq-false",        node(Op::CMPEQ, b, untruth),                  [](B b_)            { return logical_not(b_); }),
    law("xor-true",        b ^ truth,                                    [](B b_)            { return logical_not(b_); }),
    law("xor-false",       b ^ untruth,                                  [](B b_)            { return b_; }),
    law("not-not",         negated(negated(b)),                          [](B b_)            { return b_; }),
    law("not-ne",          negated(node(Op::CMPNE, x, y)),               [](X x_, Y y_)      { return alu(Op::CMPEQ, {x_, y_}); }),
    law("not-eq",          negated(node(Op::CMPEQ, x, y)),               [](X x_, Y y_)      { return ne(x_, y_); }),
    law("cast-bool-ne",    node(Op::CMPNE | Op::CMPEQ, node(Op::CAST, b).ints(), k.ints()).as("u"),
                                                                         [](U u, B b_, K c_) { return compare_cast_bool(u, b_, c_); }),
    law("trunc-int",       node(Op::TRUNC, xi),                          [](X x_)            { return x_; }),
    law("less-self",       x < x,                                        [](X)               { return bool_const(false); }),
    law("ne-self",         node(Op::CMPNE, xi, x),                       [](X)               { return bool_const(false); }),
    law("ne-self-bool",    node(Op::CMPNE, b, b),                        [](B)               { return bool_const(false); }),
    law("eq-self",         node(Op::CMPEQ, xi, x),                       [](X)               { return bool_const(true); }),
    law("eq-self-bool",    node(Op::CMPEQ, b, b),                        [](B)               { return bool_const(true); }),
    law("mask-shift",      node(div_or_shift, xi & c0, c1).as("u"),      [](U u, X x_, C0 m, C1 n) { return drop_mask(u, x_, m, n); }),
    law("bool-mul",        (x * y).bools().as("u"),                      [](U u, X x_, Y y_) { return of_bools(u, x_, y_, Op::AND); }),
    law("bool-add",        (x + y).bools().as("u"),                      [](U u, X x_, Y y_) { return of_bools(u, x_, y_, Op::OR); }),
    law("bool-max",        node(Op::MAX, x, y).bools().as("u"),          [](U u, X x_, Y y_) { return of_bools(u, x_, y_, Op::OR); }),
    law("sub",             node(Op::SUB, xi, y).as("u"),                 [](U u, X x_, Y y_) { return x_ + y_ * const_like(u, -1); }),
    law("neg",             node(Op::NEG, xi),                            [](X x_)            { return x_ * const_like(x_, -1); }),
    law("add-minus-zero",  x.floats() + k.floats(),                     [](X x_, K c_) { return c_.fval() == 0 && std::signbit(c_.fval()) ? UOp(x_) : UOp{}; }),
    law("zero-over-zero",  node(Op::FDIV, x.floats() * Pat(0), Pat(0)).as("u"),  [](U u, X)         { return fconst(NAN, u.dtype()); }),
    law("double",          x.floats() + x,                               [](X x_)            { return x_ * const_like(x_, 2); }),
    law("float-neg-mul",   (x.floats() * Pat(-1)) * k.floats(),                  [](X x_, K c_) { return x_ * fconst(-c_.fval(), c_.dtype()); }),
};
// clang-format on

}  // namespace

const Rules<>& identity_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
