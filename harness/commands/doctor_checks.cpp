#include "harness/commands/doctor_checks.h"

#include <fmt/format.h>

namespace beamline::cli {
namespace {

using nlohmann::json;

std::string text_of(const json& all, const char* name) {
  if (!all.contains(name) || all[name].is_null()) return {};
  return all[name].is_string() ? all[name].get<std::string>() : all[name].dump();
}

// "always [madvise] never": the chosen word.
std::string chosen(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']', open);
  return open == std::string::npos || close == std::string::npos
             ? text
             : text.substr(open + 1, close - open - 1);
}

DoctorCheck unknown(const char* check, const json& environment, const char* fact,
                    const std::string& advice) {
  std::string why = "unknown";
  if (environment.contains("unreadable") && environment["unreadable"].contains(fact))
    why += " (" + text_of(environment["unreadable"], fact) + ")";
  return {check, why, "unknown", advice};
}

DoctorCheck governor(const json& e) {
  const std::string value = text_of(e, "governor");
  if (value.empty())
    return unknown("governor", e, "governor",
                   "frequency cannot be read here; the canary loop of each session watches it");
  if (value == "performance") return {"governor", value, "ok", ""};
  return {"governor", value, "warning",
          "clocks follow the load: cpupower frequency-set -g performance"};
}

DoctorCheck boost(const json& e) {
  const std::string boost = text_of(e, "boost"), no_turbo = text_of(e, "no_turbo");
  if (boost.empty() && no_turbo.empty()) return {"boost", "unknown", "unknown", ""};
  const bool on = boost == "1" || no_turbo == "0";
  return {
      "boost", on ? "on" : "off", on ? "warning" : "ok",
      on ? "clocks depend on temperature and neighbours; absolute times drift, ratios stay" : ""};
}

DoctorCheck smt(const CpuTopology& t, const json& e) {
  const std::string control = text_of(e, "smt");
  const std::string value = fmt::format("{} threads a core, {} cores, {} processing units",
                                        t.threads_per_core, t.cores, t.pus.size());
  if (t.threads_per_core > 1 && static_cast<size_t>(t.cores) < t.pus.size())
    return {"smt", value, "warning",
            "siblings share a core: two threads of a kernel may be one core's"};
  if (t.threads_per_core > 1)
    return {"smt", value, "warning", "the other thread of a core may be somebody else's"};
  return {"smt", value + (control.empty() ? "" : ", control " + control), "ok", ""};
}

DoctorCheck quota(const CpuTopology& t) {
  if (t.quota_cpus <= 0) return {"quota", "none", "ok", ""};
  const std::string value = fmt::format("{:.2f} CPUs", t.quota_cpus);
  if (t.quota_cpus < static_cast<double>(t.pus.size()))
    return {"quota", value, "warning",
            fmt::format("fewer than the {} processing units: the scheduler stops threads in the "
                        "middle of samples",
                        t.pus.size())};
  return {"quota", value, "ok", ""};
}

DoctorCheck huge_pages(const json& e) {
  const std::string text = text_of(e, "huge_pages");
  if (text.empty()) return unknown("huge_pages", e, "huge_pages", "");
  const std::string value = chosen(text);
  if (value == "never")
    return {"huge_pages", value, "warning",
            "buffers lie on small pages, large ones pay for it: echo madvise > "
            "/sys/kernel/mm/transparent_hugepage/enabled"};
  return {"huge_pages", value, "ok", ""};
}

DoctorCheck clock_source(const json& e) {
  const std::string value = text_of(e, "clock_source");
  if (value.empty()) return unknown("clock_source", e, "clock_source", "");
  if (value == "tsc" || value == "kvm-clock" || value == "arch_sys_counter")
    return {"clock_source", value, "ok", ""};
  return {"clock_source", value, "warning", "a slow clock: reading it may cost microseconds"};
}

DoctorCheck hypervisor(const json& e) {
  if (!e.contains("hypervisor") || !e["hypervisor"].is_boolean())
    return unknown("hypervisor", e, "hypervisor", "");
  if (!e["hypervisor"].get<bool>()) return {"hypervisor", "no", "ok", ""};
  return {"hypervisor", "yes", "warning",
          "neighbours are invisible from inside; trust interleaved ratios only"};
}

DoctorCheck busy(const CpuTopology& t, const json& load) {
  if (!load.contains("loadavg") || !load["loadavg"].is_array() || load["loadavg"].empty())
    return {"load", "unknown", "unknown", ""};
  const double now = load["loadavg"][0].get<double>();
  const std::string value = fmt::format("{:.2f} on {} processing units", now, t.pus.size());
  if (now > 0.5)
    return {"load", value, "warning", "something else is running: sessions take longer to decide"};
  return {"load", value, "ok", ""};
}

DoctorCheck steal(const json& load) {
  if (!load.contains("steal_ticks") || load["steal_ticks"].is_null())
    return {"steal", "unknown", "unknown", ""};
  const auto ticks = load["steal_ticks"].get<long long>();
  // Zero since boot is what a hypervisor that tells nothing shows, and a machine that has none.
  return {"steal", fmt::format("{} ticks since boot", ticks), ticks > 0 ? "warning" : "ok",
          ticks > 0 ? "the hypervisor takes processor time away" : ""};
}

}  // namespace

std::vector<DoctorCheck> judge_machine(const CpuTopology& topology, const json& environment,
                                       const json& load) {
  return {governor(environment),   boost(environment),      smt(topology, environment),
          quota(topology),         huge_pages(environment), clock_source(environment),
          hypervisor(environment), busy(topology, load),    steal(load)};
}

}  // namespace beamline::cli
