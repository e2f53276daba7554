#include "harness/device_peaks.h"

#include <gtest/gtest.h>

namespace beamline {
namespace {

DevicePeaks sample() {
  DevicePeaks p;
  p.threads = 2;
  p.gflops = 100, p.gflops_f64 = 50, p.gflops_1 = 60;
  p.rates = {{1e3, 200, 100}, {1e5, 90, 100}, {1e7, 10, 8}};
  p.measured_at = "2026-01-02T03:04:05Z";
  return p;
}

TEST(DevicePeaks, BandwidthBetweenFootprints) {
  const DevicePeaks p = sample();
  EXPECT_DOUBLE_EQ(p.gbps_at(1), 200);
  EXPECT_DOUBLE_EQ(p.gbps_at(1e3), 200);
  EXPECT_DOUBLE_EQ(p.gbps_at(1e4), 150);  // half way in the logarithm
  EXPECT_DOUBLE_EQ(p.gbps_at(1e5), 100);
  EXPECT_DOUBLE_EQ(p.gbps_at(1e12), 10);
  EXPECT_DOUBLE_EQ(p.memory_gbps(), 10);
  EXPECT_DOUBLE_EQ(DevicePeaks().gbps_at(5), 0);
}

TEST(DevicePeaks, TheLargerOfTwoBounds) {
  const DevicePeaks p = sample();
  EXPECT_DOUBLE_EQ(bound_ns(p, 1e6, 1e3, false), 1e4);  // 1e6 flops at 100 a ns
  EXPECT_DOUBLE_EQ(bound_ns(p, 1e6, 1e3, true), 2e4);   // at 50
  EXPECT_DOUBLE_EQ(bound_ns(p, 1e3, 1e7, false), 1e6);  // 1e7 bytes at 10 a ns
  EXPECT_DOUBLE_EQ(bound_share(p, 1e6, 1e3, "f32 <- f32", 2e4).value(), 0.5);
  EXPECT_DOUBLE_EQ(bound_share(p, 1e6, 1e3, "f64 <- f64", 2e4).value(), 1);
  EXPECT_FALSE(bound_share(p, 0, 0, "f32", 10));
  EXPECT_FALSE(bound_share(p, 1, 1, "f32", 0));
}

TEST(DevicePeaks, ReadBackFromFacts) {
  nlohmann::json facts = {{"fixed", 1}, {"probe", peaks_json(sample())}};
  const auto p = read_peaks(facts.dump());
  ASSERT_TRUE(p);
  EXPECT_EQ(peaks_json(*p), peaks_json(sample()));
  for (const char* bad :
       {"", "no json", "[]", "{}", R"({"probe": 3})", R"({"probe": {"gflops": 1}})"})
    EXPECT_FALSE(read_peaks(bad)) << bad;
  facts["probe"]["gflops"] = 0;
  EXPECT_FALSE(read_peaks(facts.dump()));
  facts["probe"] = peaks_json(sample());
  std::swap(facts["probe"]["bandwidth"][0], facts["probe"]["bandwidth"][1]);
  EXPECT_FALSE(read_peaks(facts.dump()));
}

}  // namespace
}  // namespace beamline
