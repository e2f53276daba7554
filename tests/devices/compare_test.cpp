#include "devices/compare.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

namespace beamline {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Comparison floats(const std::vector<float>& got, const std::vector<double>& want, double rtol) {
  const int64_t n = static_cast<int64_t>(got.size());
  return compare_output(got.data(), DType::F32, want.data(), DType::F64, n, rtol,
                        rms_of(want.data(), DType::F64, n), 0);
}

struct Row {
  const char* what;
  std::vector<float> got;
  std::vector<double> want;
  double rtol;
  bool ok;
  int64_t first_bad;
};

constexpr float finf = std::numeric_limits<float>::infinity();
constexpr float fnan = std::numeric_limits<float>::quiet_NaN();

TEST(Compare, FloatsByTheToleranceOfAKernel) {
  // clang-format off
  const Row rows[] = {
      {"equal",                     {1, 2, 3},      {1, 2, 3},       0,    true,  -1},
      {"within rtol of |ref|+rms",  {1.002f, 1},    {1, 1},          1e-3, true,  -1},
      {"beyond it",                 {1, 1.0021f},   {1, 1},          1e-3, false,  1},
      {"rms excuses a small ref",   {100, 0.05f},   {100, 0},        1e-3, true,  -1},
      {"but not a lone one",        {0.05f},        {0},             1e-3, false,  0},
      {"nan in place",              {fnan, 1},      {nan, 1},        1e-3, true,  -1},
      {"nan out of place",          {1, fnan},      {1, 1},          1e-3, false,  1},
      {"a number for nan",          {1, 1},         {1, nan},        1e-3, false,  1},
      {"inf in place",              {finf, -finf},  {inf, -inf},     1e-3, true,  -1},
      {"inf of the other sign",     {finf},         {-inf},          1e-3, false,  0},
      {"a number for inf",          {1},            {inf},           1e-3, false,  0},
      {"inf for a number",          {finf, 1},      {1, 1},          1e9,  false,  0},
      {"overflow of the output",    {finf, 1},      {1e39, 1},       1e-3, true,  -1},
      {"inf does not widen rms",    {finf, 1.1f},   {inf, 1},        1e-3, false,  1},
      {"minus zero is zero",        {-0.0f, 1},     {0, 1},          0,    true,  -1},
  };
  // clang-format on
  for (const Row& r : rows) {
    const Comparison c = floats(r.got, r.want, r.rtol);
    EXPECT_EQ(c.ok, r.ok) << r.what;
    EXPECT_EQ(c.first_bad, r.first_bad) << r.what;
  }
}

TEST(Compare, ErrorIsRelativeToRefAndRms) {
  EXPECT_NEAR(floats({1.002f, 1}, {1, 1}, 1).max_err, 0.001, 1e-6);
  EXPECT_EQ(floats({fnan}, {1}, 1).max_err, DBL_MAX);
}

TEST(Compare, TellsWhatDiffers) {
  const Comparison c = floats({1, 2.5f, 9}, {1, 2, 3}, 1e-6);
  EXPECT_EQ(c.bad, 2);
  EXPECT_EQ(c.got, "2.5");
  EXPECT_EQ(c.want, "2");
}

TEST(Compare, SmallFloats) {
  const uint16_t half[] = {0x3C00, 0xC000, 0x7C00, 0x0001};  // 1, -2, inf, the least denormal
  const double half_want[] = {1, -2, 70000, 0x1p-24};        // f16 ends at 65504
  EXPECT_TRUE(compare_output(half, DType::F16, half_want, DType::F64, 4, 0, 0, 0).ok);
  const uint16_t brain[] = {0x3F80, 0xC000};
  const double brain_want[] = {1, -2};
  EXPECT_TRUE(compare_output(brain, DType::BF16, brain_want, DType::F64, 2, 0, 0, 0).ok);
  EXPECT_TRUE(compare_output(brain, DType::BF16, brain, DType::BF16, 2, 0, 0, 0).ok);
  EXPECT_DOUBLE_EQ(rms_of(brain, DType::BF16, 2), std::sqrt(2.5));
}

// Between two neighbours of the output's type there is nothing to hit.
TEST(Compare, TheLeastStepIsNoError) {
  const uint16_t half[] = {0x0001, 0x0002};
  const double want[] = {0x1.8p-25, 0x1.8p-24};
  EXPECT_TRUE(compare_output(half, DType::F16, want, DType::F64, 2, 0, 0, 0).ok);
  const double far[] = {0x1p-22, 0x1.8p-24};
  EXPECT_FALSE(compare_output(half, DType::F16, far, DType::F64, 2, 0, 0, 0).ok);
}

TEST(Compare, IntegersAndBoolsAreExact) {
  const int32_t a[] = {1, -2, 3}, b[] = {1, -2, 4};
  EXPECT_TRUE(compare_output(a, DType::I32, a, DType::I32, 3, 1, 0, 0).ok);
  const Comparison c = compare_output(a, DType::I32, b, DType::I32, 3, 1, 0, 0);
  EXPECT_EQ(c.first_bad, 2);
  EXPECT_EQ(c.got, "3");
  EXPECT_EQ(c.want, "4");
  const unsigned char yes[] = {1, 0}, odd[] = {1, 2};
  EXPECT_TRUE(compare_output(yes, DType::Bool, yes, DType::Bool, 2, 0, 0, 0).ok);
  EXPECT_EQ(compare_output(odd, DType::Bool, yes, DType::Bool, 2, 0, 0, 0).got, "byte 2");
  const uint64_t large[] = {UINT64_MAX}, less[] = {UINT64_MAX - 1};  // equal as doubles
  EXPECT_FALSE(compare_output(large, DType::U64, less, DType::U64, 1, 1, 0, 0).ok);
}

TEST(Compare, ZerosAreSeen) {
  const Comparison right = floats({0, -0.0f}, {0, 0}, 0), wrong = floats({0, 0}, {1, 0}, 0);
  EXPECT_TRUE(right.all_zero && right.want_all_zero && right.ok);
  EXPECT_TRUE(wrong.all_zero && !wrong.want_all_zero && !wrong.ok);
  EXPECT_FALSE(floats({0, 1}, {0, 1}, 0).all_zero);
}

TEST(Compare, PoisonIsNeverRight) {
  const DType types[] = {DType::F64, DType::F32, DType::F16, DType::BF16};
  for (const DType t : types) {
    for (const int turn : {0, 1}) {
      uint64_t got[2] = {};
      poison(got, t, 1, turn);
      const double want[] = {nan};  // even where a NaN is expected, none was written
      const Comparison c = compare_output(got, t, want, DType::F64, 1, 1, 0, turn);
      EXPECT_EQ(c.unwritten, 1) << dtype_name(t);
      EXPECT_NE(c.got.find("never written"), std::string::npos);
      EXPECT_EQ(got[1], 0u);
      // Without the pattern of this turn it is a NaN like another: so it is one.
      EXPECT_TRUE(compare_output(got, t, want, DType::F64, 1, 1, 0, turn + 1).ok) << dtype_name(t);
    }
  }
  unsigned char b = 0;
  poison(&b, DType::Bool, 1, 0);
  EXPECT_GT(b, 1);
  int8_t first = 0, second = 0;
  poison(&first, DType::I8, 1, 0), poison(&second, DType::I8, 1, 1);
  EXPECT_NE(first, second);
}

TEST(Compare, KnowsWhatItCannotRead) {
  EXPECT_TRUE(comparable(DType::Fp8e4m3, DType::F64));
  EXPECT_FALSE(comparable(DType::WeakInt));
  EXPECT_TRUE(comparable(DType::F16, DType::F64));
  EXPECT_FALSE(comparable(DType::I32, DType::F64));
  EXPECT_FALSE(comparable(DType::F32, DType::F16));
}

}  // namespace
}  // namespace beamline
