// The functions of real numbers as machine code: every 61st bit pattern and the edges stay within
// the stated bounds. build/release/bin/ulp looks at every pattern.
#include "tests/devices/transcendentals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "devices/cpu/cpu_target.h"

namespace beamline {
namespace {

constexpr int64_t count = 1 << 14;

class Ulp : public testing::TestWithParam<Transcendental> {};

TEST_P(Ulp, StaysWithinTheStatedBound) {
  const Transcendental& f = GetParam();
  const CodeBlob code = code_of(f, count, cpu_target(read_cpu_model(), read_topology(), 1));
  const UlpError edge = greatest_error_at_edges(f, code, count);
  EXPECT_LE(edge.ulps, f.bound) << "at the edge " << edge.at;
  // Either sign of each: 2^32 / 61 patterns in all.
  const UlpError e = greatest_error(f, code, count, 0, uint64_t{1} << 31, 61);
  EXPECT_LE(e.ulps, f.bound) << "at " << e.at;
  RecordProperty("worst_ulp", std::to_string(std::max(e.ulps, edge.ulps)));
}

INSTANTIATE_TEST_SUITE_P(All, Ulp, testing::ValuesIn(transcendentals()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(UlpOf, CountsUnitsOfTheExactValue) {
  struct Case {
    float got;
    double exact, want;
  };
  const Case cases[] = {
      {1.0f, 1.0, 0},
      {1.0f, 1.0 + 0x1p-23, 1},
      {1.0f, 1.0 - 0x1p-24, 1},  // below a power of two units are half as large
      {0.0f, 0x1p-149, 1},
      {0x1p-149f, 0x1p-150, 0.5},
      {0x1.fffffep127f, 0x1p128, 1},
      {INFINITY, 1e300, 0},
      {-INFINITY, 1e300, 0x1p25},
      {NAN, NAN, 0},
      {NAN, 1.0, INFINITY},
  };
  for (const Case& c : cases) EXPECT_EQ(ulps(c.got, c.exact), c.want) << c.got << " " << c.exact;
}

}  // namespace
}  // namespace beamline
