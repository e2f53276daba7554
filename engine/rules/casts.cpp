// CAST and BITCAST (S38, S40-S42, Y39-Y42).
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

// clang-format off
constexpr RuleOf<void> table[] = {
    law("cast-same",       node(Op::CAST | Op::BITCAST, x).as("u"),           [](U u, X x_)      { return u.dtype() == x_.dtype() ? UOp(x_) : UOp{}; }),
    law("bitcast-bitcast", node(Op::BITCAST, node(Op::BITCAST, x)).as("u"),   [](U u, X x_)      { return dtype_bytes(u.dtype()) == dtype_bytes(x_.dtype()) ? make(Op::BITCAST, u.dtype(), {x_}) : UOp{}; }),
    law("cast-cast",       node(Op::CAST, node(Op::CAST, x).as("m")).as("u"), [](U u, M m, X x_) { return cast_cast(u, x_, m); }),
    law("cast-sum",        node(Op::CAST, (xw + c0).dtype(DType::WeakInt)).ints().as("u"),            [](U u, X x_, C0 a) { return u.dtype() == DType::WeakInt ? UOp{} : cast(x_, u.dtype()) + as_type(a, u.dtype()); }),
    law("cast-to-bool",    node(Op::CAST, x).bools(),                         [](X x_)           { return ne(x_, const_like(x_, 0)); }),
};
// clang-format on

}  // namespace

const Rules<>& cast_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
