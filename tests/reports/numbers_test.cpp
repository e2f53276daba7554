#include "reports/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace beamline::reports {
namespace {

TEST(Numbers, Times) {
  EXPECT_EQ(time_text(0.5), "0.500 ns");
  EXPECT_EQ(time_text(812), "812 ns");
  EXPECT_EQ(time_text(999.6), "1.00 us");
  EXPECT_EQ(time_text(12345), "12.3 us");
  EXPECT_EQ(time_text(4.5678e6), "4.57 ms");
  EXPECT_EQ(time_text(123e9), "123 s");
  EXPECT_EQ(time_text({}), "-");
  EXPECT_EQ(time_text(std::nan("")), "-");
}

TEST(Numbers, DigitsCarry) {
  EXPECT_EQ(digits_text(9.996), "10.0");
  EXPECT_EQ(digits_text(99.96), "100");
  EXPECT_EQ(digits_text(1234.4), "1234");
  EXPECT_EQ(digits_text(0.0), "0");
  EXPECT_EQ(digits_text(0.01234), "0.0123");
}

TEST(Numbers, RatiosAndBytes) {
  EXPECT_EQ(ratio_text(1.234), "1.23x");
  EXPECT_EQ(ratio_text(250), "250x");
  EXPECT_EQ(ratio_text({}), "-");
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1.2e9), "1.20 GB");
}

}  // namespace
}  // namespace beamline::reports
