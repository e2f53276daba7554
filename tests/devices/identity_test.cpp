#include "devices/identity.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace beamline {
namespace {

CpuModel model() {
  CpuModel m;
  m.vendor = "AuthenticAMD";
  m.name = "AMD EPYC 7763";
  m.family = 25, m.model = 1, m.stepping = 1;
  m.isa = {"avx", "fma", "avx2"};
  return m;
}

CpuTopology topology() {
  CpuTopology t;
  t.pus = {0, 1};
  t.cores = 2, t.packages = 1, t.numa_nodes = 1;
  t.caches = {{1, 'd', 32768, 64, 1, 2}, {3, 'u', 33554432, 64, 2, 1}};
  return t;
}

// The id is in users' databases: this text and this hash may change only with a migration.
TEST(Identity, IsWhatItWas) {
  EXPECT_EQ(identity_text("cpu", model(), topology(), 2),
            "device-id 1\nbackend=cpu\nvendor=AuthenticAMD\nfamily=25\nmodel=1\nstepping=1\n"
            "isa=avx,fma,avx2\npus=2\ncores=2\npackages=1\nnuma=1\nsmt=1\n"
            "cache=L1d:32768:64:1x2\ncache=L3u:33554432:64:2x1\nthreads=2\n");
  const DeviceIdentity id = identify_cpu("cpu", model(), topology(), 2);
  EXPECT_EQ(id.device_id, "cpu-0db29cf8ff979e4c");
  EXPECT_EQ(id.name, "AMD EPYC 7763");
  EXPECT_EQ(id.arch, "x86_64-AuthenticAMD-f25m1-avx2");
}

TEST(Identity, EveryFixedFactDecides) {
  using Change = std::function<void(CpuModel&, CpuTopology&)>;
  const Change changes[] = {
      [](CpuModel&, CpuTopology&) {},
      [](CpuModel& m, CpuTopology&) { m.vendor = "GenuineIntel"; },
      [](CpuModel& m, CpuTopology&) { m.family++; },
      [](CpuModel& m, CpuTopology&) { m.model++; },
      [](CpuModel& m, CpuTopology&) { m.stepping++; },
      [](CpuModel& m, CpuTopology&) { m.isa.push_back("avx512f"); },
      [](CpuModel&, CpuTopology& t) { t.pus.push_back(2); },
      [](CpuModel&, CpuTopology& t) { t.cores = 1; },
      [](CpuModel&, CpuTopology& t) { t.packages = 2; },
      [](CpuModel&, CpuTopology& t) { t.numa_nodes = 2; },
      [](CpuModel&, CpuTopology& t) { t.threads_per_core = 2; },
      [](CpuModel&, CpuTopology& t) { t.caches[1].bytes /= 2; },
      [](CpuModel&, CpuTopology& t) { t.caches.pop_back(); },
  };
  std::set<std::string> ids;
  for (const Change& change : changes) {
    CpuModel m = model();
    CpuTopology t = topology();
    change(m, t);
    ids.insert(identify_cpu("cpu", m, t, 2).device_id);
  }
  ids.insert(identify_cpu("cpu:c", model(), topology(), 2).device_id);
  ids.insert(identify_cpu("cpu", model(), topology(), 1).device_id);
  EXPECT_EQ(ids.size(), std::size(changes) + 2);
}

TEST(Identity, PassingFactsDoNot) {
  CpuModel m = model();
  CpuTopology t = topology();
  const std::string id = identify_cpu("cpu", m, t, 2).device_id;
  m.name = "another spelling";
  t.pus = {4, 6};
  t.quota_cpus = 1.5;
  EXPECT_EQ(identify_cpu("cpu", m, t, 2).device_id, id);
}

TEST(Identity, ThisMachineIsTheSameTwice) {
  const CpuModel m = read_cpu_model();
  const auto a = identify_cpu("cpu", m, read_topology(), 1),
             b = identify_cpu("cpu", m, read_topology(), 1);
  EXPECT_EQ(a.device_id, b.device_id);
  EXPECT_EQ(a.device_id.size(), 4u + 16u);
  EXPECT_EQ(a.facts.at("fixed").at("vendor"), m.vendor);
}

}  // namespace
}  // namespace beamline
