#include "harness/commands/report_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "db/store.h"
#include "devices/cpu/cpu_target.h"
#include "devices/environment.h"
#include "harness/cli/errors.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/kernel_view.h"
#include "harness/version.h"
#include "search/stats/robust.h"
#include "search/stats/sessions.h"

namespace beamline::cli {
namespace {

using db::Statement;
using nlohmann::json;

reports::RunFacts read_run(const db::Database& database, int64_t run_id, std::string& device_id) {
  Statement s(database, R"sql(
      SELECT coalesce(label, ''), command, status, started_at, coalesce(ended_at, ''),
        coalesce(budget, ''), coalesce(engine_version, ''), coalesce(toolchain, ''),
        coalesce(host, ''), coalesce(seed, 0),
        (julianday(ended_at) - julianday(started_at)) * 86400.0, coalesce(device_id, '')
      FROM runs WHERE run_id = ?)sql");
  s.bind(1, run_id);
  if (!s.step()) throw UsageError(fmt::format("there is no run {}", run_id));
  device_id = s.text(11);
  return {.run_id = run_id,
          .label = s.text(0),
          .command = s.text(1),
          .status = s.text(2),
          .started_at = s.text(3),
          .ended_at = s.text(4),
          .budget = s.text(5),
          .engine_version = s.text(6),
          .toolchain = s.text(7),
          .host = s.text(8),
          .seed = s.integer(9),
          .wall_s = s.optional_real(10)};
}

struct StoredDevice {
  reports::DeviceFacts facts;
  json all;  // its facts as stored
};

StoredDevice read_device(const db::Database& database, const std::string& device_id) {
  StoredDevice d;
  d.facts.device_id = device_id;
  Statement s(database, R"sql(
      SELECT name, backend, coalesce(arch, ''), coalesce(facts, ''), peak_gflops, peak_gbps
      FROM devices WHERE device_id = ?)sql");
  s.bind(1, device_id);
  if (!s.step()) return d;
  d.facts.name = s.text(0);
  d.facts.backend = s.text(1);
  d.facts.arch = s.text(2);
  d.all = json::parse(s.text(3), nullptr, false);
  d.facts.peak_gflops = s.optional_real(4);
  d.facts.peak_gbps = s.optional_real(5);
  return d;
}

// The target that another machine compiles for, from what the database knows of it.
std::optional<Target> stored_target(const StoredDevice& d) {
  if (!d.all.is_object() || !d.all.contains("fixed")) return {};
  try {
    const json& fixed = d.all.at("fixed");
    CpuModel model;
    model.isa = fixed.at("isa").get<std::vector<std::string>>();
    CpuTopology topology;
    topology.pus.resize(fixed.at("pus").get<size_t>());
    return cpu_target(model, topology, fixed.at("threads").get<int>());
  } catch (const json::exception&) {
    return {};
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

struct StoredKernel {
  reports::KernelFacts facts;
  std::string ast, source_hash, code_hash;
};

std::string shape_text(const std::string& shape_json) {
  const json shape = json::parse(shape_json, nullptr, false);
  std::vector<std::string> sizes;
  if (shape.is_array())
    for (const json& n : shape) sizes.push_back(n.dump());
  return sizes.empty() ? "scalar" : fmt::format("{}", fmt::join(sizes, " x "));
}

void read_best(const Statement& s, int c, StoredKernel& k) {
  reports::KernelFacts& f = k.facts;
  f.opts = s.text(c);
  f.mode = s.text(c + 1);
  f.numerics = s.text(c + 2);
  f.best_ns = s.optional_real(c + 3);
  f.heuristic_ns = s.optional_real(c + 4);
  f.unoptimized_ns = s.optional_real(c + 5);
  f.gain = s.optional_real(c + 6);
  f.ci_low = s.optional_real(c + 7);
  f.ci_high = s.optional_real(c + 8);
  f.sessions = s.integer(c + 9);
  const json ties = json::parse(s.text(c + 10), nullptr, false);
  if (ties.is_array())
    for (const json& t : ties)
      if (t.is_string()) f.ties.push_back(t.get<std::string>());
  f.gflops = s.optional_real(c + 11);
  f.gbps = s.optional_real(c + 12);
  f.bound_share = s.optional_real(c + 13);
  f.verified = s.integer(c + 14) == 1;
  f.pinned = s.integer(c + 15) == 1;
  f.stale = s.integer(c + 16) == 1;
  f.stale_reason = s.text(c + 17);
  k.code_hash = s.text(c + 18);
  k.source_hash = s.text(c + 19);
  f.run_id = s.integer(c + 20);
  f.engine_version = s.text(c + 21);
  f.toolchain = s.text(c + 22);
  f.tuned_at = s.text(c + 23);
}

std::vector<StoredKernel> read_kernels(const db::Database& database, const std::string& device_id) {
  // Kernels with rows of this device, and those that no device has tuned.
  Statement s(database, R"sql(
      SELECT k.kernel_key, k.name, k.ast, coalesce(k.flops, 0), coalesce(k.bytes, 0),
        coalesce(k.shape, ''), coalesce(k.dtypes, ''),
        b.opts, b.mode, b.numerics, b.best_ns, b.heuristic_ns, b.unoptimized_ns, b.gain, b.ci_low,
        b.ci_high, b.sessions, b.tie_opts, b.gflops, b.gbps, b.bound_share, b.verified, b.pinned,
        b.stale, b.stale_reason, b.code_hash, b.source_hash, b.run_id, b.engine_version,
        b.toolchain, b.tuned_at
      FROM kernels k
      LEFT JOIN best_opts b ON b.kernel_key = k.kernel_key AND b.device_id = ?1
      WHERE b.kernel_key IS NOT NULL
        OR EXISTS (SELECT 1 FROM trials t WHERE t.kernel_key = k.kernel_key AND t.device_id = ?1)
        OR (k.orphaned = 0
            AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.kernel_key = k.kernel_key)
            AND NOT EXISTS (SELECT 1 FROM best_opts o WHERE o.kernel_key = k.kernel_key))
      ORDER BY k.name, k.kernel_key, b.mode DESC, b.numerics)sql");
  s.bind(1, device_id);
  std::vector<StoredKernel> list;
  while (s.step()) {
    StoredKernel k;
    k.facts.key = s.text(0);
    k.facts.name = s.text(1);
    k.ast = s.text(2);
    k.facts.flops = static_cast<double>(s.integer(3));
    k.facts.bytes = static_cast<double>(s.integer(4));
    k.facts.shape = shape_text(s.text(5));
    k.facts.dtypes = s.text(6);
    if (!s.is_null(7)) read_best(s, 7, k);
    list.push_back(std::move(k));
  }
  return list;
}

void read_candidates(const db::Database& database, const std::string& device_id, int64_t run,
                     reports::KernelFacts& k) {
  Statement s(database, R"sql(
      SELECT opts, status, stage, coalesce(error, ''), time_ns FROM trials
      WHERE kernel_key = ?1 AND device_id = ?2 AND run_id = ?3 AND (?4 = '' OR mode = ?4)
      ORDER BY trial_id)sql");
  s.bind(1, k.key).bind(2, device_id).bind(3, run).bind(4, k.mode);
  while (s.step())
    k.candidates.push_back({run, s.text(0), s.text(1), s.text(2), s.text(3), s.optional_real(4)});
}

// Samples of the confirmation by opts; of opts confirmed twice the later.
using Confirmed = std::vector<std::pair<std::string, std::vector<stats::Sample>>>;
Confirmed read_confirmed(const db::Database& database, const std::string& device_id, int64_t run,
                         const reports::KernelFacts& k) {
  Statement s(database, R"sql(
      SELECT t.trial_id, t.opts, s.session, s.sweep, s.ns
      FROM trials t JOIN trial_samples s ON s.trial_id = t.trial_id
      WHERE t.kernel_key = ?1 AND t.device_id = ?2 AND t.run_id = ?3 AND t.stage = 'confirm'
        AND t.status = 'ok' AND (?4 = '' OR t.mode = ?4)
      ORDER BY t.trial_id, s.session, s.sweep)sql");
  s.bind(1, k.key).bind(2, device_id).bind(3, run).bind(4, k.mode);
  Confirmed list;
  int64_t last = -1;
  while (s.step()) {
    if (s.integer(0) != last) {
      last = s.integer(0);
      std::erase_if(list, [&](const auto& e) { return e.first == s.text(1); });
      list.push_back({s.text(1), {}});
    }
    list.back().second.push_back({s.integer(2), s.integer(3), s.real(4)});
  }
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

// The winner of an earlier run: what it confirmed as the fastest, side by side with the others. Its
// trials tell the ratio to the reference of that confirmation, which is the heuristic's.
void read_earlier(const db::Database& database, const std::string& device_id, int64_t run,
                  reports::KernelFacts& k) {
  Statement s(database, R"sql(
      SELECT opts, time_ns, ratio_to_incumbent FROM trials
      WHERE kernel_key = ?1 AND device_id = ?2 AND run_id = ?3 AND stage = 'confirm'
        AND status = 'ok' AND time_ns IS NOT NULL
      ORDER BY coalesce(ratio_to_incumbent, 1), time_ns LIMIT 1)sql");
  s.bind(1, k.key).bind(2, device_id).bind(3, run);
  if (!s.step()) return;
  k.earlier_opts = s.text(0);
  k.earlier_ns = s.optional_real(1);
  if (auto ratio = s.optional_real(2)) k.earlier_gain = 1 / *ratio;
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
  const Device here = find_device("cpu");
  const bool local = here.identity.device_id == device_id;
  if (local) report.device.environment = environment_now();

  std::vector<StoredKernel> kernels = read_kernels(database, device_id);
  read_uses(database, kernels, report);
  std::vector<KernelView> views;
  const std::optional<Target> target = local ? here.target : stored_target(device);
  if (request.code && target) {
    std::vector<ViewRequest> requests;
    for (const StoredKernel& k : kernels)
      if (k.facts.best_ns) requests.push_back({k.ast, k.facts.opts, k.source_hash, k.code_hash});
    views = view_kernels(requests, *target, local ? static_cast<int>(here.pus.size()) : 0);
  }
  size_t viewed = 0;
  for (StoredKernel& k : kernels) {
    reports::KernelFacts& f = k.facts;
    KernelView* view = f.best_ns && !views.empty() ? &views[viewed++] : nullptr;
    for (int64_t r : request.runs) read_candidates(database, device_id, r, f);
    const bool searched = std::ranges::any_of(
        f.candidates, [&](const reports::Candidate& c) { return c.run_id == run; });
    if (f.best_ns && !searched && f.run_id != run)
      read_candidates(database, device_id, f.run_id, f);
    f.status = !f.best_ns        ? (searched || !f.candidates.empty() ? "failed" : "untuned")
               : f.run_id == run ? "tuned"
                                 : "cached";
    if (f.best_ns) add_duels(read_confirmed(database, device_id, f.run_id, f), view, f);
    if (request.runs.size() > 1) read_earlier(database, device_id, request.runs[0], f);
    if (view) {
      f.axes = std::move(view->axes);
      f.code = std::move(view->code);
    }
    report.kernels.push_back(std::move(f));
  }
  return report;
}

}  // namespace beamline::cli
