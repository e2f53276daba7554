// Machines of other people, judged.
#include "harness/commands/doctor_checks.h"

#include <gtest/gtest.h>

#include <functional>

namespace beamline::cli {
namespace {

struct Machine {
  Machine() {
    topology.pus = {0, 1};
    topology.cores = 2;
  }
  CpuTopology topology;
  nlohmann::json environment = {{"governor", "performance"},
                                {"boost", "0"},
                                {"smt", "off"},
                                {"huge_pages", "always [madvise] never"},
                                {"clock_source", "tsc"},
                                {"hypervisor", false}};
  nlohmann::json load = {{"loadavg", {0.0, 0.1, 0.2}}, {"steal_ticks", 0}};

  std::string state(const std::string& check) const {
    for (const DoctorCheck& c : judge_machine(topology, environment, load))
      if (c.check == check) return c.state + (c.advice.empty() ? "" : " with advice");
    return "no such check";
  }
};

TEST(DoctorChecks, AQuietMachineIsOk) {
  for (const DoctorCheck& c :
       judge_machine(Machine().topology, Machine().environment, Machine().load)) {
    EXPECT_EQ(c.state, "ok") << c.check << ": " << c.value;
    EXPECT_EQ(c.advice, "") << c.check;
    EXPECT_NE(c.value, "") << c.check;
  }
}

struct Case {
  const char* check;
  std::function<void(Machine&)> change;
  const char* state;
};
class DoctorCase : public ::testing::TestWithParam<Case> {};
TEST_P(DoctorCase, IsSeen) {
  Machine m;
  GetParam().change(m);
  EXPECT_EQ(m.state(GetParam().check), GetParam().state);
}
// clang-format off
INSTANTIATE_TEST_SUITE_P(All, DoctorCase, ::testing::Values(
    Case{"governor",     [](Machine& m) { m.environment["governor"] = "powersave"; },                  "warning with advice"},
    Case{"governor",     [](Machine& m) { m.environment["governor"] = nullptr; },                      "unknown with advice"},
    Case{"boost",        [](Machine& m) { m.environment["boost"] = "1"; },                             "warning with advice"},
    Case{"boost",        [](Machine& m) { m.environment.erase("boost"); },                             "unknown"},
    Case{"boost",        [](Machine& m) { m.environment["boost"] = nullptr; m.environment["no_turbo"] = "0"; }, "warning with advice"},
    Case{"smt",          [](Machine& m) { m.topology.threads_per_core = 2; },                          "warning with advice"},
    Case{"smt",          [](Machine& m) { m.topology.threads_per_core = 2; m.topology.cores = 1; },    "warning with advice"},
    Case{"quota",        [](Machine& m) { m.topology.quota_cpus = 1.5; },                              "warning with advice"},
    Case{"quota",        [](Machine& m) { m.topology.quota_cpus = 2; },                                "ok"},
    Case{"huge_pages",   [](Machine& m) { m.environment["huge_pages"] = "always madvise [never]"; },   "warning with advice"},
    Case{"huge_pages",   [](Machine& m) { m.environment["huge_pages"] = nullptr; },                    "unknown"},
    Case{"clock_source", [](Machine& m) { m.environment["clock_source"] = "hpet"; },                   "warning with advice"},
    Case{"hypervisor",   [](Machine& m) { m.environment["hypervisor"] = true; },                       "warning with advice"},
    Case{"load",         [](Machine& m) { m.load["loadavg"] = {3.5, 1, 1}; },                          "warning with advice"},
    Case{"load",         [](Machine& m) { m.load["loadavg"] = nullptr; },                              "unknown"},
    Case{"steal",        [](Machine& m) { m.load["steal_ticks"] = 12; },                               "warning with advice"},
    Case{"steal",        [](Machine& m) { m.load = nlohmann::json::object(); },                        "unknown"}));
// clang-format on

}  // namespace
}  // namespace beamline::cli
