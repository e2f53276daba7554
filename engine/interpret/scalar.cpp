#include "engine/interpret/scalar.h"

#include <algorithm>
#include <cmath>

namespace beamline {
namespace {

using Wide = __int128;
using Value = std::optional<ScalarValue>;
using Kind = ScalarValue::Kind;

// An integer as a value of type t: weakint holds all, a width keeps its low bits.
Wide held(DType t, Wide v) {
  if (t == DType::WeakInt) return v;
  if (t == DType::Bool) return v != 0;
  const auto low = static_cast<uint64_t>(v);
  if (t == DType::U64) return low;
  return wrap_to(t, static_cast<int64_t>(low));
}
Wide floor_quotient(Wide a, Wide b) {
  const Wide q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

Value convert(const ScalarValue& v, DType t) {
  if (v.kind == Kind::Poison) return v;
  if (v.kind == Kind::Whole) {
    if (is_float(t)) return real(round_to(t, static_cast<double>(v.whole)));
    return whole(held(t, v.whole));
  }
  if (is_float(t)) return real(round_to(t, v.real));
  if (t == DType::Bool) return whole(v.real != 0);
  const double cut = std::trunc(v.real);
  if (!(cut >= static_cast<double>(dtype_min(t)) && cut <= static_cast<double>(dtype_max(t))))
    return std::nullopt;
  return whole(held(t, static_cast<Wide>(cut)));
}

Value bit_cast_value(const ScalarValue& v, DType from, DType to) {
  if (dtype_bytes(from) != dtype_bytes(to)) return std::nullopt;
  if (is_int(from) && is_int(to)) return whole(held(to, v.whole));
  if (is_float(from) && is_float(to)) return from == to ? Value(v) : std::nullopt;
  const bool single = from == DType::F32 || to == DType::F32;
  if (!single && from != DType::F64 && to != DType::F64) return std::nullopt;
  if (is_float(from)) {
    const int64_t bits = single ? std::bit_cast<int32_t>(static_cast<float>(v.real))
                                : std::bit_cast<int64_t>(v.real);
    return whole(held(to, bits));
  }
  const auto bits = static_cast<uint64_t>(v.whole);
  return real(single ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                     : std::bit_cast<double>(bits));
}

Value compare(Op op, const ScalarValue& a, const ScalarValue& b) {
  const bool reals = a.kind == Kind::Real;
  switch (op) {
    case Op::CMPLT: return whole(reals ? a.real < b.real : a.whole < b.whole);
    case Op::CMPNE: return whole(reals ? a.real != b.real : a.whole != b.whole);
    default: return whole(reals ? a.real == b.real : a.whole == b.whole);
  }
}

Value whole_op(Op op, DType t, Wide a, Wide b, Wide c) {
  Wide r = 0;
  if (t != DType::WeakInt &&
      (op == Op::MUL || op == Op::MULACC || op == Op::SHL)) {  // the low bits are the result
    if (op == Op::SHL && (b < 0 || b >= 8 * dtype_bytes(t))) return std::nullopt;
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const uint64_t low = op == Op::SHL ? x << y : x * y + static_cast<uint64_t>(c);
    return whole(held(t, static_cast<Wide>(low)));
  }
  switch (op) {
    case Op::ADD:
      if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
      break;
    case Op::SUB:
      if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
      break;
    case Op::MUL:
      if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
      break;
    case Op::MULACC:
      if (__builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, c, &r)) return std::nullopt;
      break;
    case Op::NEG: r = -a; break;
    case Op::TRUNC: r = a; break;
    case Op::MAX: r = std::max(a, b); break;
    case Op::AND: r = a & b; break;
    case Op::OR: r = a | b; break;
    case Op::XOR: r = a ^ b; break;
    case Op::SHL:
    case Op::SHR:
      if (b < 0 || b >= 8 * dtype_bytes(t)) return std::nullopt;
      if (op == Op::SHL && __builtin_mul_overflow(a, Wide(1) << static_cast<int>(b), &r))
        return std::nullopt;
      if (op == Op::SHR) r = a >> static_cast<int>(b);
      break;
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::CDIV:
    case Op::CMOD:
      if (b == 0) return std::nullopt;
      r = op == Op::FLOORDIV   ? floor_quotient(a, b)
          : op == Op::FLOORMOD ? a - floor_quotient(a, b) * b
          : op == Op::CDIV     ? a / b
                               : a % b;
      break;
    default: return std::nullopt;
  }
  if (t == DType::Bool && (op == Op::ADD || op == Op::SUB)) r = r != 0;
  return whole(held(t, r));
}

Value real_op(Op op, DType t, double a, double b, double c) {
  double r = 0;
  switch (op) {
    case Op::ADD: r = a + b; break;
    case Op::SUB: r = a - b; break;
    case Op::MUL: r = a * b; break;
    case Op::MULACC: r = a * b + c; break;
    case Op::FDIV: r = a / b; break;
    case Op::POW: r = std::pow(a, b); break;
    case Op::MAX:
      r = std::isnan(a) ? a : std::isnan(b) || a < b || (a == b && std::signbit(a)) ? b : a;
      break;
    case Op::NEG: r = -a; break;
    case Op::TRUNC: r = std::trunc(a); break;
    case Op::RECIPROCAL: r = 1 / a; break;
    case Op::SQRT: r = std::sqrt(a); break;
    case Op::EXP2: r = std::exp2(a); break;
    case Op::LOG2: r = std::log2(a); break;
    case Op::SIN: r = std::sin(a); break;
    default: return std::nullopt;
  }
  return real(round_to(t, r));
}

Value value_of(UOp u, const Value* v) {
  const Op op = u.op();
  const DType t = u.dtype();
  if (op == Op::CONST) {
    if (u.is_invalid()) return ScalarValue{Kind::Poison, 0, 0};
    return is_float(t) ? real(u.fval()) : whole(held(t, u.ival()));
  }
  if (!ops::elementwise.has(op)) return std::nullopt;
  if (op == Op::WHERE) {
    if (!v[0] || v[0]->kind == Kind::Poison) return v[0];
    const size_t taken = v[0]->whole != 0 ? 1 : 2;
    return v[taken] ? convert(*v[taken], t) : std::nullopt;
  }
  for (size_t i = 0; i < u.nsrc(); i++)
    if (v[i] && v[i]->kind == Kind::Poison) return v[i];
  if (t == DType::Bool && (op == Op::AND || op == Op::OR))
    for (size_t i = 0; i < 2; i++)
      if (v[i] && (v[i]->whole != 0) == (op == Op::OR)) return v[i];
  DType join_type = DType::Void;
  for (size_t i = 0; i < u.nsrc(); i++) {
    if (!v[i]) return std::nullopt;
    join_type = join(join_type, u.src(i).dtype());
  }
  if (op == Op::CAST) return convert(*v[0], t);
  if (op == Op::BITCAST) return bit_cast_value(*v[0], u.src(0).dtype(), t);
  // Operands meet in their join; a shift's count keeps its own type.
  const DType common = ops::comparison.has(op) ? join_type : t;
  Value x[3] = {whole(0), whole(0), whole(0)};
  for (size_t i = 0; i < u.nsrc(); i++) {
    x[i] = ops::shifts.has(op) && i == 1 ? v[i] : convert(*v[i], common);
    if (!x[i]) return std::nullopt;
  }
  if (ops::comparison.has(op)) return compare(op, *x[0], *x[1]);
  if (is_float(common)) return real_op(op, t, x[0]->real, x[1]->real, x[2]->real);
  return whole_op(op, t, x[0]->whole, x[1]->whole, x[2]->whole);
}

}  // namespace

std::optional<ScalarValue> evaluate(UOp root, const Assignment& values) {
  std::unordered_map<UOp, Value, UOpHash> done;
  for (UOp u : toposort(root)) {
    if (const auto it = values.find(u); it != values.end()) {
      done.emplace(u, it->second);
      continue;
    }
    Value v[3];
    for (size_t i = 0; i < u.nsrc() && i < 3; i++) v[i] = done.at(u.src(i));
    done.emplace(u, value_of(u, v));
  }
  return done.at(root);
}

}  // namespace beamline
