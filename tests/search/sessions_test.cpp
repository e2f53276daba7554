#include "search/stats/sessions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace beamline::stats {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Sessions, MinimaLeaveOutWhatIsNoTime) {
  std::vector<Sample> samples{{1, 0, 30}, {1, 1, 20}, {2, 0, nan}, {2, 1, 50},
                              {3, 0, 0},  {3, 1, -4}, {3, 2, inf}};
  auto minima = session_minima(samples);
  ASSERT_EQ(minima.size(), 2U);
  EXPECT_EQ(minima.at(1), 20);
  EXPECT_EQ(minima.at(2), 50);
  EXPECT_DOUBLE_EQ(median_session_minimum(samples), 35);
  EXPECT_TRUE(std::isnan(median_session_minimum({})));
}

TEST(Sessions, RatiosOfCommonSessionsInOrder) {
  std::vector<Sample> ref{{4, 0, 100}, {1, 0, 100}, {2, 0, 100}};
  std::vector<Sample> cand{{1, 0, 110}, {3, 0, 5}, {4, 0, 50}};
  auto r = session_log_ratios(ref, cand);
  ASSERT_EQ(r.size(), 2U);
  EXPECT_NEAR(r[0], std::log(1.1), 1e-12);
  EXPECT_NEAR(r[1], std::log(0.5), 1e-12);
  EXPECT_TRUE(session_log_ratios({}, cand).empty());
}

TEST(Gain, ByHand) {
  std::vector<Sample> baseline, winner;
  const double ratio[] = {0, 0.01, 0.02, 0.03, 0.10};
  for (int s = 0; s < 5; ++s) {
    winner.push_back({s, 0, 1000});
    baseline.push_back({s, 0, 1000 * std::exp(ratio[s])});
  }
  Gain g = publish_gain(baseline, winner);
  EXPECT_EQ(g.sessions, 5);
  EXPECT_NEAR(g.gain, std::exp(0.02), 1e-12);
  double half = 4.302653 * 0.02 / std::sqrt(6);  // t(0.975, 2)
  EXPECT_NEAR(g.ci_low, std::exp(0.02 - half), 1e-7);
  EXPECT_NEAR(g.ci_high, std::exp(0.02 + half), 1e-7);
}

TEST(Gain, OneSessionHasNoInterval) {
  Gain g = publish_gain(std::vector<Sample>{{1, 0, 20}}, std::vector<Sample>{{1, 0, 10}});
  EXPECT_DOUBLE_EQ(g.gain, 2);
  EXPECT_EQ(g.sessions, 1);
  EXPECT_TRUE(std::isnan(g.ci_low));
  EXPECT_TRUE(std::isnan(publish_gain({}, {}).gain));
}

}  // namespace
}  // namespace beamline::stats
