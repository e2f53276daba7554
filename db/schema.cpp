#include "db/schema.h"

#include <unistd.h>

#include <array>
#include <filesystem>

#include <fmt/format.h>

namespace beamline::db {
namespace {
namespace fs = std::filesystem;

// Times are ns. Absent texts are NULL; opts is never absent ('' is the unoptimised kernel).
// t_run: pid is for messages only, a held run is known by its lock (run_lock.h).
constexpr const char* version_1 = R"sql(
CREATE TABLE t_device (
  device_id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, backend TEXT NOT NULL, arch TEXT,
  facts TEXT, peak_gflops REAL, peak_gbps REAL, first_seen TEXT NOT NULL, last_seen TEXT NOT NULL);

CREATE TABLE t_workload (
  workload_id TEXT PRIMARY KEY NOT NULL, file TEXT, name TEXT NOT NULL, params TEXT,
  weight REAL NOT NULL, repeat INTEGER NOT NULL, content_hash TEXT);

CREATE TABLE t_kernel (
  kernel_key TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, ast TEXT NOT NULL, flops INTEGER,
  bytes INTEGER, shape TEXT, dtypes TEXT, key_version TEXT NOT NULL,
  orphaned INTEGER NOT NULL DEFAULT 0);

CREATE TABLE t_kernel_use (
  kernel_key TEXT NOT NULL REFERENCES t_kernel, workload_id TEXT NOT NULL REFERENCES t_workload,
  ordinal INTEGER NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY (kernel_key, workload_id, ordinal));
CREATE INDEX i_kernel_use_workload ON t_kernel_use (workload_id);

CREATE TABLE t_run (
  run_id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT, command TEXT NOT NULL,
  device_id TEXT REFERENCES t_device, started_at TEXT NOT NULL, ended_at TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'finished', 'interrupted', 'failed')),
  seed INTEGER, budget TEXT, engine_version TEXT, toolchain TEXT, host TEXT, pid INTEGER);

CREATE TABLE t_trial (
  trial_id INTEGER PRIMARY KEY AUTOINCREMENT, run_id INTEGER NOT NULL REFERENCES t_run,
  kernel_key TEXT NOT NULL REFERENCES t_kernel, device_id TEXT NOT NULL REFERENCES t_device,
  mode TEXT NOT NULL CHECK (mode IN ('warm', 'cold')), opts TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('ok', 'rejected', 'compile_error', 'launch_error',
    'timeout', 'crashed', 'wrong_result', 'mistrusted')),
  stage TEXT NOT NULL CHECK (stage IN ('search', 'select', 'confirm', 'bench', 'nightly')),
  time_ns REAL CHECK (time_ns > 0), ratio_to_incumbent REAL CHECK (ratio_to_incumbent > 0),
  n_samples INTEGER NOT NULL, compile_ms REAL, code_hash TEXT, error TEXT,
  created_at TEXT NOT NULL);
CREATE INDEX i_trial_run ON t_trial (run_id);
CREATE INDEX i_trial_kernel ON t_trial (kernel_key, device_id);

CREATE TABLE t_trial_sample (
  trial_id INTEGER NOT NULL REFERENCES t_trial, session INTEGER NOT NULL,
  sweep INTEGER NOT NULL, ns REAL NOT NULL CHECK (ns > 0),
  PRIMARY KEY (trial_id, session, sweep)) WITHOUT ROWID;

CREATE TABLE t_best (
  kernel_key TEXT NOT NULL REFERENCES t_kernel, device_id TEXT NOT NULL REFERENCES t_device,
  mode TEXT NOT NULL CHECK (mode IN ('warm', 'cold')),
  numerics TEXT NOT NULL CHECK (numerics IN ('default', 'tf32')),
  opts TEXT NOT NULL, local_size TEXT, best_ns REAL NOT NULL CHECK (best_ns > 0),
  heuristic_ns REAL, unoptimized_ns REAL, gain REAL, ci_low REAL, ci_high REAL,
  sessions INTEGER NOT NULL CHECK (sessions > 0), tie_opts TEXT, gflops REAL, gbps REAL,
  bound_share REAL, verified INTEGER NOT NULL CHECK (verified = 1), output_hash TEXT,
  pinned INTEGER NOT NULL, stale INTEGER NOT NULL, stale_reason TEXT, code_hash TEXT,
  source_hash TEXT, run_id INTEGER NOT NULL REFERENCES t_run, engine_version TEXT,
  action_set TEXT, strategy TEXT NOT NULL, beam INTEGER NOT NULL, toolchain TEXT,
  environment_id TEXT, tuned_at TEXT NOT NULL,
  PRIMARY KEY (kernel_key, device_id, mode, numerics));

CREATE TABLE t_verdict (
  run_id INTEGER NOT NULL REFERENCES t_run, baseline_run_id INTEGER REFERENCES t_run,
  kernel_key TEXT NOT NULL REFERENCES t_kernel, device_id TEXT NOT NULL REFERENCES t_device,
  verdict TEXT NOT NULL, cause TEXT, ratio REAL, ci_low REAL, ci_high REAL, sessions INTEGER,
  note TEXT);
CREATE INDEX i_verdict_run ON t_verdict (run_id);

CREATE TABLE t_quarantine (
  code_hash TEXT NOT NULL, device_id TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL,
  last_seen TEXT NOT NULL, PRIMARY KEY (code_hash, device_id));

CREATE TABLE t_key_alias (
  old_key TEXT PRIMARY KEY NOT NULL, new_key TEXT NOT NULL, engine_version TEXT);
CREATE INDEX i_key_alias_new ON t_key_alias (new_key);

CREATE TABLE t_artifact (
  hash TEXT PRIMARY KEY NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('source', 'object')),
  target TEXT, abi_version TEXT, toolchain TEXT, bytes INTEGER NOT NULL, content BLOB);

CREATE VIEW best_opts AS SELECT
  b.kernel_key, k.name AS kernel_name, b.device_id, d.name AS device_name, b.mode, b.opts,
  b.local_size, b.best_ns, b.heuristic_ns, b.unoptimized_ns, b.gain, b.ci_low, b.ci_high,
  b.sessions, b.tie_opts, b.gflops, b.gbps, b.bound_share, b.verified, b.numerics, b.output_hash,
  b.pinned, b.stale, b.stale_reason, b.code_hash, b.source_hash, b.run_id, b.engine_version,
  b.action_set, b.toolchain, b.environment_id, b.tuned_at
  FROM t_best b LEFT JOIN t_kernel k ON k.kernel_key = b.kernel_key
                LEFT JOIN t_device d ON d.device_id = b.device_id;
CREATE VIEW trials AS SELECT
  trial_id, run_id, kernel_key, device_id, mode, opts, status, stage, time_ns, ratio_to_incumbent,
  n_samples, compile_ms, code_hash, error, created_at FROM t_trial;
CREATE VIEW trial_samples AS SELECT trial_id, session, sweep, ns FROM t_trial_sample;
CREATE VIEW kernels AS SELECT
  kernel_key, name, ast, flops, bytes, shape, dtypes, key_version, orphaned FROM t_kernel;
CREATE VIEW kernel_uses AS SELECT kernel_key, workload_id, ordinal, count FROM t_kernel_use;
CREATE VIEW workloads AS SELECT
  workload_id, file, name, params, weight, repeat, content_hash FROM t_workload;
CREATE VIEW devices AS SELECT
  device_id, name, backend, arch, facts, peak_gflops, peak_gbps, first_seen, last_seen
  FROM t_device;
CREATE VIEW runs AS SELECT
  run_id, label, command, device_id, started_at, ended_at, status, seed, budget, engine_version,
  toolchain, host FROM t_run;
CREATE VIEW verdicts AS SELECT
  run_id, baseline_run_id, kernel_key, device_id, verdict, cause, ratio, ci_low, ci_high, sessions,
  note FROM t_verdict;
CREATE VIEW quarantine AS SELECT code_hash, device_id, reason, count, last_seen FROM t_quarantine;
CREATE VIEW key_alias AS SELECT old_key, new_key, engine_version FROM t_key_alias;
CREATE VIEW artifacts AS SELECT hash, kind, target, abi_version, toolchain, bytes FROM t_artifact;
)sql";

constexpr std::array<Migration, 1> all_steps = {{{1, version_1}}};

int64_t number(const Database& db, const char* sql) {
  Statement s(db, sql);
  return s.step() ? s.integer(0) : 0;
}
int64_t version_of(const Database& db) { return number(db, "PRAGMA user_version"); }
bool is_blank(const Database& db) {
  return number(db, "SELECT count(*) FROM sqlite_master") == 0 && version_of(db) == 0 &&
         number(db, "PRAGMA application_id") == 0;
}

// A step may rebuild a table that others refer to; SQLite allows that only with the checks off,
// and they can be switched only outside a transaction.
class WithoutForeignKeys {
 public:
  explicit WithoutForeignKeys(const Database& db) : db_(db) {
    db_.execute("PRAGMA foreign_keys=OFF");
  }
  ~WithoutForeignKeys() {
    try {
      db_.execute("PRAGMA foreign_keys=ON");
    } catch (const DbError&) {  // the connection is lost: the caller has met that error before
    }
  }
  WithoutForeignKeys(const WithoutForeignKeys&) = delete;
  WithoutForeignKeys& operator=(const WithoutForeignKeys&) = delete;

 private:
  const Database& db_;
};

void apply(const Database& db, const Migration& step) {
  Transaction t(db);
  if (version_of(db) >= step.version) return;  // another process was first
  db.execute(step.sql);
  if (Statement broken(db, "PRAGMA foreign_key_check"); broken.step())
    throw DbError(Fault::Constraint, db.path(),
                  fmt::format("the migration to schema version {} leaves a row of {} that refers "
                              "to a missing row of {}",
                              step.version, broken.text(0), broken.text(2)));
  db.execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", application_id,
                         step.version));
  t.commit();
}

}  // namespace

std::span<const Migration> migrations() { return all_steps; }
int schema_version() { return all_steps.back().version; }

void check_owner(const Database& db, int newest) {
  if (is_blank(db)) return;
  if (number(db, "PRAGMA application_id") != application_id)
    throw DbError(Fault::OtherApplication, db.path(), "it belongs to another application");
  if (const int64_t v = version_of(db); v > newest)
    throw DbError(Fault::Newer, db.path(),
                  fmt::format("it has schema version {}, written by a newer beamline; this one "
                              "knows up to {}",
                              v, newest));
}

void migrate(Database& db, std::span<const Migration> steps) {
  const int newest = steps.back().version;
  check_owner(db, newest);  // before anything is changed: choosing the journal writes to the file
  db.choose_journal();
  if (version_of(db) >= newest) return;
  WithoutForeignKeys off(db);
  for (const Migration& step : steps)
    if (version_of(db) < step.version) apply(db, step);
}

void create_if_missing(const std::string& path, const OpenOptions& options) {
  std::error_code ec;
  if (path.empty() || path == ":memory:" || fs::exists(fs::symlink_status(path, ec))) return;
  const std::string draft = fmt::format("{}.new-{}", path, getpid());
  const auto discard = [&] {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(draft + suffix, ec);
  };
  try {
    Database db(draft, Access::ReadWrite, options);
    migrate(db);
  } catch (const DbError& e) {
    discard();
    throw DbError(e.fault(), path, e.message(), e.statement());
  } catch (...) {
    discard();
    throw;
  }
  // Who links first has made it. Where files cannot be linked, two at once are very unlikely.
  fs::create_hard_link(draft, path, ec);
  if (ec && !fs::exists(path)) fs::rename(draft, path);
  discard();
}

void require_schema(const Database& db) {
  check_owner(db);
  if (is_blank(db)) throw DbError(Fault::Older, db.path(), "it is empty");
  if (const int64_t v = version_of(db); v < schema_version())
    throw DbError(Fault::Older, db.path(),
                  fmt::format("it has schema version {}, older than {}; open it once for writing",
                              v, schema_version()));
}

const std::vector<std::string>& view_names() {
  static const std::vector<std::string> names = {
      "best_opts", "trials", "trial_samples", "kernels",    "kernel_uses", "workloads",
      "devices",   "runs",   "verdicts",      "quarantine", "key_alias",   "artifacts"};
  return names;
}

}  // namespace beamline::db
