#include "devices/cpu/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <thread>

#include "devices/cpu/cpu_target.h"
#include "devices/environment.h"

namespace beamline {
namespace {

// Runs f on a thread of its own, so that bindings do not outlive it.
template <class F>
void on_thread(F&& f) {
  std::thread(f).join();
}

TEST(Topology, NamesEveryAllowedPuOnce) {
  const CpuTopology t = read_topology();
  ASSERT_FALSE(t.pus.empty());
  EXPECT_EQ(std::set<unsigned>(t.pus.begin(), t.pus.end()).size(), t.pus.size());
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  for (const unsigned pu : t.pus) EXPECT_TRUE(CPU_ISSET(pu, &mask)) << pu;
  EXPECT_LE(t.pus.size(), static_cast<size_t>(CPU_COUNT(&mask)));
  EXPECT_GE(t.cores, 1);
  EXPECT_LE(t.cores, static_cast<int>(t.pus.size()));
  for (const CpuCache& c : t.caches) {
    EXPECT_GE(c.level, 1);
    EXPECT_NE(std::string("diu").find(c.kind), std::string::npos);
    EXPECT_GE(c.count, 1);
  }
}

TEST(Topology, BindThreadRunsOnThatPu) {
  for (const unsigned pu : read_topology().pus) {
    on_thread([pu] {
      ASSERT_TRUE(bind_thread(pu));
      EXPECT_EQ(sched_getcpu(), static_cast<int>(pu));
    });
  }
  on_thread([] { EXPECT_FALSE(bind_thread(1'000'000)); });
}

// A child process: binding is for the whole process.
TEST(TopologyDeathTest, AffinityNarrowsWhatIsAllowed) {
  const unsigned last = read_topology().pus.back();
  EXPECT_EXIT(
      {
        const BindReport report = bind_process({last});
        const CpuTopology t = read_topology();
        const bool ok = report.cpu && t.pus == std::vector<unsigned>{last} && t.cores == 1;
        _exit(ok ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST(Topology, BindingToNothingIsRefusedWithANote) {
  const BindReport report = bind_process({});
  EXPECT_FALSE(report.cpu);
  EXPECT_FALSE(report.note.empty());
}

TEST(CpuModel, IsReadAndAgreesWithTheCompiler) {
  const CpuModel m = read_cpu_model();
  EXPECT_FALSE(m.vendor.empty());
#if defined(__x86_64__)
  EXPECT_EQ(m.has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_GT(m.family, 0);
#endif
  EXPECT_FALSE(m.has("no such feature"));
}

TEST(CpuTarget, FollowsFeaturesAndLimits) {
  CpuModel m;
  CpuTopology t;
  t.pus = {0, 1, 2, 3};
  EXPECT_EQ(cpu_target(m, t).vector_bytes, 16);
  m.isa = {"avx"};
  EXPECT_EQ(cpu_target(m, t).vector_bytes, 32);
  EXPECT_FALSE(cpu_target(m, t).masked_tails);
  m.isa = {"avx", "avx2"};
  EXPECT_TRUE(cpu_target(m, t).masked_tails);
  EXPECT_EQ(cpu_target(m, t).vector_registers, 16);
  m.isa = {"avx", "avx2", "avx512f", "avx512vl"};
  EXPECT_EQ(cpu_target(m, t).vector_bytes, 64);
  EXPECT_EQ(cpu_target(m, t).vector_registers, 32);
  EXPECT_EQ(cpu_target(m, t).threads, 4);
  EXPECT_EQ(cpu_target(m, t, 2).threads, 2);
  EXPECT_EQ(cpu_target(m, t, 9).threads, 4);
  t.quota_cpus = 2.5;
  EXPECT_EQ(cpu_target(m, t).threads, 2);
  t.quota_cpus = 0.5;
  EXPECT_EQ(cpu_target(m, t).threads, 1);
}

TEST(Environment, UnreadableFactsHaveAReason) {
  const nlohmann::json e = read_environment();
  EXPECT_TRUE(e.at("kernel").is_string());
  for (const auto& [name, value] : e.items()) {
    EXPECT_EQ(value.is_null(), e.at("unreadable").contains(name)) << name;
  }
  EXPECT_EQ(read_load().at("loadavg").size(), 3u);
}

}  // namespace
}  // namespace beamline
