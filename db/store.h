// What beamline writes and looks up. One Store is the only writer of a process; others may share the file.
// Times are ns, instants are ISO 8601 UTC. Every function is one transaction: a process killed at any
// moment leaves whole rows. Throws DbError when the database fails; a refusal is a returned text.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "db/sqlite.h"

namespace beamline::db {

struct DeviceRow {
  std::string device_id, name, backend, arch, facts_json;
};
struct WorkloadRow {
  std::string workload_id, file, name, params_json, content_hash;
  double weight = 1;
  int64_t repeat = 1;
};
struct KernelRow {
  std::string kernel_key, name, ast, shape_json, dtypes;
  double flops = 0, bytes = 0;
  int64_t key_version = 1;
};
struct RunRow {
  std::string label, command, device_id, budget, engine_version, toolchain;
  int64_t seed = 0;
};
struct Sample {
  int64_t session = 0, sweep = 0;
  double ns = 0;
};
struct TrialRow {
  int64_t run_id = 0;
  std::string kernel_key, device_id, mode = "warm", opts, status, stage = "search", code_hash, error;
  std::optional<double> time_ns, ratio_to_incumbent, compile_ms;
  int64_t n_samples = 0;
  std::vector<Sample> samples;
};
struct BestRow {
  std::string kernel_key, device_id, mode = "warm", numerics = "default", opts, local_size, tie_opts_json = "[]";
  double best_ns = 0;
  std::optional<double> heuristic_ns, unoptimized_ns, gain, ci_low, ci_high, gflops, gbps, bound_share;
  int64_t sessions = 0, run_id = 0;
  bool verified = false, pinned = false, stale = false;
  std::string output_hash, stale_reason, code_hash, source_hash, engine_version, action_set, toolchain, environment_id,
      strategy = "heuristic", tuned_at;
};

class Store {
 public:
  /// Opens for writing and migrates.
  explicit Store(const std::string& path);

  void upsert_device(const DeviceRow& d);
  void upsert_workload(const WorkloadRow& w);
  void upsert_kernel(const KernelRow& k);
  void upsert_kernel_use(const std::string& key, const std::string& workload_id, int64_t ordinal, int64_t count);

  int64_t begin_run(const RunRow& r);
  /// status: finished, interrupted or failed.
  void finish_run(int64_t run_id, const std::string& status);
  /// Marks runs as interrupted whose process no longer exists on this host; returns how many.
  int mark_dead_runs();

  int64_t insert_trial(const TrialRow& t);
  std::vector<TrialRow> trials_of(int64_t run_id) const;  // without samples

  /// Replaces the best of its identity. Refused, with the reason, without evidence (unverified, no session, no
  /// finite time) or when the stored row is pinned.
  std::optional<std::string> store_best(const BestRow& b);
  std::optional<BestRow> lookup_best(const std::string& key, const std::string& device_id, const std::string& mode = "warm",
                                     const std::string& numerics = "default") const;

  void quarantine(const std::string& code_hash, const std::string& device_id, const std::string& reason);
  std::optional<std::string> quarantined(const std::string& code_hash, const std::string& device_id) const;  // the reason

  Database& database() { return db_; }
  const Database& database() const { return db_; }

 private:
  Database db_;
};

/// Now, as "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace beamline::db
