// doctor
#include <fmt/format.h>

#include <cmath>

#include "devices/environment.h"
#include "harness/cli/errors.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/commands/doctor_checks.h"
#include "harness/device_probe.h"
#include "reports/text_table.h"
#include "search/stats/robust.h"
#include "search/stats/verdict.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

constexpr int processes = 3;

ordered_json number(double v) { return std::isfinite(v) ? ordered_json(v) : ordered_json(); }

ordered_json noise_json(const std::vector<double>& log_ratios) {
  const stats::Estimate e = stats::estimate(log_ratios);
  return {{"sessions", log_ratios.size()},
          {"ratio", number(std::exp(e.point))},
          {"ci_low", number(std::exp(e.low(0.975)))},
          {"ci_high", number(std::exp(e.high(0.975)))},
          {"visible_percent", number(100 * stats::smallest_visible(log_ratios))}};
}

std::string percent(double share) {
  return !std::isfinite(share) ? "?" : fmt::format("{:.{}f}", 100 * share, share < 0.1 ? 1 : 0);
}

int run(Context& context, const Arguments& arguments) {
  const Device device = find_device("cpu");
  const int sessions = static_cast<int>(arguments.integer("sessions", 20, 3, 1000));
  const std::vector<DoctorCheck> checks =
      judge_machine(read_topology(), read_environment(), read_load());
  catch_interrupts();
  ProbeSettings settings;
  settings.target = device.target;
  settings.pus = device.pus;
  settings.progress = [&](const std::string& what) { context.log.live("noise floor: " + what); };
  settings.stop_requested = interrupted;
  const SelfComparison noise = compare_with_self(settings, sessions, processes);
  context.log.end_live();
  if (interrupted()) return exit_interrupted;
  const double compute = stats::smallest_visible(noise.compute);
  const double memory = stats::smallest_visible(noise.memory);
  const std::string line =
      fmt::format("on this machine differences under {} % (compute) / {} % (memory) cannot be seen",
                  percent(compute), percent(memory));
  if (context.global.json) {
    ordered_json rows = ordered_json::array();
    for (const DoctorCheck& c : checks)
      rows.push_back({{"check", c.check},
                      {"value", c.value},
                      {"state", c.state},
                      {"advice", c.advice.empty() ? ordered_json() : ordered_json(c.advice)}});
    context.print_json(
        {{"schema", 1},
         {"doctor", rows},
         {"timer", {{"kind", noise.timer}, {"overhead_ns", noise.timer_overhead_ns}}},
         {"noise_floor",
          {{"compute", noise_json(noise.compute)}, {"memory", noise_json(noise.memory)}}},
         {"summary", line}});
    return exit_ok;
  }
  reports::TextTable table({{"check"}, {"state"}, {"value"}, {"advice"}});
  for (const DoctorCheck& c : checks) table.add({c.check, c.state, c.value, c.advice});
  table.add({"timer", "ok",
             fmt::format("{}, {:.0f} ns a reading", noise.timer, noise.timer_overhead_ns)});
  context.print(table.text() + "\n" + line + "\n");
  return exit_ok;
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .arguments = "",
      .summary = "what this machine is like to measure on, and what cannot be seen on it",
      .details =
          R"(Reads governor, boost, SMT, quota, huge pages, clock source, hypervisor and load, and times two programs
against themselves, interleaved as contestants are: multiply-adds in registers (compute) and a sum over 16 MiB
(memory). "Cannot be seen" is the slow-down that the rule of 'verdict' would just miss after as many sessions.
Changes no setting.
JSON: {"schema": 1, "doctor": [{"check", "value", "state": "ok|warning|unknown", "advice"}], "timer": {"kind",
"overhead_ns"}, "noise_floor": {"compute": {"sessions", "ratio", "ci_low", "ci_high", "visible_percent"},
"memory": {...}}, "summary"})",
      .options = {{.name = "sessions",
                   .value = "N",
                   .help = "of the comparison of a program with itself; default 20"}},
      .run = run};
}

}  // namespace beamline::cli
