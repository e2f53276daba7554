// What beamline writes and looks up. Times are ns, instants ISO 8601 UTC, keys plain text.
//
// Every function is one transaction: a process killed at any moment leaves whole rows, and what a
// function returned from is in the file. Several processes may write, each waits for its turn; one
// thread at a time. Throws DbError when the database fails; a refusal is a returned text.
// Empty texts are stored as NULL, except opts ("" is the unoptimised kernel).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "db/run_lock.h"
#include "db/sqlite.h"

namespace beamline::db {

struct DeviceRow {
  // facts_json: members that are not given stay as stored.
  std::string device_id, name, backend, arch, facts_json;
  std::optional<double> peak_gflops = {}, peak_gbps = {};  // absent: what was stored stays
};
struct WorkloadRow {
  std::string workload_id, file, name, params_json, content_hash;
  double weight = 1;
  int64_t repeat = 1;
};
struct KernelRow {
  std::string kernel_key, name, ast, shape_json, dtypes, key_version = "1";
  int64_t flops = 0, bytes = 0;
};
struct RunRow {
  std::string label = {}, command = {}, device_id = {}, budget = {};
  std::string engine_version = {}, toolchain = {};
  int64_t seed = 0;
};
struct Sample {
  int64_t session = 0, sweep = 0;
  double ns = 0;
};
struct TrialRow {
  int64_t trial_id = 0, run_id = 0;  // trial_id and created_at are given by insert_trial
  std::string kernel_key, device_id, mode = "warm", opts, status, stage = "search";
  std::string code_hash, error, created_at;
  std::optional<double> time_ns, ratio_to_incumbent, compile_ms;
  int64_t n_samples = 0;
  std::vector<Sample> samples;  // written by insert_trial, read by samples_of
};
struct BestRow {
  std::string kernel_key, device_id, mode = "warm", numerics = "default";  // the identity
  std::string opts, local_size, tie_opts_json = "[]";
  double best_ns = 0;
  std::optional<double> heuristic_ns, unoptimized_ns, gain, ci_low, ci_high;
  std::optional<double> gflops, gbps, bound_share;
  int64_t sessions = 0, run_id = 0, beam = 0;
  bool verified = false, pinned = false, stale = false;
  std::string output_hash, stale_reason, code_hash, source_hash, engine_version, action_set;
  std::string toolchain, environment_id, strategy = "heuristic", tuned_at;  // "" = now
};

class Store {
 public:
  /// A writer migrates; a reader accepts only today's schema.
  explicit Store(const std::string& path, Access access = Access::ReadWrite,
                 const OpenOptions& options = {});

  void upsert_device(const DeviceRow& d);
  void upsert_workload(const WorkloadRow& w);
  void upsert_kernel(const KernelRow& k);  // it is no orphan any more
  void upsert_kernel_use(const std::string& key, const std::string& workload_id, int64_t ordinal,
                         int64_t count);

  /// The run is `running` and held by this Store until finish_run, or its end.
  int64_t begin_run(const RunRow& r);
  void finish_run(int64_t run_id, const std::string& status);  // finished, interrupted, failed
  /// Holds an unfinished run again. Refused, with the reason, while another process holds it.
  std::optional<std::string> resume_run(int64_t run_id);
  /// Marks as interrupted what is `running` and held by nobody; returns how many.
  int mark_dead_runs();

  int64_t insert_trial(const TrialRow& t);
  /// What was measured since: status, times, hash, error and samples of a trial are now these.
  void replace_trial(int64_t trial_id, const TrialRow& t);
  /// Without samples, in the order of writing. Unreadable rows are left out and told in `skipped`.
  std::vector<TrialRow> trials_of(int64_t run_id,
                                  std::vector<std::string>* skipped = nullptr) const;
  std::vector<Sample> samples_of(int64_t trial_id) const;

  /// Replaces the best of its identity. Refused, with the reason: a row without evidence
  /// (unverified, no session, no finite time); a pinned stored row; and a rival that came second:
  /// stored opts that differ, are not stale, were timed under the same engine, toolchain and
  /// environment, come from another run than `beaten_run`, and are better measured (5 sessions
  /// before fewer, then the smaller time). `beaten_run` = run_id of the stored row that the new
  /// one was measured against and is to replace, however the two times compare.
  std::optional<std::string> store_best(const BestRow& b, std::optional<int64_t> beaten_run = {});
  /// Of the key, else of the nearest key that an alias connects with it in either direction (the
  /// row tells which). A row without evidence or unreadable is never served.
  std::optional<BestRow> lookup_best(const std::string& key, const std::string& device_id,
                                     const std::string& mode = "warm",
                                     const std::string& numerics = "default") const;
  /// Of the row with the identity of `b`; nothing else changes.
  void set_pinned(const BestRow& b, bool pinned);
  void set_bound_share(const BestRow& b, std::optional<double> share);
  /// All stored bests by kernel and device; unreadable rows are left out and told in `skipped`.
  std::vector<BestRow> all_best(std::vector<std::string>* skipped = nullptr) const;
  void add_key_alias(const std::string& old_key, const std::string& new_key,
                     const std::string& engine_version);

  /// Writes that what the run found of the kernel is expected; replaces an earlier note.
  void accept(int64_t run_id, const std::string& key, const std::string& device_id,
              const std::string& note);

  void quarantine(const std::string& code_hash, const std::string& device_id,
                  const std::string& reason);
  std::optional<std::string> quarantined(const std::string& code_hash,
                                         const std::string& device_id) const;  // the reason

  const Database& database() const { return db_; }

 private:
  Database db_;
  RunLock lock_;
};

/// Now, as "2026-01-31T12:00:00Z".
std::string utc_now();
/// $BEAMLINE_DB, else $XDG_DATA_HOME/beamline/beamline.db, else
/// ~/.local/share/beamline/beamline.db.
std::string default_path();

}  // namespace beamline::db
