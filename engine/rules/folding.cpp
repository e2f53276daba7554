// Constant folding. Integers of a width wrap to it, weakint declines when 64 bits do not hold the
// result, floats are computed in double and rounded to their type.
#include <cmath>
#include <limits>

#include "engine/ir/derive.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

// A constant's value as its type holds it; nothing for a u64 that 64 signed bits do not hold.
std::optional<int64_t> held(UOp c, DType t) {
  const int64_t v = wrap_to(t, c.ival());
  if (t == DType::U64 && v < 0) return std::nullopt;
  return v;
}

std::optional<double> fold_float(Op op, double a, double b, double c) {
  switch (op) {
    case Op::ADD: return a + b;
    case Op::SUB: return a - b;
    case Op::MUL: return a * b;
    case Op::FDIV: return a / b;
    case Op::MAX:
      return std::isnan(a) ? a : std::isnan(b) || a < b || (a == b && std::signbit(a)) ? b : a;
    case Op::POW: return std::pow(a, b);
    case Op::MULACC: return a * b + c;
    case Op::NEG: return -a;
    case Op::RECIPROCAL: return 1 / a;
    case Op::TRUNC: return std::trunc(a);
    case Op::SQRT: return std::sqrt(a);
    case Op::EXP2: return std::exp2(a);
    case Op::LOG2: return std::log2(a);
    case Op::SIN: return std::sin(a);
    default: return std::nullopt;
  }
}

UOp fold_compare(UOp u, DType t) {
  const UOp a = as_type(u.src(0), t), b = as_type(u.src(1), t);
  if (is_float(t)) {
    const double x = a.fval(), y = b.fval();
    return bool_const(u.op() == Op::CMPLT ? x < y : u.op() == Op::CMPNE ? x != y : x == y);
  }
  const auto x = held(a, t), y = held(b, t);
  return x && y ? bool_const(*fold_int(u.op(), *x, *y) != 0) : UOp{};
}

UOp fold_whole(UOp u) {
  const DType t = u.dtype();
  int64_t v[3] = {0, 0, 0};
  for (size_t i = 0; i < u.nsrc(); i++) {
    const auto h = is_float(u.src(i).dtype()) ? std::nullopt : held(u.src(i), t);
    if (!h) return {};
    v[i] = *h;
  }
  if (ops::shifts.has(u.op()) && (v[1] < 0 || v[1] >= 8 * dtype_bytes(t))) return {};
  auto r = fold_int(u.op(), v[0], v[1], v[2]);
  if (!r && t == DType::I64) return {};
  if (!r || (t == DType::U64 && *r < 0)) return {};
  return iconst(wrap_to(t, *r), t);
}

UOp fold_cast(UOp u) {
  const UOp a = u.src(0);
  const DType t = u.dtype();
  if (!is_float(a.dtype()))
    return is_float(t) || is_int(t) || t == DType::Bool ? as_type(a, t) : UOp{};
  if (is_float(t)) return fconst(a.fval(), t);
  if (t == DType::Bool) return bool_const(a.fval() != 0);
  const double v = std::trunc(a.fval());  // outside the target's range the machine decides
  if (!is_int(t) || !(v >= static_cast<double>(dtype_min(t)) && v < std::ldexp(1, 62) &&
                      v <= static_cast<double>(dtype_max(t))))
    return {};
  return iconst(static_cast<int64_t>(v), t);
}

UOp fold_bitcast(UOp u) {
  const UOp a = u.src(0);
  const DType from = a.dtype(), to = u.dtype();
  if (dtype_bytes(from) != dtype_bytes(to) || is_weak(from) || is_weak(to)) return {};
  const bool f32 = dtype_bytes(to) == 4;
  if (is_int(from) && is_int(to))
    return to == DType::U64 && a.ival() < 0 ? UOp{} : iconst(wrap_to(to, a.ival()), to);
  if (is_int(from) && (to == DType::F32 || to == DType::F64)) {
    if (!f32) return fconst(std::bit_cast<double>(a.ival()), to);
    return fconst(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(a.ival()))), to);
  }
  if ((from != DType::F32 && from != DType::F64) || !is_int(to)) return {};
  const int64_t bits =
      f32 ? static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(a.fval())))
          : std::bit_cast<int64_t>(a.fval());
  return to == DType::U64 && bits < 0 ? UOp{} : iconst(wrap_to(to, bits), to);
}

// Operands of two types meet in their join, as code generation needs it.
UOp join_operands(UOp u) {
  const bool select = u.op() == Op::WHERE;
  DType t = DType::Void;
  for (size_t i = select; i < u.nsrc(); i++) t = join(t, u.src(i).dtype());
  std::vector<UOp> src = u.srcs();
  for (size_t i = select; i < src.size(); i++) {
    if (src[i].is_invalid()) return {};
    src[i] = as_type(src[i], t);
  }
  return src == u.srcs() ? UOp{} : rebuild(u, src);
}

// The same element by element, where operands are vectors of constants.
UOp fold_stacks(UOp u) {
  size_t lanes = 0;
  for (size_t i = 0; i < u.nsrc(); i++) {
    const UOp s = u.src(i);
    if (s.is_const() && !s.is_invalid()) continue;
    if (s.op() != Op::STACK || s.nsrc() == 0 || (lanes != 0 && s.nsrc() != lanes)) return {};
    lanes = s.nsrc();
    for (size_t k = 0; k < lanes; k++)
      if (!s.src(k).is_const() || s.src(k).is_invalid()) return {};
  }
  std::vector<UOp> out;
  for (size_t k = 0; k < lanes; k++) {
    std::vector<UOp> src = u.srcs();
    for (UOp& s : src)
      if (!s.is_const()) s = s.src(k);
    const UOp scalar = make(u.op(), u.dtype(), src);
    out.push_back(u.op() == Op::WHERE ? as_type(src[0].is_const(0) ? src[2] : src[1], u.dtype())
                                      : fold_constants(scalar));
    if (!out.back()) return {};
  }
  return lanes == 0 ? UOp{} : stack(out);
}

constexpr OpSet joining = ops::commutative | Op::CMPLT | Op::SUB | Op::FLOORDIV | Op::FLOORMOD |
                          Op::CDIV | Op::CMOD | Op::FDIV | Op::POW | Op::WHERE | Op::MULACC;

// clang-format off
constexpr RuleOf<void> table[] = {
    law("fold-unary",    node(ops::unary, c0).as("u"),               [](U u, C0)         { return fold_constants(u); }),
    law("fold-binary",   ordered(node(ops::binary, c0, c1)).as("u"), [](U u, C0, C1)     { return fold_constants(u); }),
    law("fold-ternary",  node(Op::MULACC, c0, c1, k).as("u"),        [](U u, C0, C1)     { return fold_constants(u); }),
    law("fold-cast",     node(Op::CAST | Op::BITCAST, c0).as("u"),   [](U u, C0)         { return fold_constants(u); }),
    law("fold-stack-1",  node(ops::unary | Op::CAST, node(Op::STACK).tail()).as("u"), [](U u) { return fold_stacks(u); }),
    law("fold-stack-2",  node(ops::binary, node(Op::STACK).tail(), y).as("u"), [](U u, Y) { return fold_stacks(u); }),
    law("fold-stack-right", node(ops::binary, c0, node(Op::STACK).tail()).as("u"), [](U u, C0) { return fold_stacks(u); }),
    law("fold-stack-3",  node(Op::WHERE, node(Op::STACK).tail(), y, z).as("u"), [](U u, Y, Z) { return fold_stacks(u); }),
    law("join-operands", node(joining, x, y).as("u"),                [](U u, X, Y)       { return join_operands(u); }),
    law("join-branches", node(joining, x, y, z).as("u"),             [](U u, X, Y, Z)    { return join_operands(u); }),
};
// clang-format on

}  // namespace

UOp as_type(UOp u, DType t) {
  if (u.dtype() == t || u.is_invalid()) return u;
  if (!u.is_const()) return cast(u, t);
  if (is_float(t)) return fconst(u.number(), t);
  if (is_float(u.dtype())) return cast(u, t);
  return iconst(wrap_to(t, wrap_to(u.dtype(), u.ival())), t);
}

UOp fold_constants(UOp u) {
  for (size_t i = 0; i < u.nsrc(); i++)
    if (!u.src(i).is_const() || u.src(i).is_invalid()) return {};
  if (u.op() == Op::CAST) return fold_cast(u);
  if (u.op() == Op::BITCAST) return fold_bitcast(u);
  if (ops::comparison.has(u.op())) return fold_compare(u, join(u.src(0).dtype(), u.src(1).dtype()));
  if (is_int(u.dtype()) || u.dtype() == DType::Bool) return fold_whole(u);
  if (!is_float(u.dtype())) return {};
  double v[3] = {0, 0, 0};
  for (size_t i = 0; i < u.nsrc(); i++) v[i] = as_type(u.src(i), u.dtype()).fval();
  const auto r = fold_float(u.op(), v[0], v[1], v[2]);
  return r ? fconst(*r, u.dtype()) : UOp{};
}

const Rules<>& folding_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
