#include "devices/cpu/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "devices/cpu/topology.h"

namespace beamline {
namespace {

// Kernels of the tests: buffers[0] is an array of atomic counters.
std::atomic<int64_t>* counters(void* const* buffers) {
  return static_cast<std::atomic<int64_t>*>(buffers[0]);
}
void count_core(void* const* buffers, int64_t core) { counters(buffers)[core]++; }
void spin_a_while(void* const* buffers, int64_t) {
  counters(buffers)[0]++;
  for (int i = 0; i < 30'000; i++) asm volatile("" ::: "memory");
}
void spin_longer(void* const* buffers, int64_t) {
  counters(buffers)[1]++;
  for (int i = 0; i < 3'000'000; i++) asm volatile("" ::: "memory");
}

struct Counters {
  std::atomic<int64_t> of[64] = {};
  void* buffers[1] = {of};
  Spans spans = {{of, sizeof of}};
};

TEST(Timer, GoesForwardAndAgreesWithTheClock) {
  const Timer t;
  EXPECT_GE(t.overhead_ns(), 0);
  EXPECT_GT(t.ns_per_tick(), 0);
  uint64_t last = t.now();
  for (int i = 0; i < 1000; i++) {
    const uint64_t now = t.now();
    EXPECT_GE(now, last);
    last = now;
  }
  // The two clocks read one span; what falls between the readings only matters in unlucky tries.
  double best = 1;
  for (int i = 0; i < 200 && best > 0.01; i++) {
    const uint64_t clock = Timer::clock_ns(), ticks = t.now();
    while (Timer::clock_ns() - clock < 1'000'000) {
    }
    const double by_clock = static_cast<double>(Timer::clock_ns() - clock);
    best = std::min(best, std::abs(t.ns(t.now() - ticks) / by_clock - 1));
  }
  EXPECT_LE(best, 0.01);
}

TEST(Launcher, CallsEveryCoreIdOnce) {
  Launcher launcher(read_topology().pus);
  for (const int threads : {1, 2, 3, 7, 64, 1, 5}) {
    Counters c;
    for (int round = 0; round < 50; round++) launcher.run(count_core, c.buffers, threads);
    for (int i = 0; i < 64; i++) EXPECT_EQ(c.of[i], i < threads ? 50 : 0) << threads << " " << i;
  }
}

TEST(Launcher, FixesTheFloatMode) {
#if defined(__x86_64__)
  EXPECT_EQ(set_float_mode(), 0x1F80u);
#endif
}

class SamplerTest : public testing::Test {
 protected:
  SessionResult run(const std::vector<Contestant>& contestants, const SessionPlan& plan) {
    return run_session(timer, launcher, contestants, c.buffers, c.spans, plan);
  }
  Timer timer;
  Launcher launcher{read_topology().pus};
  Counters c;
};

TEST_F(SamplerTest, OneSampleASweepInRandomOrder) {
  SessionPlan plan;
  plan.sweeps = 12;
  plan.seed = 7;
  const SessionResult r = run({{spin_a_while, 1}, {spin_a_while, 1}, {count_core, 1}}, plan);
  ASSERT_EQ(r.contestants.size(), 3u);
  bool moved = false;
  for (int sweep = 0; sweep < 12; sweep++) {
    std::vector<int> positions;
    for (const auto& s : r.contestants)
      positions.push_back(s.positions.at(static_cast<size_t>(sweep)));
    moved |= positions != std::vector<int>{0, 1, 2};
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(positions, (std::vector<int>{0, 1, 2}));
  }
  EXPECT_TRUE(moved);
  for (const auto& s : r.contestants) {
    EXPECT_EQ(s.ns.size(), 12u);
    EXPECT_TRUE(s.refused.empty());
    for (const double ns : s.ns) EXPECT_GT(ns, 0);
  }
  EXPECT_GT(r.contestants[2].calls_per_sample, 1);  // a call of some ns needs a batch
  EXPECT_GT(r.canary_before_ns, 0);
  EXPECT_GT(r.wall_ns, 0);
  const SessionResult again = run({{spin_a_while, 1}, {spin_a_while, 1}, {count_core, 1}}, plan);
  EXPECT_EQ(again.contestants[0].positions, r.contestants[0].positions);
  plan.seed = 8;
  EXPECT_NE(
      run({{spin_a_while, 1}, {spin_a_while, 1}, {count_core, 1}}, plan).contestants[0].positions,
      r.contestants[0].positions);
}

TEST_F(SamplerTest, EverySampleHasAnUntimedCallBefore) {
  SessionPlan plan;
  plan.sweeps = 5;
  plan.min_batch_ns = 0;  // one call is enough
  run({{spin_a_while, 1}}, plan);
  EXPECT_EQ(c.of[0], 2 + 5 * 2);  // finding the batch, then a warm and a timed call a sweep
}

TEST_F(SamplerTest, SlowContestantsAreKilledEarly) {
  SessionPlan plan;
  plan.sweeps = 20;
  plan.kill_above_ns = 1;  // everything is slower than that
  plan.kill_after = 3;
  const SessionResult r = run({{spin_a_while, 1}, {spin_longer, 1}}, plan);
  for (const auto& s : r.contestants) {
    EXPECT_TRUE(s.killed);
    EXPECT_EQ(s.ns.size(), 3u);
  }
  plan.kill_above_ns = 1e12;
  EXPECT_EQ(run({{spin_a_while, 1}}, plan).contestants[0].ns.size(), 20u);
}

TEST_F(SamplerTest, ImpossibleTimesAreRefused) {
  SessionPlan plan;
  plan.floor_ns = 1e12;
  const SessionResult r = run({{spin_a_while, 1}}, plan);
  EXPECT_TRUE(r.contestants[0].ns.empty());
  EXPECT_NE(r.contestants[0].refused.find("below what is possible"), std::string::npos);
}

TEST_F(SamplerTest, ColdSessionsFlush) {
  SessionPlan plan;
  plan.cold = true;
  plan.sweeps = 3;
  plan.min_batch_ns = 1000;
  const SessionResult r = run({{spin_a_while, 1}}, plan);
  EXPECT_EQ(r.contestants[0].ns.size(), 3u);
  EXPECT_EQ(c.of[0], 1 + 3);  // no warm calls
}

TEST_F(SamplerTest, ThreadedKernelsAreTimedWhole) {
  SessionPlan plan;
  plan.sweeps = 4;
  const SessionResult r = run({{count_core, 4}}, plan);
  EXPECT_EQ(r.contestants[0].ns.size(), 4u);
  EXPECT_GT(c.of[0], 0);
  EXPECT_EQ(c.of[0], c.of[3]);
}

}  // namespace
}  // namespace beamline
