#include <cmath>

#include <nlohmann/json.hpp>

#include "reports/writers.h"

namespace beamline::reports {
namespace {

using nlohmann::ordered_json;

ordered_json number(std::optional<double> v) {
  return v && std::isfinite(*v) ? ordered_json(*v) : ordered_json();
}
ordered_json word(const std::string& s) { return s.empty() ? ordered_json() : ordered_json(s); }

ordered_json run_json(const RunFacts& r) {
  return {{"run_id", r.run_id},
          {"label", word(r.label)},
          {"command", r.command},
          {"status", r.status},
          {"started_at", r.started_at},
          {"ended_at", word(r.ended_at)},
          {"wall_s", number(r.wall_s)},
          {"budget", word(r.budget)},
          {"seed", r.seed},
          {"engine_version", word(r.engine_version)},
          {"toolchain", word(r.toolchain)},
          {"host", word(r.host)}};
}

ordered_json device_json(const DeviceFacts& d) {
  ordered_json environment = ordered_json::object();
  for (const auto& [name, value] : d.environment) environment[name] = value;
  return {{"device_id", d.device_id},
          {"name", d.name},
          {"backend", d.backend},
          {"arch", word(d.arch)},
          {"peak_gflops", number(d.peak_gflops)},
          {"peak_gbps", number(d.peak_gbps)},
          {"environment", environment}};
}

ordered_json kernel_json(const KernelFacts& k, bool two_runs) {
  ordered_json trials = ordered_json::object(), failures = ordered_json::array();
  ordered_json evidence = ordered_json::array(), candidates = ordered_json::array();
  for (const auto& [status, n] : k.status_counts()) trials[status] = n;
  for (const Failure& f : k.failures())
    failures.push_back(
        {{"status", f.status}, {"count", f.count}, {"error", word(f.error)}, {"opts", f.opts}});
  for (const Duel& d : k.duels)
    evidence.push_back({{"against", d.opts},
                        {"role", word(d.role)},
                        {"verdict", stats::decision_name(d.verdict.decision)},
                        {"ratio", number(d.verdict.ratio)},
                        {"ci_low", number(d.verdict.ci_low)},
                        {"ci_high", number(d.verdict.ci_high)},
                        {"confidence", d.verdict.confidence},
                        {"sessions_used", d.verdict.sessions_used},
                        {"sessions_available", d.verdict.sessions_available},
                        {"reason", d.verdict.reason}});
  for (const Candidate& c : k.candidates)
    candidates.push_back({{"run", c.run_id},
                          {"opts", c.opts},
                          {"status", c.status},
                          {"stage", c.stage},
                          {"time_ns", number(c.time_ns)}});
  ordered_json row = {{"key", k.key},
                      {"name", k.name},
                      {"workloads", k.workloads},
                      {"status", k.status},
                      {"opts", k.best_ns ? ordered_json(k.opts) : ordered_json()},
                      {"best_ns", number(k.best_ns)},
                      {"heuristic_ns", number(k.heuristic_ns)},
                      {"unoptimized_ns", number(k.unoptimized_ns)},
                      {"gain", number(k.gain)},
                      {"ci_low", number(k.ci_low)},
                      {"ci_high", number(k.ci_high)},
                      {"sessions", k.sessions},
                      {"ties", k.ties},
                      {"gflops", number(k.gflops)},
                      {"gbps", number(k.gbps)},
                      {"bound_share", number(k.bound_share)},
                      {"verified", k.verified},
                      {"pinned", k.pinned},
                      {"stale", k.stale},
                      {"stale_reason", word(k.stale_reason)},
                      {"run", k.best_ns ? ordered_json(k.run_id) : ordered_json()},
                      {"trials", trials},
                      {"failures", failures},
                      {"evidence", evidence},
                      {"candidates", candidates}};
  if (two_runs)
    row["earlier"] = {{"opts", k.earlier_opts ? ordered_json(*k.earlier_opts) : ordered_json()},
                      {"best_ns", number(k.earlier_ns)},
                      {"gain", number(k.earlier_gain)}};
  return row;
}

}  // namespace

std::string json_report(const Report& report) {
  ordered_json runs = ordered_json::array(), kernels = ordered_json::array();
  ordered_json workloads = ordered_json::array();
  for (const RunFacts& r : report.runs) runs.push_back(run_json(r));
  for (const KernelFacts& k : report.kernels)
    kernels.push_back(kernel_json(k, report.runs.size() > 1));
  for (const WorkloadFacts& w : report.workloads)
    workloads.push_back({{"name", w.name},
                         {"weight", w.weight},
                         {"kernels", w.kernels},
                         {"missing", w.missing},
                         {"best_ns", number(w.best_ns)},
                         {"over_heuristic", number(w.over_heuristic)}});
  const ordered_json document = {
      {"schema", 1},
      {"generated_at", report.generated_at},
      {"beamline", report.beamline_version},
      {"database", report.database},
      {"device", device_json(report.device)},
      {"runs", runs},
      {"kernels", kernels},
      {"workloads", workloads},
      {"mean_over_heuristic", number(report.mean_over_heuristic())},
      {"mean_over_unoptimized", number(report.mean_over_unoptimized())},
      {"weighted_over_heuristic", number(report.weighted_over_heuristic())}};
  // Bytes that are no UTF-8 (file names) must not end a report.
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace beamline::reports
