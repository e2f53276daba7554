#include "harness/tune_records.h"

#include <fmt/format.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "devices/environment.h"
#include "engine/base/sha256.h"
#include "engine/opt/actions.h"
#include "harness/cli/workload_args.h"
#include "harness/version.h"

namespace beamline {
namespace {

std::optional<double> finite(double v) {
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

}  // namespace

std::string read_environment_id() {
  nlohmann::json all = read_environment(), used;
  for (const char* name : {"kernel", "microcode", "governor", "hypervisor"})
    used[name] = all.contains(name) ? all[name] : nlohmann::json();
  return sha256_hex(used.dump()).substr(0, 16);
}

void record_programs(db::Store& store, const DeviceIdentity& device,
                     const std::vector<KernelProgram>& programs) {
  store.upsert_device({.device_id = device.device_id,
                       .name = device.name,
                       .backend = device.backend,
                       .arch = device.arch,
                       .facts_json = device.facts.dump(),
                       .peak_gflops = {},
                       .peak_gbps = {}});
  for (const KernelProgram& p : programs) {
    std::string id = cli::workload_id(p.instance);
    store.upsert_workload({.workload_id = id,
                           .file = p.instance.file,
                           .name = p.instance.name,
                           .params_json = cli::params_json(p.instance),
                           .content_hash = p.instance.content_hash,
                           .weight = p.instance.weight,
                           .repeat = p.instance.repeat});
    for (size_t i = 0; i < p.kernels.size(); ++i) {
      const ProgramKernel& k = p.kernels[i];
      store.upsert_kernel({.kernel_key = k.key,
                           .name = k.name,
                           .ast = k.ast,
                           .shape_json = nlohmann::json(k.shape).dump(),
                           .dtypes = k.dtypes,
                           .flops = std::llround(k.flops),
                           .bytes = std::llround(k.bytes)});
      store.upsert_kernel_use(k.key, id, static_cast<int64_t>(i), 1);
    }
  }
}

db::TrialRow trial_row(const search::Trial& trial, const std::string& kernel_key,
                       const Provenance& from) {
  db::TrialRow row;
  row.run_id = from.run_id;
  row.kernel_key = kernel_key;
  row.device_id = from.device_id;
  row.opts = trial.opts;
  row.status = search::outcome_name(trial.outcome);
  row.stage = search::stage_name(trial.stage);
  row.code_hash = trial.code_hash;
  row.error = trial.error;
  row.time_ns = trial.time_ns;
  row.ratio_to_incumbent = trial.ratio_to_incumbent;
  row.compile_ms = trial.compile_ms;
  row.n_samples = static_cast<int64_t>(trial.samples.size());
  for (const auto& s : trial.samples) row.samples.push_back({s.session, s.sweep, s.ns});
  return row;
}

std::vector<search::KnownTrial> known_trials(const std::vector<db::TrialRow>& rows) {
  std::vector<search::KnownTrial> known;
  for (const db::TrialRow& row : rows) {
    if (row.stage != search::stage_name(search::Stage::Search)) continue;
    auto outcome = search::outcome_from_name(row.status);
    if (!outcome) continue;  // of a later beamline: tried again
    known.push_back({.opts = row.opts,
                     .outcome = *outcome,
                     .time_ns = row.time_ns,
                     .code_hash = row.code_hash});
  }
  return known;
}

db::BestRow best_row(const search::SearchResult& found, const ProgramKernel& kernel,
                     const Provenance& from) {
  db::BestRow row;
  row.kernel_key = kernel.key;
  row.device_id = from.device_id;
  row.opts = found.opts;
  row.best_ns = found.best_ns;
  row.heuristic_ns = found.heuristic_ns;
  row.unoptimized_ns = found.unoptimized_ns;
  row.gain = finite(found.gain.gain);
  row.ci_low = finite(found.gain.ci_low);
  row.ci_high = finite(found.gain.ci_high);
  row.sessions = found.gain.sessions;
  row.tie_opts_json = nlohmann::json(found.tie_opts).dump();
  row.gflops = kernel.flops / found.best_ns;
  row.gbps = kernel.bytes / found.best_ns;
  row.verified = found.verified;
  row.output_hash = found.output_hash;
  row.code_hash = found.code_hash;
  row.source_hash = found.source_hash;
  row.run_id = from.run_id;
  row.engine_version = engine_version;
  row.action_set = std::string(action_set_name());
  row.toolchain = from.toolchain;
  row.environment_id = from.environment_id;
  return row;
}

std::optional<DevicePeaks> stored_peaks(const db::Database& database,
                                        const std::string& device_id) {
  db::Statement s(database, "SELECT coalesce(facts, '') FROM devices WHERE device_id = ?");
  s.bind(1, device_id);
  return s.step() ? read_peaks(s.text(0)) : std::nullopt;
}

std::string why_stale(const db::BestRow& row, const Provenance& today) {
  if (row.stale) return "stale: " + row.stale_reason;
  if (row.engine_version != engine_version) return "stale: another engine";
  if (row.toolchain != today.toolchain)
    return fmt::format("stale: {} then, {} now", row.toolchain, today.toolchain);
  if (row.environment_id != today.environment_id)
    return "stale: the machine's kernel, microcode or governor changed";
  return {};
}

}  // namespace beamline
