#include <algorithm>

#include "engine/lower/exponential.h"
#include "engine/lower/passes.h"
#include "engine/lower/sine.h"
#include "engine/lower/small_floats.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

using namespace pat;
using K = Cap<"k">;
using S = Cap<"s">;

bool nonnegative(UOp u) { return u.vmin() >= 0; }
int log2_exact(UOp u) {
  if (!u.is_const() || u.ival() <= 0 || (u.ival() & (u.ival() - 1))) return -1;
  return __builtin_ctzll(static_cast<uint64_t>(u.ival()));
}
UOp as_int(UOp x, DType t) { return make(Op::CAST, t, {x}); }

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

// 1 - 2 sin(x/2)^2 loses its digits where the cosine is small.
UOp cosine_of(UOp sine) {
  if (sine.op() != Op::SIN || sine.src(0).op() != Op::MUL) return {};
  const UOp half = sine.src(0);
  if (!half.src(1).is_const() || half.src(1).fval() != 0.5) return {};
  return decompose_cos(half.src(0));
}
bool computed(UOp u) { return u.dtype() == DType::F32 || u.dtype() == DType::F64; }

// clang-format off
constexpr RuleOf<void> table[] = {
    rule("lower-small-float", node(ops::alu | Op::CAST | Op::REDUCE).tail().as("u"), [](Cap<"u"> u) { return lower_small_float(u); }),
    rule("lower-threefry",   node(Op::THREEFRY, x, y),     [](X a, Y b)  { return threefry_of(a, b); }),
    rule("lower-floordiv",   node(Op::FLOORDIV, x, y),     [](X a, Y b)  { return floor_division(a, b); }),
    rule("lower-floormod",   node(Op::FLOORMOD, x, y),     [](X a, Y b)  { return floor_modulo(a, b); }),
    rule("lower-reciprocal", node(Op::RECIPROCAL, x),      [](X a)       { return alu(Op::FDIV, {const_like(a, 1), a}); }),
    rule("lower-exp2",       node(Op::EXP2, x),            [](X a)       { return through_f32(a, decompose_exp2); }),
    rule("lower-log2",       node(Op::LOG2, x),            [](X a)       { return through_f32(a, [](UOp v) { return decompose_log2(v); }); }),
};
// Where the processor converts no f16.
constexpr RuleOf<void> half[] = {
    rule("lower-half",       node(ops::alu | Op::CAST | Op::REDUCE).tail().as("u"), [](Cap<"u"> u) { return lower_half(u); }),
};
constexpr RuleOf<void> sine[] = {
    rule("lower-sin",        node(Op::SIN, x),             [](X a)       { return through_f32(a, decompose_sin); }),
};
// Where the target has one.
constexpr RuleOf<void> own_sine[] = {
    rule("widen-sin",        node(Op::SIN, x),             [](X a)       { return computed(a) ? UOp() : through_f32(a, [](UOp v) { return alu(Op::SIN, {v}); }); }),
};
// Functions that are written as others: whole, they are exact to the last digits. Before their parts
// are taken for themselves.
constexpr RuleOf<void> logarithm[] = {
    rule("lower-log",        node(Op::LOG2, x) * cst("k"),               [](X a, K c) { return computed(a) ? decompose_log2(a, c.fval()) : UOp(); }),
};
constexpr RuleOf<void> cosine[] = {
    rule("lower-cos",        node(Op::MUL, any("s") * any("s") * Pat(2), Pat(-1)) + Pat(1),           [](S s)      { return computed(s) ? cosine_of(s) : UOp(); }),
};
// clang-format on

}  // namespace

UOp decompose(UOp ast, bool doubles, bool halves, Trace* trace) {
  static const Matcher<> functions{Rules<>(logarithm) + Rules<>(cosine)}, log{Rules<>(logarithm)};
  static const Matcher<> all{Rules<>(table) + Rules<>(sine)},
      no_halves{Rules<>(table) + Rules<>(half) + Rules<>(sine)},
      rest{Rules<>(table) + Rules<>(own_sine)};
  RewriteOptions options;
  options.trace = trace;
  static constexpr OpSet parts = OpSet(Op::LOG2) | Op::SIN;
  if (std::ranges::any_of(toposort(ast), [](UOp u) { return parts.has(u.op()); })) {
    options.bottom_up = true;
    ast = graph_rewrite(ast, doubles ? functions : log, nullptr, options);
    options.bottom_up = false;
  }
  return graph_rewrite(ast, !doubles ? rest : halves ? all : no_halves, nullptr, options);
}

}  // namespace beamline
