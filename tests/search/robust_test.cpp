#include "search/stats/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace beamline::stats {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(Median, OddEvenOneNone) {
  EXPECT_DOUBLE_EQ(median(std::vector{3.0, 1.0, 2.0}), 2);
  EXPECT_DOUBLE_EQ(median(std::vector{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_DOUBLE_EQ(median(std::vector{7.0}), 7);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(median(std::vector{1.0, nan, 2.0})));
}

TEST(TrimmedMean, RemovesAFifthAtEachEnd) {
  EXPECT_EQ(trim_count(4), 0U);
  EXPECT_EQ(trim_count(5), 1U);
  EXPECT_EQ(trim_count(20), 4U);
  // g = 1: the mean of 1, 2, 3.
  EXPECT_DOUBLE_EQ(trimmed_mean(std::vector{1000.0, 1.0, 2.0, 3.0, -50.0}), 2);
  EXPECT_DOUBLE_EQ(trimmed_mean(std::vector{1.0, 2.0}), 1.5);
  EXPECT_TRUE(std::isnan(trimmed_mean({})));
  EXPECT_TRUE(std::isnan(trimmed_mean(std::vector{1.0, 2.0, 3.0, 4.0, nan})));
}

TEST(TrimmedMean, OneWildSessionOfFiveChangesNothing) {
  std::vector<double> calm{0, 0.01, 0.02, 0.03, 0.04}, wild{0, 0.01, 0.02, 0.03, 9.0};
  EXPECT_DOUBLE_EQ(trimmed_mean(calm), trimmed_mean(wild));
  EXPECT_DOUBLE_EQ(trimmed_standard_error(calm), trimmed_standard_error(wild));
}

TEST(StandardError, ByHand) {
  // Winsorised 0.01 0.01 0.02 0.03 0.03: squares about 0.02 sum to 4e-4; h = 3: 0.02 / sqrt(6).
  EXPECT_NEAR(trimmed_standard_error(std::vector{0.0, 0.01, 0.02, 0.03, 0.10}), 0.02 / std::sqrt(6),
              1e-15);
  // n = 2, nothing trimmed: squares 0.5; sqrt(0.5) / sqrt(2).
  EXPECT_NEAR(trimmed_standard_error(std::vector{1.0, 2.0}), 0.5, 1e-15);
  EXPECT_DOUBLE_EQ(trimmed_standard_error(std::vector{3.0, 3.0, 3.0, 3.0, 3.0}), 0);
  EXPECT_TRUE(std::isnan(trimmed_standard_error(std::vector{1.0})));
  EXPECT_TRUE(std::isnan(trimmed_standard_error({})));
}

TEST(StudentT, TableValues) {
  EXPECT_NEAR(student_t(0.95, 2), 2.919986, 1e-6);
  EXPECT_NEAR(student_t(0.9995, 2), 31.59905, 1e-4);
  EXPECT_NEAR(student_t(0.995, 11), 3.105807, 1e-6);
  EXPECT_NEAR(student_t(0.975, 1), 12.706205, 1e-5);
  EXPECT_NEAR(student_t(0.5, 7), 0, 1e-12);
  EXPECT_TRUE(std::isnan(student_t(1.0, 3)));
  EXPECT_TRUE(std::isnan(student_t(0.9, 0)));
  EXPECT_TRUE(std::isnan(student_t(nan, 3)));
}

TEST(Estimate, BoundsByHand) {
  Estimate e = estimate(std::vector{0.0, 0.01, 0.02, 0.03, 0.10});
  EXPECT_DOUBLE_EQ(e.df, 2);
  EXPECT_NEAR(e.low(0.95), 0.02 - 2.919986 * 0.02 / std::sqrt(6), 1e-8);
  EXPECT_NEAR(e.high(0.95), 0.02 + 2.919986 * 0.02 / std::sqrt(6), 1e-8);
}

TEST(Estimate, FewValuesHaveNoBounds) {
  for (const auto& values : {std::vector<double>{}, {1.0}, {1.0, 2.0}}) {
    Estimate e = estimate(values);
    EXPECT_TRUE(std::isnan(e.low(0.95)));
    EXPECT_TRUE(std::isnan(e.high(0.95)));
  }
}

}  // namespace
}  // namespace beamline::stats
