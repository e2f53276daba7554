#include "db/maintenance.h"

#include <filesystem>

#include <fmt/format.h>

namespace beamline::db {
namespace {

namespace fs = std::filesystem;

int64_t number(const Database& db, const std::string& sql) {
  Statement s(db, sql);
  return s.step() ? s.integer(0) : 0;
}

int64_t file_bytes(const Database& db) {
  int64_t sum = 0;
  for (const char* part : {"", "-wal"}) {
    std::error_code ec;
    const auto size = fs::file_size(db.path() + part, ec);
    if (!ec) sum += static_cast<int64_t>(size);
  }
  return sum;
}

// Trials that may go, as a list of ids in a temporary table.
void choose(const Database& db, int64_t keep) {
  db.execute("CREATE TEMP TABLE prunable (trial_id INTEGER PRIMARY KEY, run_id INTEGER)");
  Statement s(db, R"sql(
      INSERT INTO temp.prunable SELECT t.trial_id, t.run_id FROM t_trial t
      WHERE t.run_id IN (SELECT run_id FROM t_run WHERE status <> 'running' AND run_id NOT IN
                           (SELECT run_id FROM t_run ORDER BY run_id DESC LIMIT ?))
        AND NOT (t.stage = 'confirm' AND EXISTS
                   (SELECT 1 FROM t_best b WHERE b.run_id = t.run_id
                      AND b.kernel_key = t.kernel_key AND b.device_id = t.device_id
                      AND b.mode = t.mode)))sql");
  s.bind(1, keep).run();
}

constexpr const char* unused_artifacts = R"sql(
    hash NOT IN (SELECT code_hash FROM t_best WHERE code_hash IS NOT NULL)
    AND hash NOT IN (SELECT source_hash FROM t_best WHERE source_hash IS NOT NULL)
    AND hash NOT IN (SELECT code_hash FROM t_trial WHERE code_hash IS NOT NULL
                       AND trial_id NOT IN (SELECT trial_id FROM temp.prunable)))sql";

}  // namespace

void backup(const Database& db, const std::string& target) {
  std::error_code ec;
  if (fs::exists(target, ec)) throw DbError(Fault::Other, target, "the file exists already");
  Statement s(db, "VACUUM INTO ?");
  try {
    s.bind(1, target).run();
  } catch (...) {
    fs::remove(target, ec);
    throw;
  }
}

Pruned prune(const Database& db, int64_t keep, bool dry_run) {
  Pruned p;
  p.bytes_before = p.bytes_after = file_bytes(db);
  {
    Transaction t(db);
    choose(db, keep);
    p.trials = number(db, "SELECT count(*) FROM temp.prunable");
    p.runs = number(db, "SELECT count(DISTINCT run_id) FROM temp.prunable");
    p.samples = number(db, R"sql(
        SELECT count(*) FROM t_trial_sample WHERE trial_id IN (SELECT trial_id FROM temp.prunable))sql");
    p.artifacts =
        number(db, fmt::format("SELECT count(*) FROM t_artifact WHERE {}", unused_artifacts));
    if (dry_run) return p;  // and with it the temporary table
    db.execute(fmt::format("DELETE FROM t_artifact WHERE {}", unused_artifacts));
    db.execute(R"sql(
        DELETE FROM t_trial_sample WHERE trial_id IN (SELECT trial_id FROM temp.prunable);
        DELETE FROM t_trial WHERE trial_id IN (SELECT trial_id FROM temp.prunable);
        DROP TABLE temp.prunable)sql");
    t.commit();
  }
  db.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  p.bytes_after = file_bytes(db);
  return p;
}

}  // namespace beamline::db
