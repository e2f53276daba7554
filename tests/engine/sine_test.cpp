// The decomposed sine and cosine over all exponents, and beside the zeros.
#include "engine/lower/sine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/interpret/scalar.h"
#include "engine/ir/arena.h"

namespace beamline {
namespace {

// Greatest absolute error over numbers of every exponent in [low, high].
double worst_error(DType t, bool cosine, int low, int high, double& at) {
  Arena arena;
  const Arena::Scope scope(arena);
  ParamArg arg;
  arg.name = "x", arg.addrspace = AddrSpace::Alu;
  const UOp x = param(arg, t, {});
  const UOp s = cosine ? decompose_cos(x) : decompose_sin(x);
  std::mt19937_64 random(1);
  double worst = 0;
  for (int e = low; e <= high; e++)
    for (int i = 0; i < 12; i++) {
      const double mantissa = 1 + std::ldexp(static_cast<double>(random() >> 11), -53);
      double v = std::ldexp(i == 0 ? 1.0 : mantissa, e) * (i % 2 == 0 ? 1 : -1);
      // Beside a multiple of pi/2: there the reduction cancels most.
      if (i >= 8 && std::fabs(v) < 0x1p50) v = std::nearbyint(v * M_2_PI) * M_PI_2;
      v = round_to(t, v);
      const auto got = evaluate(s, {{x, real(v)}});
      EXPECT_TRUE(got.has_value()) << v;
      if (!got) return INFINITY;
      const double error = std::fabs(got->real - (cosine ? std::cos(v) : std::sin(v)));
      if (!(error <= worst)) worst = error, at = v;
    }
  return worst;
}

TEST(Sine, IsRightForEveryExponent) {
  for (const bool cosine : {false, true}) {
    double at = 0;
    EXPECT_LT(worst_error(DType::F32, cosine, -126, 127, at), 1.5 * 0x1p-24) << at;
    EXPECT_LT(worst_error(DType::F64, cosine, -1022, 1023, at), 0x1p-50) << at;
  }
}

TEST(Sine, OfNoNumbers) {
  Arena arena;
  const Arena::Scope scope(arena);
  ParamArg arg;
  arg.name = "x", arg.addrspace = AddrSpace::Alu;
  for (const DType t : {DType::F32, DType::F64}) {
    const UOp x = param(arg, t, {});
    const UOp s = decompose_sin(x);
    for (const double v : std::initializer_list<double>{INFINITY, -INFINITY, NAN})
      EXPECT_TRUE(std::isnan(evaluate(s, {{x, real(v)}})->real)) << v;
    EXPECT_EQ(evaluate(s, {{x, real(0)}})->real, 0);
  }
}

}  // namespace
}  // namespace beamline
