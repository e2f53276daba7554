// CAST and BITCAST (S38, S40-S42, S45, S46, Y39-Y42).
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
using M = Cap<"m">;

// Every value x can have is a value of t.
bool fits(UOp x, DType t) {
  if (lossless(x.dtype(), t)) return true;
  const bool whole = (is_int(x.dtype()) || x.dtype() == DType::Bool) && is_int(t);
  return whole && x.dtype() != DType::U64 && x.vmin() >= dtype_min(t) && x.vmax() <= dtype_max(t);
}
UOp cast_cast(UOp u, UOp x, UOp middle) {
  return fits(x, middle.dtype()) ? cast(x, u.dtype()) : UOp{};
}

constexpr OpSet joining = Op::OR | Op::ADD | Op::XOR;  // of bits that do not overlap
constexpr OpSet narrowable =
    Op::ADD | Op::SUB | Op::MUL | Op::MAX | Op::FLOORDIV | Op::FLOORMOD | Op::CDIV | Op::CMOD;
inline constexpr Pat x32 = x.dtype(DType::U32), y32 = y.dtype(DType::U32);
// (hi << 32) joined with a 32-bit value
constexpr Pat joined(const Pat& hi) {
  return node(joining, node(Op::SHL, hi, 32), node(Op::CAST, x32).dtype(DType::U64))
      .dtype(DType::U64);
}

constexpr Pat widened(const Pat& p) {
  return node(Op::CAST, p.dtype(DType::I32)).dtype(DType::I64);
}
// An i64 op on i32 values whose result fits: the op in i32, widened.
UOp narrow_op(UOp u, UOp x, UOp y) {
  if (y.is_const() && y.dtype() == DType::I64) {
    if (y.ival() < dtype_min(DType::I32) || y.ival() > dtype_max(DType::I32)) return {};
    y = iconst(y.ival(), DType::I32);
  }
  if (y.dtype() != DType::I32 || u.vmin() < dtype_min(DType::I32) ||
      u.vmax() > dtype_max(DType::I32))
    return {};
  return cast(alu(u.op(), {x, y}), DType::I64);
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("cast-same",       node(Op::CAST | Op::BITCAST, x).as("u"),           [](U u, X x_)      { return u.dtype() == x_.dtype() ? UOp(x_) : UOp{}; }),
    law("bitcast-bitcast", node(Op::BITCAST, node(Op::BITCAST, x)).as("u"),   [](U u, X x_)      { return dtype_bytes(u.dtype()) == dtype_bytes(x_.dtype()) ? make(Op::BITCAST, u.dtype(), {x_}) : UOp{}; }),
    law("cast-cast",       node(Op::CAST, node(Op::CAST, x).as("m")).as("u"), [](U u, M m, X x_) { return cast_cast(u, x_, m); }),
    law("cast-sum",        node(Op::CAST, (xw + c0).dtype(DType::WeakInt)).ints().as("u"),            [](U u, X x_, C0 a) { return u.dtype() == DType::WeakInt ? UOp{} : cast(x_, u.dtype()) + as_type(a, u.dtype()); }),
    law("low-half",        node(Op::CAST, joined(y)).dtype(DType::U32),      [](X x_, Y)        { return UOp(x_); }),
    law("high-half",       node(Op::SHR, joined(node(Op::CAST, y32).dtype(DType::U64).as("w")), 32), [](X, Y, W w) { return w; }),
    law("narrow",          ordered(node(narrowable, widened(x), widened(y)).dtype(DType::I64)).as("u"), [](U u, X x_, Y y_) { return narrow_op(u, x_, y_); }),
    law("narrow-constant", ordered(node(narrowable, widened(x), k).dtype(DType::I64)).as("u"), [](U u, X x_, K k_) { return narrow_op(u, x_, k_); }),
    law("cast-to-bool",    node(Op::CAST, x).bools(),                         [](X x_)           { return ne(x_, const_like(x_, 0)); }),
};
// clang-format on

}  // namespace

const Rules<>& cast_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
