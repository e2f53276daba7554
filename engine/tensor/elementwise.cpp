#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/derive.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {
constexpr int64_t most_elements = int64_t{1} << 40;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}
bool is_small_float(DType t) { return is_float(t) && !is_weak(t) && dtype_bytes(t) <= 2; }
DType accumulator(DType t) {
  if (t == DType::Bool || (is_int(t) && dtype_bytes(t) < 4)) return DType::I32;
  return is_small_float(t) ? DType::F32 : t;
}

DType TensorOps::concrete(DType t) {
  return t == DType::WeakInt ? DType::I32 : t == DType::WeakFloat ? DType::F32 : t;
}

UOp TensorOps::refuse(std::string why) {
  if (error_.empty()) error_ = std::move(why);
  return {};
}

bool TensorOps::sized(const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(n, d, &n) || n > most_elements)
      return refuse(fmt::format("the result of shape {} has more than 2^40 elements",
                                shape_text(shape))),
             false;
  return true;
}

// A weak constant becomes one of type t; anything else is converted at run time.
UOp TensorOps::to(UOp x, DType t) {
  if (!x || x.dtype() == t) return x;
  if (!x.is_const() || !is_weak(x.dtype())) return beamline::cast(x, t);
  if (is_float(t)) return fconst(x.number(), t);
  if (t == DType::Bool) return bool_const(x.number() != 0);
  if (x.dtype() == DType::WeakFloat) {
    if (!(std::fabs(x.fval()) < 0x1p63))
      return refuse(fmt::format("{} is no {}", x.fval(), dtype_name(t)));
    return to(iconst(static_cast<int64_t>(x.fval())), t);
  }
  if (x.ival() < dtype_min(t) || x.ival() > dtype_max(t))
    return refuse(fmt::format("{} does not fit {}", x.ival(), dtype_name(t)));
  return iconst(x.ival(), t);
}

bool TensorOps::same_shapes(std::initializer_list<UOp> operands) {
  Ints shape;
  for (UOp u : operands) {
    Ints next;
    if (!broadcast_shapes(shape, u.shape(), next)) {
      std::vector<std::string> texts;
      for (UOp o : operands) texts.push_back(shape_text(o.shape()));
      return refuse(fmt::format("shapes {} do not broadcast", fmt::join(texts, " and "))), false;
    }
    shape = std::move(next);
  }
  return sized(shape);
}

bool TensorOps::promote(UOp& a, UOp& b) {
  if (!a || !b || !same_shapes({a, b})) return false;
  const DType t = concrete(join(a.dtype(), b.dtype()));
  a = to(a, t), b = to(b, t);
  return a && b;
}

UOp TensorOps::binary(Op op, UOp a, UOp b) { return promote(a, b) ? alu(op, {a, b}) : UOp{}; }

UOp TensorOps::add(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  return alu(a.dtype() == DType::Bool ? Op::OR : Op::ADD, {a, b});
}
UOp TensorOps::mul(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  return alu(a.dtype() == DType::Bool ? Op::AND : Op::MUL, {a, b});
}
UOp TensorOps::sub(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (a.dtype() == DType::Bool)
    return refuse("bools cannot be subtracted; '^' tells where they differ");
  // A constant is negated here, not by a multiplication; the least integer has no negative.
  if (b.is_const() && is_float(b.dtype())) return a + fconst(-b.fval(), b.dtype());
  return a - b;
}
UOp TensorOps::div(UOp a, UOp b) {
  if (!a || !b || !same_shapes({a, b})) return {};
  const DType t = concrete(least_float(join(a.dtype(), b.dtype())));
  a = to(a, t), b = to(b, t);
  if (b.is_const()) return a * fconst(1 / b.fval(), t);
  return a * alu(Op::RECIPROCAL, {b});
}
std::pair<UOp, UOp> TensorOps::float_division(UOp a, UOp b) {
  // The quotient can be off by one where it is rounded up to a whole number; the rest tells.
  const UOp zero = weak(0.0), one = weak(1.0);
  UOp q = floor(alu(Op::FDIV, {a, b}));
  UOp r = sub(a, mul(q, b));
  const UOp positive = lt(zero, b);
  const UOp less = where(positive, lt(r, zero), lt(zero, r));
  const UOp more = where(positive, le(b, r), le(r, b));
  q = where(less, sub(q, one), where(more, add(q, one), q));
  r = where(less, add(r, b), where(more, sub(r, b), r));
  // A finite number by an infinite one: the rest is the number, or the infinity of the other sign.
  const UOp opposite = ne(lt(a, zero), lt(b, zero));
  const UOp endless = bitwise(Op::AND, eq(abs(b), weak(INFINITY)), ne(abs(a), weak(INFINITY)));
  const UOp below = bitwise(Op::AND, opposite, ne(a, zero));
  q = where(endless, where(below, weak(-1.0), zero), q);
  r = where(endless, where(below, b, a), r);
  return {q, r};
}
UOp TensorOps::floordiv(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (a.dtype() == DType::Bool) a = to(a, DType::I32), b = to(b, DType::I32);
  if (!is_float(a.dtype())) return b.is_const(0) ? refuse("division by zero") : a / b;
  const DType t = a.dtype(), wide = is_small_float(t) ? DType::F32 : t;
  return to(float_division(to(a, wide), to(b, wide)).first, t);
}
UOp TensorOps::mod(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (a.dtype() == DType::Bool) a = to(a, DType::I32), b = to(b, DType::I32);
  if (!is_float(a.dtype())) return b.is_const(0) ? refuse("division by zero") : a % b;
  const DType t = a.dtype(), wide = is_small_float(t) ? DType::F32 : t;
  return to(float_division(to(a, wide), to(b, wide)).second, t);
}
UOp TensorOps::bitwise(Op op, UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (is_float(a.dtype()))
    return refuse(
        fmt::format("bit operations need integers or bools, not {}", dtype_name(a.dtype())));
  return alu(op, {a, b});
}
UOp TensorOps::invert(UOp a) {
  if (!a) return {};
  if (a.dtype() == DType::Bool) return beamline::logical_not(a);
  if (!is_int(a.dtype()))
    return refuse(fmt::format("'~' needs integers or bools, not {}", dtype_name(a.dtype())));
  // All bits set; u64's has no 64-bit signed value but -1.
  const int64_t ones =
      is_unsigned(a.dtype()) && dtype_bytes(a.dtype()) < 8 ? dtype_max(a.dtype()) : -1;
  return a ^ iconst(ones, a.dtype());
}
UOp TensorOps::neg(UOp a) {
  if (!a) return {};
  if (a.dtype() == DType::Bool) return refuse("bools have no negative; '~' is not");
  return a * const_like(a, -1);
}

UOp TensorOps::lt(UOp a, UOp b) { return promote(a, b) ? a < b : UOp{}; }
UOp TensorOps::eq(UOp a, UOp b) {
  return promote(a, b) ? beamline::logical_not(beamline::ne(a, b)) : UOp{};
}
UOp TensorOps::ne(UOp a, UOp b) { return promote(a, b) ? beamline::ne(a, b) : UOp{}; }
UOp TensorOps::le(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (is_float(a.dtype()))
    return (a < b) | beamline::logical_not(beamline::ne(a, b));  // false for NaN
  return beamline::logical_not(b < a);
}
UOp TensorOps::logical_not(UOp a) { return a ? beamline::logical_not(to(a, DType::Bool)) : UOp{}; }

UOp TensorOps::maximum(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  return alu(a.dtype() == DType::Bool ? Op::OR : Op::MAX, {a, b});
}
UOp TensorOps::minimum(UOp a, UOp b) {
  if (!promote(a, b)) return {};
  if (a.dtype() == DType::Bool) return a & b;
  // Floats keep MAX's meaning of NaN; an integer's complement never overflows.
  if (is_float(a.dtype())) return neg(alu(Op::MAX, {neg(a), neg(b)}));
  return invert(alu(Op::MAX, {invert(a), invert(b)}));
}
UOp TensorOps::where(UOp c, UOp a, UOp b) {
  if (!c || !a || !b || !same_shapes({c, a, b})) return {};
  if (c.dtype() != DType::Bool)
    return refuse(fmt::format("the condition is {}, not bool", dtype_name(concrete(c.dtype()))));
  const DType t = concrete(join(a.dtype(), b.dtype()));
  a = to(a, t), b = to(b, t);
  return a && b ? beamline::where(c, a, b) : UOp{};
}
UOp TensorOps::clamp(UOp x, std::optional<UOp> lo, std::optional<UOp> hi) {
  if (lo) x = maximum(x, *lo);
  if (hi) x = minimum(x, *hi);
  return x;
}

UOp TensorOps::cast(UOp x, DType t) {
  if (!x) return {};
  if (t == DType::Bool && x.dtype() != DType::Bool) return ne(x, weak(int64_t{0}));
  return to(x, t);
}
UOp TensorOps::bitcast(UOp x, DType t) {
  if (!x) return {};
  const DType from = concrete(x.dtype());
  x = to(x, from);
  if (from == t) return x;
  const int have = dtype_bytes(from), want = dtype_bytes(t);
  const auto word = [](int bytes) {
    return bytes == 1 ? DType::U8 : bytes == 2 ? DType::U16 : bytes == 4 ? DType::U32 : DType::U64;
  };
  const auto bits = [](UOp u, DType as) {
    return !u || u.dtype() == as ? u : make(Op::BITCAST, as, {u});
  };
  if (from == DType::Bool || t == DType::Bool)
    return refuse(
        fmt::format("{} to {}: bools have no bits of their own", dtype_name(from), dtype_name(t)));
  if (have == want) return bits(x, t);
  const Ints shape(x.shape().begin(), x.shape().end());
  const auto shifted = [](Op op, UOp u, int by) {
    return by == 0 ? u : alu(op, {u, iconst(by, u.dtype())});
  };
  if (shape.empty()) return refuse("a scalar has no last dim to change with the width");
  if (have > want) {  // low parts first, as they lie in memory
    std::vector<UOp> parts;
    const UOp whole = bits(x, word(have));
    for (int i = 0; i < have / want; i++)
      parts.push_back(bits(to(shifted(Op::SHR, whole, 8 * want * i), word(want)), t));
    Ints merged = shape;
    merged.back() *= have / want;
    return reshape(stack(parts, -1), merged);
  }
  const int64_t n = want / have;
  if (shape.back() % n != 0)
    return refuse(fmt::format("{} to {}: the last dim of shape {} is not a multiple of {}",
                              dtype_name(from), dtype_name(t), shape_text(shape), n));
  Ints rows = shape;
  rows.back() /= n;
  rows.push_back(n);
  x = reshape(bits(x, word(have)), rows);
  UOp whole;
  for (int64_t i = 0; i < n; i++) {
    Ints begin(rows.size(), 0), end = rows;
    begin.back() = i, end.back() = i + 1;
    const UOp part = shifted(Op::SHL, to(squeeze(shrink(x, begin, end), {-1}), word(want)),
                             static_cast<int>(8 * have * i));
    whole = whole ? alu(Op::OR, {whole, part}) : part;
  }
  return bits(whole, t);
}

UOp TensorOps::relu(UOp x) { return maximum(x, weak(int64_t{0})); }
UOp TensorOps::abs(UOp x) {
  if (!x || x.dtype() == DType::Bool || is_unsigned(x.dtype())) return x;
  const UOp zero = weak(int64_t{0});
  // The middle case is for -0.0, whose reciprocal tells it from 0.0.
  if (is_float(x.dtype())) return where(lt(x, zero), neg(x), where(ne(x, zero), x, zero));
  return where(lt(x, zero), neg(x), x);
}
UOp TensorOps::sign(UOp x) {
  if (!x || x.dtype() == DType::Bool) return x;
  const UOp zero = weak(int64_t{0}), one = weak(int64_t{1});
  if (is_unsigned(x.dtype())) return where(ne(x, zero), const_like(x, 1), const_like(x, 0));
  return where(lt(x, zero), weak(int64_t{-1}), where(lt(zero, x), one, x));  // NaN and zeros stay
}

}  // namespace beamline
