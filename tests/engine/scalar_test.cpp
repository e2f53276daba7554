// The reference meaning of scalar expressions.
#include "engine/interpret/scalar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/ir/arena.h"

namespace beamline {
namespace {

class Scalar : public ::testing::Test {
 protected:
  std::optional<ScalarValue> at(UOp u, int64_t v = 0) { return evaluate(u, {{a, whole(v)}}); }
  Arena arena;
  Arena::Scope scope{arena};
  UOp a = variable("a", -100, 100);
};

TEST_F(Scalar, DivisionRoundsDown) {
  const int64_t rows[][4] = {{7, 2, 3, 1},    {-7, 2, -4, 1}, {7, -2, -4, -1},
                             {-7, -2, 3, -1}, {-6, 3, -2, 0}, {0, -5, 0, 0}};
  for (const auto& [x, y, q, r] : rows) {
    EXPECT_TRUE(*at(a / iconst(y), x) == whole(q)) << x << " " << y;
    EXPECT_TRUE(*at(a % iconst(y), x) == whole(r)) << x << " " << y;
  }
  EXPECT_TRUE(*at(alu(Op::CDIV, {a, iconst(2)}), -7) == whole(-3));
  EXPECT_TRUE(*at(alu(Op::CMOD, {a, iconst(2)}), -7) == whole(-1));
}
TEST_F(Scalar, DivisionByZeroHasNoValue) {
  EXPECT_FALSE(at(iconst(1) / a, 0));
  EXPECT_FALSE(at(iconst(1) % a, 0));
  EXPECT_FALSE(at((iconst(1) / a) * iconst(0), 0));
  EXPECT_TRUE(at(where(ne(a, iconst(0)), iconst(1) / a, iconst(0)), 0))
      << "a branch that is not taken";
  EXPECT_TRUE(*at(bool_const(false) & (iconst(1) / a < iconst(1)), 0) == whole(0));
}
TEST_F(Scalar, WeakIntegersAreMathematical) {
  const UOp big = iconst(INT64_MAX);
  EXPECT_TRUE(*at(big + big) == whole(__int128(INT64_MAX) * 2));
  EXPECT_TRUE(*at(big * big / big) == whole(INT64_MAX));
  EXPECT_FALSE(at(big * big * big)) << "beyond 128 bits";
}
TEST_F(Scalar, WidthsWrap) {
  EXPECT_TRUE(*at(iconst(200, DType::U8) + iconst(100, DType::U8)) == whole(44));
  EXPECT_TRUE(*at(iconst(INT32_MAX, DType::I32) + iconst(1, DType::I32)) == whole(INT32_MIN));
  EXPECT_TRUE(*at(iconst(0, DType::U64) - iconst(1, DType::U64)) == whole(UINT64_MAX));
  EXPECT_TRUE(*at(iconst(INT64_MAX, DType::I64) * iconst(2, DType::I64)) == whole(-2));
  EXPECT_TRUE(*at(cast(iconst(300), DType::I8)) == whole(44));
  EXPECT_FALSE(at(alu(Op::SHL, {iconst(1, DType::I32), iconst(32, DType::I32)})));
}
TEST_F(Scalar, FloatsRoundAndKeepNan) {
  EXPECT_TRUE(*at(fconst(1, DType::F32) + fconst(1e-9, DType::F32)) == real(1));
  EXPECT_TRUE(*at(fconst(2049, DType::F16) + fconst(0, DType::F16)) == real(2048));
  EXPECT_TRUE(std::isnan(at(fconst(INFINITY, DType::F32) * fconst(0, DType::F32))->real));
  EXPECT_TRUE(std::isnan(at(maximum(fconst(NAN, DType::F32), fconst(1, DType::F32)))->real));
  EXPECT_FALSE(at(cast(fconst(1e30, DType::F32), DType::I32)));
}
TEST_F(Scalar, PoisonIsAValue) {
  const UOp gate = where(a < iconst(3), a, invalid());
  EXPECT_TRUE(*at(gate + iconst(1), 2) == whole(3));
  EXPECT_EQ(at(gate + iconst(1), 3)->kind, ScalarValue::Kind::Poison);
  EXPECT_TRUE(*at(where(a < iconst(3), gate, iconst(7)), 5) == whole(7));
}
TEST_F(Scalar, LeavesNeedValues) {
  EXPECT_FALSE(evaluate(a, {}));
  const UOp sum = a + iconst(1);
  EXPECT_TRUE(*evaluate(sum * iconst(2), {{sum, whole(5)}}) == whole(10))
      << "any node can be given";
}
TEST_F(Scalar, OperandsMeetInTheirJoin) {
  EXPECT_TRUE(*at(bool_const(true) + iconst(4)) == whole(5));
  EXPECT_TRUE(*at(iconst(3, DType::I32) * fconst(0.5, DType::F32)) == real(1.5));
}

}  // namespace
}  // namespace beamline
