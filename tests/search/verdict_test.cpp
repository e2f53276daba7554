#include "search/stats/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace beamline::stats {
namespace {

std::vector<double> constant(double ratio, size_t n) {
  return std::vector<double>(n, std::log(ratio));
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Verdict, SameAfterFiveQuietSessions) {
  Verdict v = decide(constant(1.0, 40));
  EXPECT_EQ(v.decision, Decision::Same);
  EXPECT_EQ(v.sessions_used, 5);
  EXPECT_EQ(v.sessions_available, 40);
  EXPECT_DOUBLE_EQ(v.ratio, 1);
  EXPECT_DOUBLE_EQ(v.confidence, 0.9995);
}

TEST(Verdict, SlowerAndFasterRepeat) {
  Verdict slow = decide(constant(1.05, 25));
  EXPECT_EQ(slow.decision, Decision::Slower);
  EXPECT_EQ(slow.sessions_used, 25);
  EXPECT_NEAR(slow.ratio, 1.05, 1e-12);
  EXPECT_EQ(decide(constant(0.9, 25)).decision, Decision::Faster);
}

TEST(Verdict, NotRetestedWithFewerThanTwentyLeft) {
  Verdict v = decide(constant(1.05, 24));
  EXPECT_EQ(v.decision, Decision::Slower);
  EXPECT_EQ(v.reason, "not re-tested");
  EXPECT_EQ(v.sessions_used, 5);
}

TEST(Verdict, AnAlarmThatDoesNotRepeatIsInconclusive) {
  Verdict v = decide(joined(constant(1.05, 5), constant(1.0, 20)));
  EXPECT_EQ(v.decision, Decision::Inconclusive);
  EXPECT_EQ(v.reason, "SLOWER did not repeat on fresh sessions");
  Verdict flipped = decide(joined(constant(1.05, 5), constant(0.95, 20)));
  EXPECT_EQ(flipped.decision, Decision::Inconclusive);
}

TEST(Verdict, EffectsAtTheEdgeOfTheRule) {
  // 1.5 %: above the floor, below the effect: within the 2 % that counts as the same.
  EXPECT_EQ(decide(constant(1.015, 40)).decision, Decision::Same);
  EXPECT_EQ(decide(constant(1.0201, 40)).decision, Decision::Slower);
  EXPECT_EQ(decide(constant(1 / 1.0201, 40)).decision, Decision::Faster);
}

TEST(Verdict, TooFewSessions) {
  for (size_t n : {0U, 1U, 4U}) {
    Verdict v = decide(constant(2.0, n));
    EXPECT_EQ(v.decision, Decision::Inconclusive) << n;
    EXPECT_EQ(v.reason, "fewer than 5 sessions");
    EXPECT_EQ(v.sessions_available, static_cast<int>(n));
  }
}

TEST(Verdict, WideNoiseRunsOutOfSessions) {
  std::vector<double> noisy;
  for (int i = 0; i < 40; ++i) noisy.push_back(i % 2 ? 0.3 : -0.3);
  Verdict v = decide(noisy);
  EXPECT_EQ(v.decision, Decision::Inconclusive);
  EXPECT_EQ(v.sessions_used, 40);
  noisy.resize(17);
  v = decide(noisy);
  EXPECT_EQ(v.decision, Decision::Inconclusive);
  EXPECT_EQ(v.sessions_used, 10);  // looks are at 5, 10, 20, 40 only
  EXPECT_EQ(v.reason, "sessions ran out");
}

TEST(Verdict, ASessionWithoutATimeIsInconclusive) {
  auto r = constant(1.2, 30);
  r[17] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decide(r).decision, Decision::Inconclusive);
  r[17] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decide(r).decision, Decision::Inconclusive);
}

TEST(Verdict, TheLaterLookDecidesWhatTheFirstCannot) {
  // h = 3, t(0.9995, 2) = 31.6: at five sessions even a clear effect with some noise is open.
  std::vector<double> r;
  for (int i = 0; i < 40; ++i) r.push_back(std::log(1.08) + (i % 3 - 1) * 0.01);
  Verdict v = decide(r);
  EXPECT_EQ(v.decision, Decision::Slower);
  EXPECT_EQ(v.sessions_used, 10 + 20);
}

TEST(Verdict, WhatCannotBeSeen) {
  // Without noise the effect alone decides.
  EXPECT_NEAR(smallest_visible(constant(1.0, 20)), 0.02, 1e-12);
  // What is just above is called SLOWER by a look at the same sessions, what is below is not.
  std::vector<double> noise;
  for (int i = 0; i < 20; ++i) noise.push_back((i % 5 - 2) * 0.02);
  const double visible = smallest_visible(noise);
  EXPECT_GT(visible, 0.03);
  auto shifted = [&](double by) {
    std::vector<double> r = noise;
    for (double& x : r) x += std::log1p(by);
    return look(r);
  };
  EXPECT_EQ(shifted(visible + 1e-6), Decision::Slower);
  EXPECT_NE(shifted(visible - 1e-6), Decision::Slower);
  EXPECT_TRUE(std::isnan(smallest_visible(constant(1.0, 2))));
}

// Session ratios as a shared machine gives them: a drifting level that both contestants share only
// in part (AR(1), 0.6) and one-sided spikes on a tenth of the sessions.
class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}
  std::vector<double> sessions(double ratio, size_t n, double sd) {
    std::normal_distribution<double> normal(0, sd);
    std::uniform_real_distribution<double> uniform(0, 1);
    double level = 0;
    std::vector<double> r;
    for (size_t i = 0; i < n; ++i) {
      level = 0.6 * level + 0.8 * normal(random_);
      double spike = uniform(random_) < 0.1 ? 0.2 * uniform(random_) : 0;
      r.push_back(std::log(ratio) + level + (uniform(random_) < 0.5 ? spike : -spike));
    }
    return r;
  }

 private:
  std::mt19937_64 random_;
};

struct Counts {
  int same = 0, slower = 0, faster = 0, open = 0;
};
Counts decide_many(double ratio, double sd, int times) {
  Noise noise(20240117);
  Counts c;
  for (int i = 0; i < times; ++i) switch (decide(noise.sessions(ratio, 60, sd)).decision) {
      case Decision::Same: ++c.same; break;
      case Decision::Slower: ++c.slower; break;
      case Decision::Faster: ++c.faster; break;
      case Decision::Inconclusive: ++c.open; break;
    }
  return c;
}

TEST(VerdictOnNoise, IdenticalCodeNeverAlarms) {
  Counts c = decide_many(1.0, 0.02, 2000);
  EXPECT_LE(c.slower + c.faster, 2);  // the goal is 0.1 %
  EXPECT_GE(c.same, 1600);
}

TEST(VerdictOnNoise, FivePercentIsFoundAndNeverCalledSame) {
  Counts c = decide_many(1.05, 0.015, 1000);
  EXPECT_GE(c.slower, 900);
  EXPECT_LE(c.same, 10);
  EXPECT_EQ(c.faster, 0);
}

TEST(VerdictOnNoise, TenPercentIsFound) {
  EXPECT_GE(decide_many(1.10, 0.02, 1000).slower, 990);
  EXPECT_GE(decide_many(1 / 1.10, 0.02, 1000).faster, 990);
}

}  // namespace
}  // namespace beamline::stats
