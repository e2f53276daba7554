#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

// Chebyshev interpolants of our own making, as powers of s in [-1, 1]; the short ones are for f32.
// erf(x)/x for |x| < 1 in s = 2x^2 - 1: errors 3e-9 and 1e-16.
constexpr double erf_small[] = {
    0.9654687386375691,    -0.14053608902112114,    0.019852497722455814,   -0.002285485612212242,
    0.0002175119906208899, -1.7536914180800595e-05, 1.2316395977478375e-06, -7.552378571474216e-08};
constexpr double erf_small_f64[] = {
    0.9654687386698673,     -0.1405360890227171,    0.019852496688983708,
    -0.0022854855611440673, 0.00021751715604160108, -1.7537169441492004e-05,
    1.2233827383524026e-06, -7.511569160710623e-08, 4.115800597661665e-09,
    -2.03524938661036e-10,  9.167606748998164e-12,  -3.7910973708931526e-13,
    1.4548169783352384e-14, -5.16472878942302e-16};
// erfc(x) exp(x^2) for x >= 1 in s = 6/(2 + x) - 1; relative to erf: errors 1e-9 and 1e-16.
constexpr double erf_large[] = {
    0.13699945762506138,     0.19430105388073776,    0.07445461256589361,
    0.019924936681168567,    0.0025358644993226636,  -0.0004442396421528122,
    -0.00021304382596404323, 1.0038734352369696e-05, 1.4902436306825285e-05};
constexpr double erf_large_f64[] = {
    0.13699945762506138,    0.19430103657012873,     0.07445456024899047,
    0.019925171509048316,   0.0025365679740462967,   -0.00044512526035243513,
    -0.0002156345736781904, 1.1354652420395173e-05,  1.8543487706711203e-05,
    -8.065799782516556e-07, -1.8989386109589912e-06, 1.9877529084857912e-07,
    2.1274937374600036e-07, -5.096853584036395e-08,  -2.190663804237835e-08,
    1.1142162216464187e-08, 1.3286535954895461e-09,  -2.0146928677315973e-09,
    1.1333926338516081e-10, 2.7314736588040294e-10,  -3.034078322554016e-11,
    -2.0734974435402075e-11};
// tanh(x)/x for |x| < 0.625 in s = 2(x/0.625)^2 - 1: errors 2e-10 and 5e-16.
constexpr double tanh_small[] = {
    0.9396094915163384,     -0.05602212918097837,    0.0040484248725046095, -0.0002964827803683265,
    2.1743384294740332e-05, -1.6100230640993649e-06, 1.180963861977363e-07};
constexpr double tanh_small_f64[] = {
    0.9396094915163384,      -0.05602212823352001,   0.004048424803008318,
    -0.00029649035493754355, 2.1743939888768317e-05, -1.5949044837655831e-06,
    1.1698745682268504e-07,  -8.581135389144925e-09, 6.293716795998295e-10,
    -4.616499335349357e-11,  3.4417992009602364e-12, -2.524591478143916e-13};
constexpr double tanh_limit = 0.625;

}  // namespace

UOp TensorOps::polynomial(UOp x, std::span<const double> c) {
  UOp r = weak(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) r = add(mul(r, x), weak(c[i]));
  return r;
}

UOp TensorOps::unary(Op op, UOp x) {
  if (!x) return {};
  return alu(op, {to(x, concrete(least_float(x.dtype())))});
}
UOp TensorOps::exp2(UOp x) { return unary(Op::EXP2, x); }
UOp TensorOps::log2(UOp x) { return unary(Op::LOG2, x); }
UOp TensorOps::sqrt(UOp x) { return unary(Op::SQRT, x); }
UOp TensorOps::reciprocal(UOp x) { return unary(Op::RECIPROCAL, x); }
UOp TensorOps::sin(UOp x) { return unary(Op::SIN, x); }
UOp TensorOps::cos(UOp x) {
  // 1 - 2 sin(x/2)^2: halving is exact, a sum with pi/2 is not.
  return in_wide(x, [&](UOp v) {
    const UOp s = sin(mul(v, weak(0.5)));
    return sub(weak(1.0), mul(mul(s, s), weak(2.0)));
  });
}
UOp TensorOps::exp(UOp x) {
  return in_wide(x, [&](UOp v) { return exp2(mul(v, weak(std::numbers::log2e))); });
}
UOp TensorOps::log(UOp x) {
  return in_wide(x, [&](UOp v) { return mul(log2(v), weak(std::numbers::ln2)); });
}
UOp TensorOps::rsqrt(UOp x) {
  return in_wide(x, [&](UOp v) { return reciprocal(sqrt(v)); });
}
UOp TensorOps::sigmoid(UOp x) {
  return in_wide(x, [&](UOp v) { return reciprocal(add(exp(neg(v)), weak(1.0))); });
}
UOp TensorOps::silu(UOp x) {
  return in_wide(x, [&](UOp v) { return mul(v, sigmoid(v)); });
}

UOp TensorOps::tanh(UOp x) {
  return in_wide(x, [&](UOp v) {
    const bool f64 = v.dtype() == DType::F64;
    const UOp s = sub(mul(mul(v, v), weak(2 / (tanh_limit * tanh_limit))), weak(1.0));
    const UOp small =
        mul(v, polynomial(s, f64 ? std::span<const double>(tanh_small_f64) : tanh_small));
    // 2 sigmoid(2v) - 1; cancels near zero, and is right at both infinities.
    const UOp large = sub(mul(sigmoid(mul(v, weak(2.0))), weak(2.0)), weak(1.0));
    return where(lt(abs(v), weak(tanh_limit)), small, large);
  });
}

UOp TensorOps::erf(UOp x) {
  return in_wide(x, [&](UOp v) {
    const bool f64 = v.dtype() == DType::F64;
    const UOp square = mul(v, v);
    const UOp small = mul(v, polynomial(sub(mul(square, weak(2.0)), weak(1.0)),
                                        f64 ? std::span<const double>(erf_small_f64) : erf_small));
    const UOp magnitude = abs(v);
    const UOp s = sub(mul(reciprocal(add(magnitude, weak(2.0))), weak(6.0)), weak(1.0));
    const UOp tail = mul(exp(neg(square)),
                         polynomial(s, f64 ? std::span<const double>(erf_large_f64) : erf_large));
    const UOp positive = sub(fconst(1, v.dtype()), tail);
    const UOp large = where(lt(v, weak(0.0)), neg(positive), positive);
    return where(lt(magnitude, weak(1.0)), small, large);
  });
}

UOp TensorOps::gelu(UOp x, bool tanh_approximation) {
  return in_wide(x, [&](UOp v) {
    if (tanh_approximation) {
      // (1 + tanh(u)) / 2 = sigmoid(2u): half the work, and nothing cancels.
      const double slope = 2 * std::sqrt(2 / std::numbers::pi);
      const UOp u = mul(v, add(mul(mul(v, v), weak(0.044715 * slope)), weak(slope)));
      return mul(v, sigmoid(u));
    }
    const UOp inner = erf(mul(v, weak(std::numbers::sqrt2 / 2)));
    return mul(mul(v, weak(0.5)), add(inner, weak(1.0)));
  });
}

UOp TensorOps::trunc(UOp x) {
  return x && is_float(x.dtype()) ? alu(Op::TRUNC, {to(x, concrete(x.dtype()))}) : x;
}
UOp TensorOps::floor(UOp x) {
  if (!x || !is_float(x.dtype())) return x;
  const UOp t = trunc(x);
  return where(lt(x, t), sub(t, weak(1.0)), t);
}
UOp TensorOps::ceil(UOp x) {
  if (!x || !is_float(x.dtype())) return x;
  const UOp t = trunc(x);
  return where(lt(t, x), add(t, weak(1.0)), t);
}
UOp TensorOps::round(UOp x) {
  if (!x || !is_float(x.dtype())) return x;
  const UOp f = floor(x), rest = sub(x, f);
  const UOp odd = sub(f, mul(floor(mul(f, weak(0.5))), weak(2.0)));  // 0 or 1
  // The order of the cases keeps infinities, whose rest is NaN.
  return where(eq(rest, weak(0.5)), add(f, odd), where(lt(weak(0.5), rest), add(f, weak(1.0)), f));
}

UOp TensorOps::power_by_squaring(UOp x, int64_t n) {
  UOp r;
  for (UOp square = x;; square = mul(square, square)) {
    if (n % 2 != 0) r = r ? mul(r, square) : square;
    n /= 2;
    if (n == 0) return r;
  }
}

// By squaring over the bits of n, modulo 2^bits. To a negative power only 1 and -1 have whole
// values; the rest is 0.
UOp TensorOps::integer_power(UOp x, UOp n) {
  const DType t = x.dtype();
  const int bits = 8 * dtype_bytes(t) - (is_unsigned(t) ? 0 : 1);
  const UOp one = iconst(1, t), zero = iconst(0, t);
  const auto odd = [&](UOp u) { return ne(bitwise(Op::AND, u, one), zero); };
  UOp r = one, square = x, rest = n;
  for (int i = 0; i < bits; i++) {
    r = where(odd(rest), mul(r, square), r);
    if (i + 1 == bits) break;
    square = mul(square, square), rest = alu(Op::SHR, {rest, one});
  }
  if (is_unsigned(t)) return r;
  const UOp minus = iconst(-1, t);
  const UOp inverse = where(eq(x, one), one, where(eq(x, minus), where(odd(n), minus, one), zero));
  return where(lt(n, zero), inverse, r);
}

UOp TensorOps::pow(UOp x, UOp y) {
  if (!x || !y || !same_shapes({x, y})) return {};
  const DType t = concrete(join(x.dtype(), y.dtype()));
  constexpr double most = 64;  // longer products lose more than exp2(log2) does
  if (y.is_const() && y.number() == std::trunc(y.number()) && std::fabs(y.number()) <= most) {
    const auto n = static_cast<int64_t>(y.number());
    if (n < 0 && !is_float(t)) return refuse(fmt::format("{} to a negative power", dtype_name(t)));
    if (t == DType::Bool) return refuse("bools have no powers");
    const UOp base = to(x, t);
    if (n == 0) return full(Ints(base.shape().begin(), base.shape().end()), const_like(base, 1));
    if (!is_float(t)) return power_by_squaring(base, n);
    return in_wide(base, [&](UOp v) {
      const UOp r = power_by_squaring(v, n < 0 ? -n : n);
      return n < 0 ? reciprocal(r) : r;
    });
  }
  if (t == DType::Bool) return refuse("bools have no powers");
  if (!is_float(t)) return integer_power(to(x, t), to(y, t));
  const UOp exponent = to(y, t), base = to(x, t);
  if (exponent.is_const() && exponent.fval() == 0.5) return sqrt(base);
  if (exponent.is_const() && exponent.fval() == -0.5) return rsqrt(base);
  const UOp wide_y = is_small_float(t) ? to(exponent, DType::F32) : exponent;
  return in_wide(base, [&](UOp v) {
    const UOp zero = weak(0.0), one = weak(1.0);
    const UOp magnitude = abs(v);
    const UOp m = where(eq(magnitude, one), one, exp2(mul(log2(magnitude), wide_y)));
    const UOp whole = eq(trunc(wide_y), wide_y);
    const UOp half = mul(wide_y, weak(0.5));
    const UOp signed_m = where(ne(trunc(half), half), neg(to(m, v.dtype())), m);
    const UOp negative = where(whole, signed_m, where(eq(magnitude, weak(INFINITY)), m, weak(NAN)));
    return where(eq(wide_y, zero), one, where(eq(v, one), one, where(lt(v, zero), negative, m)));
  });
}

}  // namespace beamline
