// The Store's runs and trials.
#include <unistd.h>

#include "db/row_internal.h"
#include "db/store.h"

namespace beamline::db {

using row::Column;

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, TrialRow>
void each_column(R& t, F&& f) {
  f("run_id", t.run_id), f("kernel_key", t.kernel_key), f("device_id", t.device_id);
  f("mode", t.mode), f("opts", t.opts), f("status", t.status), f("stage", t.stage);
  f("time_ns", t.time_ns), f("ratio_to_incumbent", t.ratio_to_incumbent);
  f("n_samples", t.n_samples), f("compile_ms", t.compile_ms);
  f("code_hash", t.code_hash, Column::OrNull), f("error", t.error, Column::OrNull);
  f("created_at", t.created_at);
}

namespace {

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

int64_t Store::begin_run(const RunRow& r) {
  Transaction t(db_);
  Statement s(db_, R"sql(
      INSERT INTO t_run (label, command, device_id, started_at, status, seed, budget,
                         engine_version, toolchain, host, pid)
      VALUES (nullif(?1, ''), ?2, nullif(?3, ''), ?4, 'running', ?5, nullif(?6, ''),
              nullif(?7, ''), nullif(?8, ''), ?9, ?10))sql");
  s.bind(1, r.label).bind(2, r.command).bind(3, r.device_id).bind(4, utc_now()).bind(5, r.seed);
  s.bind(6, r.budget).bind(7, r.engine_version).bind(8, r.toolchain).bind(9, host_name());
  s.bind(10, int64_t{getpid()}).run();
  const int64_t id = db_.last_id();
  // Held before anyone can see the row, or mark_dead_runs of another process could take it away.
  if (!lock_.hold(id))
    throw DbError(Fault::Busy, db_.path(), fmt::format("the lock of new run {} is taken", id));
  try {
    t.commit();
  } catch (...) {
    lock_.release(id);
    throw;
  }
  return id;
}

void Store::finish_run(int64_t run_id, const std::string& status) {
  Statement s(db_, "UPDATE t_run SET status = ?2, ended_at = ?3 WHERE run_id = ?1");
  s.bind(1, run_id).bind(2, status).bind(3, utc_now()).run();
  if (db_.changes() == 0)
    throw DbError(Fault::Missing, db_.path(), fmt::format("there is no run {}", run_id));
  lock_.release(run_id);
}

std::optional<std::string> Store::resume_run(int64_t run_id) {
  Transaction t(db_);
  Statement s(db_, "SELECT status, host, pid FROM t_run WHERE run_id = ?");
  s.bind(1, run_id);
  if (!s.step()) return fmt::format("there is no run {}", run_id);
  if (s.text(0) == "finished") return fmt::format("run {} is finished", run_id);
  if (lock_.held(run_id) || !lock_.hold(run_id))
    return fmt::format("run {} is held by process {} on {}", run_id, s.integer(2), s.text(1));
  s.reset();
  try {
    Statement u(db_, R"sql(
        UPDATE t_run SET status = 'running', ended_at = NULL, host = ?2, pid = ?3
        WHERE run_id = ?1)sql");
    u.bind(1, run_id).bind(2, host_name()).bind(3, int64_t{getpid()}).run();
    t.commit();
  } catch (...) {
    lock_.release(run_id);
    throw;
  }
  return std::nullopt;
}

int Store::mark_dead_runs() {
  Transaction t(db_);
  std::vector<int64_t> dead;
  Statement s(db_, "SELECT run_id FROM t_run WHERE status = 'running'");
  while (s.step())
    if (!lock_.held(s.integer(0))) dead.push_back(s.integer(0));
  // It ended when it wrote last, not now.
  Statement mark(db_, R"sql(
      UPDATE t_run SET status = 'interrupted', ended_at = coalesce(
        (SELECT max(created_at) FROM t_trial WHERE t_trial.run_id = t_run.run_id), started_at)
      WHERE run_id = ?)sql");
  for (const int64_t id : dead) mark.bind(1, id).run();
  t.commit();
  return static_cast<int>(dead.size());
}

namespace {

void insert_samples(const Database& db, int64_t trial_id, const std::vector<Sample>& samples) {
  Statement p(db, "INSERT INTO t_trial_sample (trial_id, session, sweep, ns) VALUES (?, ?, ?, ?)");
  for (const Sample& x : samples)
    p.bind(1, trial_id).bind(2, x.session).bind(3, x.sweep).bind(4, x.ns).run();
}

}  // namespace

int64_t Store::insert_trial(const TrialRow& trial) {
  Transaction t(db_);
  TrialRow dated = trial;
  dated.created_at = utc_now();
  Statement s(db_, row::insert_sql<TrialRow>("t_trial"));
  row::bind(s, dated).run();
  const int64_t id = db_.last_id();
  insert_samples(db_, id, trial.samples);
  t.commit();
  return id;
}

void Store::replace_trial(int64_t trial_id, const TrialRow& trial) {
  Transaction t(db_);
  Statement s(db_, R"sql(
      UPDATE t_trial SET status = ?2, time_ns = ?3, ratio_to_incumbent = ?4, n_samples = ?5,
        compile_ms = ?6, code_hash = nullif(?7, ''), error = nullif(?8, '')
      WHERE trial_id = ?1)sql");
  s.bind(1, trial_id).bind(2, trial.status).bind(3, trial.time_ns);
  s.bind(4, trial.ratio_to_incumbent).bind(5, trial.n_samples).bind(6, trial.compile_ms);
  s.bind(7, trial.code_hash).bind(8, trial.error).run();
  if (db_.changes() == 0)
    throw DbError(Fault::Missing, db_.path(), fmt::format("there is no trial {}", trial_id));
  Statement(db_, "DELETE FROM t_trial_sample WHERE trial_id = ?").bind(1, trial_id).run();
  insert_samples(db_, trial_id, trial.samples);
  t.commit();
}

std::vector<TrialRow> Store::trials_of(int64_t run_id, std::vector<std::string>* skipped) const {
  std::vector<TrialRow> out;
  Statement s(db_,
              fmt::format("SELECT {}, trial_id FROM t_trial WHERE run_id = ? ORDER BY trial_id",
                          row::names<TrialRow>()));
  s.bind(1, run_id);
  while (s.step()) {
    TrialRow t;
    t.trial_id = s.integer(s.columns() - 1);
    const char* bad = row::read(s, t);
    if (!bad)
      out.push_back(std::move(t));
    else if (skipped)
      skipped->push_back(fmt::format("trial {}: {} is unreadable", t.trial_id, bad));
  }
  return out;
}

std::vector<Sample> Store::samples_of(int64_t trial_id) const {
  std::vector<Sample> out;
  Statement s(db_, R"sql(
      SELECT session, sweep, ns FROM t_trial_sample WHERE trial_id = ?
      ORDER BY session, sweep)sql");
  s.bind(1, trial_id);
  while (s.step()) out.push_back({s.integer(0), s.integer(1), s.real(2)});
  return out;
}

}  // namespace beamline::db
