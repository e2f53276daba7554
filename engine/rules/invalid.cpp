// Poison indices. A gate is WHERE(valid, index, invalid); gates move outwards to the access they
// guard.
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

constexpr OpSet arithmetic = [] {
  OpSet s;
  for (size_t i = 0; i < op_count; i++)
    if (const OpSet o = static_cast<Op>(i);
        o.subset_of(ops::binary) && !o.subset_of(ops::comparison))
      s = s | o;
  return s;
}();
constexpr OpSet one_operand = ops::unary | Op::CAST | Op::BITCAST;
constexpr Pat gate = select(c, x, poison.as("p"));

// u with its gated operand replaced by the index below the gate.
UOp lift(UOp u, UOp cond, size_t operand, UOp below, UOp poisoned) {
  std::vector<UOp> src = u.srcs();
  src[operand] = below;
  return make(Op::WHERE, u.dtype(), {cond, rebuild(u, src), poisoned});
}
bool is_invalid_index(UOp u) {
  if (u.op() != Op::INDEX) return false;
  for (size_t i = 1; i < u.nsrc(); i++)
    if (u.src(i).is_invalid()) return true;
  return false;
}
using G = Cap<"g">;
using P = Cap<"p">;

// clang-format off
constexpr RuleOf<void> table[] = {
    law("invalid-unary",       node(one_operand, poison.as("p")),           [](P p) { return UOp(p); }),
    law("gate-unary",          node(one_operand, gate).as("u"),             [](U u, C c_, X x_, P p) { return lift(u, c_, 0, x_, p); }),
    law("invalid-binary",      node(arithmetic, poison.as("p"), y),         [](P p, Y) { return UOp(p); }),
    law("invalid-binary-right", node(arithmetic, y, poison.as("p")),        [](P p, Y) { return UOp(p); }),
    law("gate-left",           node(ops::binary, gate.as("g"), y).as("u"),  [](U u, G g, C c_, X x_, P p) { return lift(u, c_, u.src(0) == g ? 0 : 1, x_, p); }),
    law("gate-right",          node(ops::binary, y, gate.as("g")).as("u"),  [](U u, G g, C c_, X x_, P p) { return lift(u, c_, u.src(1) == g ? 1 : 0, x_, p); }),
    law("invalid-condition",   node(Op::WHERE, poison.as("p"), x, y),       [](P p) { return UOp(p); }),
    law("gate-condition",      node(Op::WHERE, gate, t, f).as("u"),         [](U u, C c_, X x_, T t_, F f_, P p) -> UOp {
      if (t_.is_invalid() || f_.is_invalid()) return {};
      return make(Op::WHERE, u.dtype(), {c_, where(x_, t_, f_), p}); }),
    law("gate-order",          node(Op::WHERE, c, poison.as("p"), v),       [](C c_, V v_, P p) -> UOp {
      if (v_.is_invalid()) return p;
      return where(negation(c_), v_, p); }),
    law("gate-true-branch",    node(Op::WHERE, b, gate, v).as("u"),         [](U u, B b_, C c_, X x_, V v_, P p) -> UOp {
      if (v_.is_invalid()) return {};
      return make(Op::WHERE, u.dtype(), {negation(b_) | c_, where(b_, x_, v_), p}); }),
    law("gate-false-branch",   node(Op::WHERE, b, v, gate).as("u"),         [](U u, B b_, C c_, X x_, V v_, P p) -> UOp {
      if (v_.is_invalid()) return {};
      return make(Op::WHERE, u.dtype(), {b_ | c_, where(b_, v_, x_), p}); }),
    rule("invalid-store",      node(Op::STORE, x, y).tail(),                [](X x_) -> UOp {
      return is_invalid_index(x_) ? make(Op::NOOP, DType::Void, {}) : UOp{}; }),
    law("invalid-load",        node(Op::LOAD, x).tail().as("u"),            [](U u, X x_) -> UOp {
      if (!is_invalid_index(x_)) return {};
      return u.nsrc() > 1 ? u.src(1) : const_like(u, 0); }),
};
// clang-format on

}  // namespace

const Rules<>& invalid_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
