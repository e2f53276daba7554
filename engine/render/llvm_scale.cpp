// The part of LlvmBody that scales by powers of two: where the processor does in one instruction
// what is written out as sums of exponents (lower/exponential.cpp).
#include <bit>

#include "engine/render/llvm_body.h"

namespace beamline {

using namespace llvm_words;

namespace {

// 2^n p with n as the digits of `whole`, a sum with `magic`, after the point.
struct Scaled {
  UOp p, whole;
  double magic = 0;
};

// negative ? t / 2^64 : t, where t = p * the number of exponent n + (negative ? 63 : -1), and
// negative says that n is below 0: the same as 2^(n - 1) p, rounded once.
bool match(UOp u, Scaled& out) {
  if (u.op() != Op::WHERE || u.dtype() != DType::F32) return false;
  const UOp negative = u.src(0), t = u.src(2), low = u.src(1);
  if (negative.op() != Op::CMPLT || !negative.src(1).is_const() || t.op() != Op::MUL ||
      low.op() != Op::MUL || low.src(0) != t || !low.src(1).is_const() ||
      low.src(1).fval() != 0x1p-64)
    return false;
  out.whole = negative.src(0), out.magic = negative.src(1).fval();
  const auto exponent = [&](int by) { return int64_t{127 + by} << 23; };
  for (size_t i = 0; i < 2; i++) {
    const UOp power = t.src(i);
    if (power.op() != Op::BITCAST || power.src(0).op() != Op::ADD) continue;
    const UOp sum = power.src(0);
    for (size_t k = 0; k < 2; k++) {
      const UOp n = sum.src(k), bias = sum.src(1 - k);
      if (n.op() != Op::SHL || !n.src(1).is_const(23) || n.src(0).op() != Op::BITCAST ||
          !(n.src(0).src(0) == out.whole) || bias.op() != Op::WHERE || !(bias.src(0) == negative) ||
          !bias.src(1).is_const(exponent(63)) || !bias.src(2).is_const(exponent(-1)))
        continue;
      out.p = t.src(1 - i);
      return true;
    }
  }
  return false;
}

}  // namespace

// Empty: it is nothing of the kind, or there is no instruction for so many lanes.
std::string LlvmBody::scaled(UOp u) {
  const int64_t w = width(u);
  Scaled s;
  if (!scales_ || (w != 4 && w != 8 && w != 16) || !match(u, s)) return {};
  const std::string vt = type(u);
  // n - 1, which is exact.
  const std::string by =
      line("fadd {} {}, {}", vt, value(s.whole, w), value(fconst(-s.magic - 1, DType::F32), w));
  const std::string name = fmt::format("llvm.x86.avx512.mask.scalef.ps.{}", w * 32);
  const bool rounds = w == 16;
  const std::string_view mask = rounds ? "i16" : "i8";
  declare(vt, name, fmt::format("{0}, {0}, {0}, {1}{2}", vt, mask, rounds ? ", i32" : ""));
  return line("call {0} @{1}({0} {2}, {0} {3}, {0} zeroinitializer, {4} -1{5})", vt, name,
              value(s.p, w), by, mask, rounds ? ", i32 4" : "");
}

}  // namespace beamline
