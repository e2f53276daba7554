#include "db/merge.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

namespace beamline::db {
namespace {

constexpr const char* run_columns =
    "label, command, device_id, started_at, ended_at, status, seed, budget, engine_version, "
    "toolchain, host, pid";
constexpr const char* trial_columns =
    "kernel_key, device_id, mode, opts, status, stage, time_ns, ratio_to_incumbent, n_samples, "
    "compile_ms, code_hash, error, created_at";

class Merge {
 public:
  explicit Merge(const Database& db) : db_(db) {}

  Merged run() {
    merged_.devices = change(R"sql(
        INSERT INTO t_device SELECT * FROM other.t_device WHERE true
        ON CONFLICT (device_id) DO UPDATE SET
          first_seen = min(first_seen, excluded.first_seen),
          last_seen = max(last_seen, excluded.last_seen),
          peak_gflops = coalesce(peak_gflops, excluded.peak_gflops),
          peak_gbps = coalesce(peak_gbps, excluded.peak_gbps))sql",
                             "t_device");
    merged_.workloads =
        change("INSERT OR IGNORE INTO t_workload SELECT * FROM other.t_workload", "t_workload");
    merged_.kernels =
        change("INSERT OR IGNORE INTO t_kernel SELECT * FROM other.t_kernel", "t_kernel");
    change("INSERT OR IGNORE INTO t_kernel_use SELECT * FROM other.t_kernel_use", "t_kernel_use");
    // Knowledge of a key may come from either side; ours stays where both have one.
    merged_.aliases =
        change("INSERT OR IGNORE INTO t_key_alias SELECT * FROM other.t_key_alias", "t_key_alias");
    merged_.artifacts =
        change("INSERT OR IGNORE INTO t_artifact SELECT * FROM other.t_artifact", "t_artifact");
    merged_.quarantined = change(R"sql(
        INSERT INTO t_quarantine SELECT * FROM other.t_quarantine WHERE true
        ON CONFLICT (code_hash, device_id) DO UPDATE SET
          count = max(count, excluded.count), last_seen = max(last_seen, excluded.last_seen))sql",
                                 "t_quarantine");
    take_runs();
    take_trials();
    return merged_;
  }

  /// The number here of a run there; 0 = not taken.
  int64_t here(int64_t run) const {
    auto it = runs_.find(run);
    return it == runs_.end() ? 0 : it->second;
  }
  bool fresh(int64_t run) const { return fresh_.contains(run) && fresh_.at(run); }

 private:
  int64_t rows(const char* table) {
    Statement s(db_, fmt::format("SELECT count(*) FROM main.{}", table));
    return s.step() ? s.integer(0) : 0;
  }
  // Runs the statement; by how many rows the table grew.
  int64_t change(const std::string& sql, const char* table) {
    const int64_t before = rows(table);
    db_.execute(sql);
    return rows(table) - before;
  }

  void take_runs() {
    Statement all(db_, "SELECT run_id FROM other.t_run ORDER BY run_id");
    Statement same(db_, R"sql(
        SELECT r.run_id FROM main.t_run r JOIN other.t_run o ON o.run_id = ?
          AND r.started_at = o.started_at AND r.command = o.command AND r.host IS o.host
          AND r.pid IS o.pid AND r.device_id IS o.device_id AND r.label IS o.label)sql");
    Statement insert(db_, fmt::format("INSERT INTO main.t_run ({0}) SELECT {0} FROM other.t_run "
                                      "WHERE run_id = ?",
                                      run_columns));
    while (all.step()) {
      const int64_t run = all.integer(0);
      same.bind(1, run);
      const bool known = same.step();
      if (known) runs_[run] = same.integer(0);
      same.reset();
      fresh_[run] = !known;
      ++(known ? merged_.known_runs : merged_.runs);
      if (known) continue;
      insert.bind(1, run).run();
      runs_[run] = db_.last_id();
    }
    // Whoever held it there does not hold it here.
    db_.execute("CREATE TEMP TABLE run_map (old INTEGER PRIMARY KEY, new INTEGER, fresh INTEGER)");
    Statement map(db_, "INSERT INTO temp.run_map VALUES (?, ?, ?)");
    for (const auto& [old, now] : runs_) map.bind(1, old).bind(2, now).bind(3, fresh_[old]).run();
    db_.execute(R"sql(
        UPDATE main.t_run SET status = 'interrupted', ended_at = coalesce(ended_at, started_at)
        WHERE status = 'running' AND run_id IN (SELECT new FROM temp.run_map WHERE fresh = 1))sql");
  }

  // Highest number that a trial here has or had.
  int64_t last_trial() {
    Statement s(db_, R"sql(
        SELECT max(coalesce((SELECT max(trial_id) FROM main.t_trial), 0),
                   coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 't_trial'), 0)))sql");
    return s.step() ? s.integer(0) : 0;
  }

  void take_trials() {
    // Numbers are moved past ours, so that samples find their trials without a map.
    const int64_t shift = last_trial();
    merged_.trials = change(fmt::format(R"sql(
        INSERT INTO main.t_trial (trial_id, run_id, {0})
        SELECT trial_id + {1}, m.new, {0} FROM other.t_trial t
        JOIN temp.run_map m ON m.old = t.run_id AND m.fresh = 1)sql",
                                        trial_columns, shift),
                            "t_trial");
    merged_.samples = change(fmt::format(R"sql(
        INSERT INTO main.t_trial_sample (trial_id, session, sweep, ns)
        SELECT s.trial_id + {0}, s.session, s.sweep, s.ns FROM other.t_trial_sample s
        JOIN other.t_trial t ON t.trial_id = s.trial_id
        JOIN temp.run_map m ON m.old = t.run_id AND m.fresh = 1)sql",
                                         shift),
                             "t_trial_sample");
    merged_.verdicts = change(R"sql(
        INSERT INTO main.t_verdict
        SELECT m.new, b.new, v.kernel_key, v.device_id, v.verdict, v.cause, v.ratio, v.ci_low,
          v.ci_high, v.sessions, v.note
        FROM other.t_verdict v JOIN temp.run_map m ON m.old = v.run_id AND m.fresh = 1
        LEFT JOIN temp.run_map b ON b.old = v.baseline_run_id)sql",
                              "t_verdict");
    db_.execute("DROP TABLE temp.run_map");
  }

  const Database& db_;
  Merged merged_;
  std::map<int64_t, int64_t> runs_;
  std::map<int64_t, bool> fresh_;
};

class Attached {
 public:
  Attached(const Database& db, const std::string& path) : db_(db) {
    Statement(db_, "ATTACH ? AS other").bind(1, path).run();
  }
  ~Attached() {
    try {
      db_.execute("DETACH other");
    } catch (const DbError&) {  // the connection is lost: the caller has met that error before
    }
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  const Database& db_;
};

}  // namespace

Merged merge(Store& into, const std::string& other) {
  const Database& db = into.database();
  std::error_code ec;
  if (std::filesystem::equivalent(db.path(), other, ec))
    throw DbError(Fault::Other, other, "it is the database that it is to be merged into");
  const std::vector<BestRow> bests = Store(other, Access::ReadOnly).all_best();
  Attached attached(db, other);
  Transaction t(db);
  Merge work(db);
  Merged merged = work.run();
  const std::vector<BestRow> ours = into.all_best();
  auto newer_here = [&](const BestRow& b) {
    return std::ranges::any_of(ours, [&](const BestRow& o) {
      return o.kernel_key == b.kernel_key && o.device_id == b.device_id && o.mode == b.mode &&
             o.numerics == b.numerics && o.opts == b.opts && !o.stale && o.tuned_at >= b.tuned_at;
    });
  };
  for (BestRow b : bests) {
    // Of a run that is here its best rows are as well, or better ones by now.
    if (!work.fresh(b.run_id) || newer_here(b)) {
      ++merged.best_kept;
      continue;
    }
    b.run_id = work.here(b.run_id);
    ++(into.store_best(b) ? merged.best_kept : merged.best_taken);
  }
  t.commit();
  return merged;
}

}  // namespace beamline::db
