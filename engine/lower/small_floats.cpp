#include "engine/lower/small_floats.h"

#include <cmath>

namespace beamline {
namespace {

UOp to(UOp x, DType t) { return x.dtype() == t ? x : make(Op::CAST, t, {x}); }
UOp bits(UOp x, DType t) { return make(Op::BITCAST, t, {x}); }
UOp u32(int64_t v) { return iconst(v, DType::U32); }
UOp shl(UOp x, int by) { return alu(Op::SHL, {x, iconst(by, x.dtype())}); }
UOp shr(UOp x, int by) { return alu(Op::SHR, {x, iconst(by, x.dtype())}); }
UOp float_of(UOp b) { return bits(b, DType::F32); }

// f64 to f32, cut off; the last bit is set where something was cut. A second rounding to at most 22
// bits then gives what one rounding would have given (Boldo and Melquiond, 2005).
UOp odd_f32(UOp x) {
  const UOp near = to(x, DType::F32), back = to(near, DType::F64);
  const auto magnitude = [](UOp v) {
    return bits(bits(v, DType::U64) & iconst(INT64_MAX, DType::U64), DType::F64);
  };
  const UOp b = bits(near, DType::U32);
  const UOp cut = where(magnitude(x) < magnitude(back), b - u32(1), b) | u32(1);
  const UOp exact = alu(Op::CMPEQ, {back, x}) | ne(x, x);
  return float_of(where(exact, b, cut));
}

UOp bf16_to_f32(UOp x) { return float_of(shl(to(bits(x, DType::U16), DType::U32), 16)); }
UOp f32_to_bf16(UOp x) {
  const UOp b = bits(x, DType::U32);
  const UOp rounded = shr(b + u32(0x7fff) + (shr(b, 16) & u32(1)), 16);
  const UOp quiet = shr(b, 16) | u32(0x40);
  return bits(to(where(ne(x, x), quiet, rounded), DType::U16), DType::BF16);
}

UOp e5m2_to_f32(UOp x) {  // the upper half of an f16
  const UOp half = shl(to(bits(x, DType::U8), DType::U16), 8);
  return to(bits(half, DType::F16), DType::F32);
}
UOp e4m3_to_f32(UOp x) {
  const UOp b = to(bits(x, DType::U8), DType::U32), m = b & u32(0x7f);
  const UOp tiny = bits(to(m, DType::F32) * fconst(0x1p-9, DType::F32), DType::U32);
  const UOp normal = shl(m, 20) + u32(int64_t{127 - 7} << 23);
  const UOp value = where(m < u32(8), tiny, where(m < u32(0x7f), normal, u32(0x7fc00000)));
  return float_of(value | shl(b & u32(0x80), 24));
}
UOp f16_to_f32(UOp x) {
  const UOp b = to(bits(x, DType::U16), DType::U32), m = b & u32(0x7fff), high = shl(m, 13);
  const UOp scaled = bits(float_of(high) * fconst(0x1p112, DType::F32), DType::U32);
  const UOp value = where(m < u32(0x7c00), scaled, high | u32(0x7f800000));
  return float_of(value | shl(b & u32(0x8000), 16));
}
// Rounds to nearest even; `bias` of the exponent, `largest` finite pattern, what lies beyond it.
UOp f32_to_small(UOp x, DType t, int mantissa, int bias, int largest, int beyond, int nan) {
  const UOp b = bits(x, DType::U32), a = b & u32(0x7fffffff);
  const int shift = 23 - mantissa;
  const UOp lsb = shr(a, shift) & u32(1);
  const UOp normal = shr(a + u32((int64_t{1} << (shift - 1)) - 1) + lsb, shift) -
                     u32(int64_t{127 - bias} << mantissa);
  // Adding a power of two whose last place is the smallest denormal rounds to a multiple of it.
  const double magic = std::ldexp(1.0, 23 + 1 - bias - mantissa);
  const UOp tiny = bits(float_of(a) + fconst(magic, DType::F32), DType::U32) -
                   u32(static_cast<int64_t>(float_to_bits(DType::F32, magic)));
  const UOp is_tiny = a < u32(int64_t{127 + 1 - bias} << 23);
  const UOp finite = where(is_tiny, tiny, normal);
  const UOp capped = where(u32(largest) < finite, u32(beyond), finite);
  const UOp value = where(u32(0x7f800000) < a, u32(nan), capped);
  const int width = dtype_bytes(t) * 8;
  const UOp all = value | (shr(b, 32 - width) & u32(int64_t{1} << (width - 1)));
  return bits(to(all, width == 8 ? DType::U8 : DType::U16), t);
}

UOp widen(UOp x) {
  switch (x.dtype()) {
    case DType::BF16: return bf16_to_f32(x);
    case DType::Fp8e5m2: return e5m2_to_f32(x);
    case DType::Fp8e4m3: return e4m3_to_f32(x);
    default: return to(x, DType::F32);
  }
}
UOp narrow(UOp x, DType t) {  // of an f32
  switch (t) {
    case DType::BF16: return f32_to_bf16(x);
    case DType::Fp8e5m2: return f32_to_small(x, t, 2, 15, 0x7b, 0x7c, 0x7e);
    case DType::Fp8e4m3: return f32_to_small(x, t, 3, 7, 0x7e, 0x7f, 0x7f);
    default: return to(x, t);
  }
}

UOp lower_cast(UOp x, DType t) {
  const DType from = x.dtype();
  if (is_storage_float(from)) {
    const UOp wide = widen(x);
    return t == DType::F32 ? wide : to(wide, t);
  }
  if (!is_storage_float(t) && t != DType::F16) return {};
  if (from == DType::F64) return narrow(odd_f32(x), t);
  if (is_int(from) && dtype_bytes(from) >= 4) return narrow(odd_f32(to(x, DType::F64)), t);
  if (t == DType::F16) return {};
  return narrow(to(x, DType::F32), t);
}

}  // namespace

bool is_storage_float(DType t) {
  return t == DType::BF16 || t == DType::Fp8e4m3 || t == DType::Fp8e5m2;
}

namespace {

// An operation on floats that are `stored` only, in f32.
UOp in_f32(UOp u, bool (*stored)(DType)) {
  if (u.op() == Op::REDUCE && stored(u.dtype()))  // of lanes
    return to(make(Op::REDUCE, DType::F32, {to(u.src(0), DType::F32)}, u.node()->val), u.dtype());
  if (!ops::alu.has(u.op()) || u.op() == Op::WHERE) return {};
  bool any = false;
  std::vector<UOp> src;
  for (UOp s : u.srcs()) {
    any |= stored(s.dtype());
    src.push_back(!is_float(s.dtype()) ? s
                  : s.is_const()       ? fconst(s.fval(), DType::F32)
                                       : to(s, DType::F32));
  }
  if (!any) return {};
  const UOp wide = make(u.op(), ops::comparison.has(u.op()) ? DType::Bool : DType::F32, src);
  return ops::comparison.has(u.op()) ? wide : to(wide, u.dtype());
}

}  // namespace

UOp lower_small_float(UOp u) {
  if (u.op() == Op::CAST && u.src(0).is_const())
    return is_float(u.dtype()) ? fconst(u.src(0).number(), u.dtype()) : UOp{};
  return u.op() == Op::CAST ? lower_cast(u.src(0), u.dtype()) : in_f32(u, is_storage_float);
}

UOp lower_half(UOp u) {
  if (u.op() != Op::CAST) return in_f32(u, [](DType t) { return t == DType::F16; });
  const UOp x = u.src(0);
  if (x.is_const()) return {};
  if (x.dtype() == DType::F16)
    return u.dtype() == DType::F32 ? f16_to_f32(x) : to(to(x, DType::F32), u.dtype());
  if (u.dtype() != DType::F16) return {};
  return x.dtype() == DType::F32 ? f32_to_small(x, DType::F16, 10, 15, 0x7bff, 0x7c00, 0x7e00)
                                 : to(to(x, DType::F32), DType::F16);
}

}  // namespace beamline
