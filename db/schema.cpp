#include "db/schema.h"

#include <array>

#include <fmt/format.h>

namespace beamline::db {
namespace {

constexpr const char* version_1 = R"sql(
CREATE TABLE t_device (device_id TEXT PRIMARY KEY, name TEXT NOT NULL, backend TEXT NOT NULL, arch TEXT, facts TEXT,
  peak_gflops REAL, peak_gbps REAL, first_seen TEXT NOT NULL, last_seen TEXT NOT NULL);
CREATE TABLE t_workload (workload_id TEXT PRIMARY KEY, file TEXT, name TEXT NOT NULL, params TEXT, weight REAL,
  repeat INTEGER, content_hash TEXT);
CREATE TABLE t_kernel (kernel_key TEXT PRIMARY KEY, name TEXT, ast TEXT NOT NULL, flops REAL, bytes REAL, shape TEXT,
  dtypes TEXT, key_version INTEGER NOT NULL, orphaned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE t_kernel_use (kernel_key TEXT NOT NULL REFERENCES t_kernel, workload_id TEXT NOT NULL REFERENCES t_workload,
  ordinal INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kernel_key, workload_id, ordinal));
CREATE TABLE t_run (run_id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT, command TEXT, device_id TEXT REFERENCES t_device,
  started_at TEXT NOT NULL, ended_at TEXT, status TEXT NOT NULL CHECK (status IN ('running','finished','interrupted','failed')),
  seed INTEGER, budget TEXT, engine_version TEXT, toolchain TEXT, host TEXT, pid INTEGER, boot_id TEXT);
CREATE TABLE t_trial (trial_id INTEGER PRIMARY KEY AUTOINCREMENT, run_id INTEGER NOT NULL REFERENCES t_run,
  kernel_key TEXT NOT NULL REFERENCES t_kernel, device_id TEXT NOT NULL REFERENCES t_device, mode TEXT NOT NULL,
  opts TEXT NOT NULL, status TEXT NOT NULL CHECK (status IN ('ok','rejected','compile_error','launch_error','timeout',
  'crashed','wrong_result','mistrusted')), stage TEXT NOT NULL, time_ns REAL, ratio_to_incumbent REAL, n_samples INTEGER,
  compile_ms REAL, code_hash TEXT, error TEXT, created_at TEXT NOT NULL);
CREATE INDEX i_trial_run ON t_trial (run_id, kernel_key);
CREATE TABLE t_trial_sample (trial_id INTEGER NOT NULL REFERENCES t_trial, session INTEGER NOT NULL, sweep INTEGER NOT NULL,
  ns REAL NOT NULL, PRIMARY KEY (trial_id, session, sweep)) WITHOUT ROWID;
CREATE TABLE t_best (kernel_key TEXT NOT NULL REFERENCES t_kernel, device_id TEXT NOT NULL REFERENCES t_device,
  mode TEXT NOT NULL, numerics TEXT NOT NULL, opts TEXT NOT NULL, local_size TEXT, best_ns REAL NOT NULL CHECK (best_ns > 0),
  heuristic_ns REAL, unoptimized_ns REAL, gain REAL, ci_low REAL, ci_high REAL, sessions INTEGER NOT NULL CHECK (sessions > 0),
  tie_opts TEXT, gflops REAL, gbps REAL, bound_share REAL, verified INTEGER NOT NULL CHECK (verified = 1), output_hash TEXT,
  pinned INTEGER NOT NULL DEFAULT 0, stale INTEGER NOT NULL DEFAULT 0, stale_reason TEXT, code_hash TEXT, source_hash TEXT,
  run_id INTEGER NOT NULL REFERENCES t_run, engine_version TEXT, action_set TEXT, toolchain TEXT, environment_id TEXT,
  strategy TEXT NOT NULL, tuned_at TEXT NOT NULL, PRIMARY KEY (kernel_key, device_id, mode, numerics));
CREATE TABLE t_verdict (run_id INTEGER NOT NULL REFERENCES t_run, baseline_run_id INTEGER REFERENCES t_run, kernel_key TEXT NOT NULL,
  device_id TEXT NOT NULL, verdict TEXT NOT NULL, cause TEXT, ratio REAL, ci_low REAL, ci_high REAL, sessions INTEGER, note TEXT);
CREATE TABLE t_quarantine (code_hash TEXT NOT NULL, device_id TEXT NOT NULL, reason TEXT, count INTEGER NOT NULL, last_seen TEXT NOT NULL,
  PRIMARY KEY (code_hash, device_id));
CREATE TABLE t_key_alias (old_key TEXT PRIMARY KEY, new_key TEXT NOT NULL, engine_version TEXT);
CREATE TABLE t_artifact (hash TEXT PRIMARY KEY, kind TEXT NOT NULL, target TEXT, abi_version INTEGER, toolchain TEXT, bytes INTEGER, content BLOB);

CREATE VIEW best_opts AS SELECT b.kernel_key, k.name AS kernel_name, b.device_id, d.name AS device_name, b.mode, b.opts, b.local_size,
  b.best_ns, b.heuristic_ns, b.unoptimized_ns, b.gain, b.ci_low, b.ci_high, b.sessions, b.tie_opts, b.gflops, b.gbps, b.bound_share,
  b.verified, b.numerics, b.output_hash, b.pinned, b.stale, b.stale_reason, b.code_hash, b.source_hash, b.run_id, b.engine_version,
  b.action_set, b.toolchain, b.environment_id, b.tuned_at
  FROM t_best b JOIN t_kernel k USING (kernel_key) JOIN t_device d USING (device_id);
CREATE VIEW trials AS SELECT trial_id, run_id, kernel_key, device_id, mode, opts, status, stage, time_ns, ratio_to_incumbent, n_samples,
  compile_ms, code_hash, error, created_at FROM t_trial;
CREATE VIEW trial_samples AS SELECT trial_id, session, sweep, ns FROM t_trial_sample;
CREATE VIEW kernels AS SELECT kernel_key, name, ast, flops, bytes, shape, dtypes, key_version, orphaned FROM t_kernel;
CREATE VIEW kernel_uses AS SELECT kernel_key, workload_id, ordinal, count FROM t_kernel_use;
CREATE VIEW workloads AS SELECT workload_id, file, name, params, weight, repeat, content_hash FROM t_workload;
CREATE VIEW devices AS SELECT device_id, name, backend, arch, facts, peak_gflops, peak_gbps, first_seen, last_seen FROM t_device;
CREATE VIEW runs AS SELECT run_id, label, command, device_id, started_at, ended_at, status, seed, budget, engine_version, toolchain, host FROM t_run;
CREATE VIEW verdicts AS SELECT run_id, baseline_run_id, kernel_key, device_id, verdict, cause, ratio, ci_low, ci_high, sessions, note FROM t_verdict;
CREATE VIEW quarantine AS SELECT code_hash, device_id, reason, count, last_seen FROM t_quarantine;
CREATE VIEW key_alias AS SELECT old_key, new_key, engine_version FROM t_key_alias;
CREATE VIEW artifacts AS SELECT hash, kind, target, abi_version, toolchain, bytes FROM t_artifact;
)sql";

constexpr std::array<Migration, 1> steps_list = {{{1, version_1}}};

int64_t pragma(const Database& db, const char* name) {
  Statement s(db, fmt::format("PRAGMA {}", name));
  return s.step() ? s.integer(0) : 0;
}
bool empty(const Database& db) {
  Statement s(db, "SELECT count(*) FROM sqlite_master");
  s.step();
  return s.integer(0) == 0;
}
void check_owner(const Database& db, int newest) {
  if (!empty(db) && pragma(db, "application_id") != application_id)
    throw DbError(fmt::format("database {}: belongs to another application", db.path()));
  if (const int64_t v = pragma(db, "user_version"); v > newest)
    throw DbError(fmt::format("database {}: has schema version {}, this beamline knows up to {}", db.path(), v, newest));
}

}  // namespace

std::span<const Migration> migrations() { return steps_list; }
int schema_version() { return steps_list.back().version; }

void migrate(Database& db, std::span<const Migration> steps) {
  check_owner(db, steps.back().version);
  for (const Migration& m : steps) {
    if (pragma(db, "user_version") >= m.version) continue;
    Transaction t(db);
    if (pragma(db, "user_version") < m.version) {  // another process may have been first
      db.execute(m.sql);
      db.execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application_id, m.version));
    }
    t.commit();
  }
}

void require_schema(const Database& db) {
  check_owner(db, schema_version());
  if (const int64_t v = pragma(db, "user_version"); v < schema_version())
    throw DbError(fmt::format("database {}: has schema version {}, expected {}", db.path(), v, schema_version()));
}

std::vector<std::string> view_names() {
  return {"best_opts", "trials", "trial_samples", "kernels", "kernel_uses", "workloads",
          "devices",   "runs",   "verdicts",      "quarantine", "key_alias", "artifacts"};
}

}  // namespace beamline::db
