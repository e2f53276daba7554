#include "harness/commands/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "db/store.h"
#include "devices/cpu/cpu_target.h"
#include "devices/environment.h"
#include "harness/cli/errors.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/kernel_view.h"
#include "harness/commands/report_rows.h"
#include "harness/version.h"
#include "search/stats/robust.h"
#include "search/stats/sessions.h"

namespace beamline::cli {
namespace {

using db::Statement;
using nlohmann::json;

// The target that another machine compiles for, from what the database knows of it.
std::optional<Target> stored_target(const StoredDevice& d) {
  if (!d.facts.backend.starts_with("cpu")) return {};
  if (!d.all.is_object() || !d.all.contains("fixed")) return {};
  try {
    const json& fixed = d.all.at("fixed");
    CpuModel model;
    model.isa = fixed.at("isa").get<std::vector<std::string>>();
    CpuTopology topology;
    topology.pus.resize(fixed.at("pus").get<size_t>());
    Target t = cpu_target(model, topology, fixed.at("threads").get<int>());
    t.name = d.facts.backend;
    return t;
  } catch (const json::exception&) {
    return {};
  }
}

// This machine as the device of that id, if it is: backend and thread limit are part of an id.
std::optional<Device> device_here(const StoredDevice& d) {
  if (d.facts.backend.empty()) return {};
  int threads = 0;
  if (d.all.is_object() && d.all.contains("fixed")) threads = d.all["fixed"].value("threads", 0);
  try {
    Device here = find_device(d.facts.backend, threads);
    return here.identity.device_id == d.facts.device_id ? std::optional(here) : std::nullopt;
  } catch (const UsageError&) {
    return {};  // a backend that this program does not have
  }
}

std::vector<std::pair<std::string, std::string>> environment_now() {
  std::vector<std::pair<std::string, std::string>> list;
  const json all = read_environment();
  for (const char* name : {"kernel", "governor", "microcode", "hypervisor", "boost", "smt"})
    if (all.contains(name) && !all[name].is_null())
      list.emplace_back(name,
                        all[name].is_string() ? all[name].get<std::string>() : all[name].dump());
  return list;
}

void add_duels(const Confirmed& confirmed, const KernelView* view, reports::KernelFacts& k) {
  auto winner = std::ranges::find(confirmed, k.opts, [](const auto& e) { return e.first; });
  if (winner == confirmed.end()) return;
  for (const auto& [opts, samples] : confirmed) {
    if (opts == k.opts) continue;
    reports::Duel d{.opts = opts, .role = {}, .verdict = {}, .log_ratios = {}};
    if (opts.empty()) d.role = "unoptimised";
    if (view && view->has_heuristic && view->heuristic_opts == opts) d.role = "heuristic";
    d.log_ratios = stats::session_log_ratios(samples, winner->second);
    d.verdict = stats::decide(d.log_ratios);
    k.duels.push_back(std::move(d));
  }
}

// What a run confirmed as its fastest: the sessions of a confirmation are side by side.
struct RunWinner {
  std::string opts;
  double ns = 0;
  int64_t sessions = 0;
};
std::optional<RunWinner> winner_of(const Confirmed& confirmed) {
  std::optional<RunWinner> best;
  for (const auto& [opts, samples] : confirmed) {
    const double ns = stats::median_session_minimum(samples);
    if (std::isfinite(ns) && (!best || ns < best->ns))
      best = {opts, ns, static_cast<int64_t>(stats::session_minima(samples).size())};
  }
  return best;
}

// Gain of a winner over the heuristic; 1 where it is the heuristic's, absent where that is not
// known or was not confirmed.
std::optional<stats::Gain> gain_over_heuristic(const Confirmed& confirmed, const std::string& opts,
                                               const KernelView* view) {
  if (!view || !view->has_heuristic) return {};
  if (opts == view->heuristic_opts) return stats::Gain{.gain = 1, .ci_low = 1, .ci_high = 1};
  auto find = [&](const std::string& what) {
    return std::ranges::find(confirmed, what, [](const auto& e) { return e.first; });
  };
  auto winner = find(opts), heuristic = find(view->heuristic_opts);
  if (winner == confirmed.end() || heuristic == confirmed.end()) return {};
  return stats::publish_gain(heuristic->second, winner->second);
}

// The stored best is of a later run: what this one found is in its trials.
void show_run_winner(const RunWinner& winner, int64_t run, StoredKernel& k) {
  reports::KernelFacts& f = k.facts;
  f.opts = winner.opts;
  f.best_ns = winner.ns;
  f.sessions = winner.sessions;
  f.run_id = run;
  f.heuristic_ns = f.unoptimized_ns = f.gain = f.ci_low = f.ci_high = f.bound_share = {};
  f.gflops = f.flops / winner.ns;
  f.gbps = f.bytes / winner.ns;
  f.verified = true;  // nothing else is confirmed
  f.stale = f.pinned = false;
  f.ties.clear();
  f.tuned_at = f.stale_reason = {};
  k.code_hash = k.source_hash = {};
}

std::optional<double> finite(double v) {
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

void read_uses(const db::Database& database, std::vector<StoredKernel>& kernels,
               reports::Report& report) {
  std::map<std::string, reports::KernelFacts*> by_key;
  for (StoredKernel& k : kernels) by_key.try_emplace(k.facts.key, &k.facts);
  struct Sum {
    reports::WorkloadFacts facts;
    double best = 0, heuristic = 0;
    bool compared = true;
  };
  std::map<std::string, Sum> sums;
  std::map<std::string, int> names;
  Statement s(database, R"sql(
      SELECT w.workload_id, w.name, w.weight, u.kernel_key, u.count * w.repeat
      FROM kernel_uses u JOIN workloads w ON w.workload_id = u.workload_id
      ORDER BY w.name, w.workload_id, u.ordinal)sql");
  while (s.step()) {
    auto k = by_key.find(s.text(3));
    if (k == by_key.end()) continue;
    auto [it, fresh] = sums.try_emplace(s.text(0));
    Sum& sum = it->second;
    if (fresh) {
      sum.facts.name = s.text(1);
      sum.facts.weight = s.real(2);
      ++names[sum.facts.name];
    }
    auto& uses = k->second->workloads;
    if (std::ranges::find(uses, s.text(1)) == uses.end()) uses.push_back(s.text(1));
    const double count = static_cast<double>(s.integer(4));
    const auto& best = k->second->best_ns;
    ++sum.facts.kernels;
    if (!best) {
      ++sum.facts.missing;
      continue;
    }
    sum.best += count * *best;
    auto over = k->second->over_heuristic();
    sum.compared &= over.has_value();
    sum.heuristic += count * *best * over.value_or(1);
  }
  for (auto& [id, sum] : sums) {
    if (names[sum.facts.name] > 1) sum.facts.name = id;  // an older text of the same instance
    if (sum.facts.missing == 0) {
      sum.facts.best_ns = sum.best;
      if (sum.compared && sum.best > 0) sum.facts.over_heuristic = sum.heuristic / sum.best;
    }
    report.workloads.push_back(sum.facts);
  }
}

}  // namespace

reports::Report gather_report(const db::Database& database, const ReportRequest& request) {
  reports::Report report;
  report.generated_at = db::utc_now();
  report.beamline_version = beamline_version;
  report.database = database.path();
  std::string device_id;
  for (int64_t run : request.runs) {
    std::string of_run;
    report.runs.push_back(read_run(database, run, of_run));
    if (!device_id.empty() && of_run != device_id)
      throw UsageError(fmt::format("--runs: run {} is of device {}, run {} of {}", request.runs[0],
                                   device_id, run, of_run));
    device_id = of_run;
  }
  const StoredDevice device = read_device(database, device_id);
  report.device = device.facts;
  const int64_t run = request.runs.back();
  const std::optional<Device> here = device_here(device);
  if (here) report.device.environment = environment_now();

  std::vector<StoredKernel> kernels = read_kernels(database, device_id);
  std::set<const StoredKernel*> superseded;
  for (StoredKernel& k : kernels) {
    reports::KernelFacts& f = k.facts;
    for (int64_t r : request.runs) read_candidates(database, device_id, r, f);
    const bool searched = std::ranges::any_of(
        f.candidates, [&](const reports::Candidate& c) { return c.run_id == run; });
    if (f.best_ns && searched && f.run_id > run)
      if (auto winner = winner_of(read_confirmed(database, device_id, run, f))) {
        show_run_winner(*winner, run, k);
        superseded.insert(&k);
      }
    if (f.best_ns && !searched && f.run_id != run)
      read_candidates(database, device_id, f.run_id, f);
    f.status = !f.best_ns        ? (f.candidates.empty() ? "untuned" : "failed")
               : f.run_id == run ? "tuned"
                                 : "cached";
  }
  std::vector<KernelView> views;
  const std::optional<Target> target = here ? here->target : stored_target(device);
  if (target) {
    std::vector<ViewRequest> requests;
    for (const StoredKernel& k : kernels)
      if (k.facts.best_ns) requests.push_back({k.ast, k.facts.opts, k.source_hash, k.code_hash});
    views = view_kernels(
        requests, *target,
        {.source = request.code, .compilers = here ? static_cast<int>(here->pus.size()) : 0});
  }
  size_t viewed = 0;
  for (StoredKernel& k : kernels) {
    reports::KernelFacts& f = k.facts;
    KernelView* view = f.best_ns && !views.empty() ? &views[viewed++] : nullptr;
    if (f.best_ns) {
      const Confirmed confirmed = read_confirmed(database, device_id, f.run_id, f);
      add_duels(confirmed, view, f);
      if (superseded.contains(&k))
        if (auto gain = gain_over_heuristic(confirmed, f.opts, view)) {
          f.gain = finite(gain->gain);
          f.ci_low = finite(gain->ci_low);
          f.ci_high = finite(gain->ci_high);
          if (f.gain) f.heuristic_ns = *f.best_ns * *f.gain;
        }
      for (const reports::Duel& d : f.duels)
        if (superseded.contains(&k) && d.opts.empty())
          if (auto ratio = finite(std::exp(-stats::trimmed_mean(d.log_ratios))))
            f.unoptimized_ns = *f.best_ns * *ratio;
    }
    if (request.runs.size() > 1) {
      const Confirmed earlier = read_confirmed(database, device_id, request.runs[0], f);
      if (auto winner = winner_of(earlier)) {
        f.earlier_opts = winner->opts;
        f.earlier_ns = winner->ns;
        if (auto gain = gain_over_heuristic(earlier, winner->opts, view))
          f.earlier_gain = finite(gain->gain);
      }
    }
    if (view) {
      f.axes = std::move(view->axes);
      f.code = std::move(view->code);
    }
  }
  read_uses(database, kernels, report);
  for (StoredKernel& k : kernels) report.kernels.push_back(std::move(k.facts));
  return report;
}

}  // namespace beamline::cli
