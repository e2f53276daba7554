// The Store's best opts: what may be stored, what is served.
#include <cmath>
#include <tuple>

#include "db/row_internal.h"
#include "db/store.h"

namespace beamline::db {

using row::Column;

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, BestRow>
void each_column(R& b, F&& f) {
  constexpr Column or_null = Column::OrNull;
  f("kernel_key", b.kernel_key), f("device_id", b.device_id), f("mode", b.mode);
  f("numerics", b.numerics), f("opts", b.opts), f("local_size", b.local_size, or_null);
  f("best_ns", b.best_ns), f("heuristic_ns", b.heuristic_ns);
  f("unoptimized_ns", b.unoptimized_ns), f("gain", b.gain), f("ci_low", b.ci_low);
  f("ci_high", b.ci_high), f("sessions", b.sessions), f("tie_opts", b.tie_opts_json, or_null);
  f("gflops", b.gflops), f("gbps", b.gbps), f("bound_share", b.bound_share);
  f("verified", b.verified), f("output_hash", b.output_hash, or_null), f("pinned", b.pinned);
  f("stale", b.stale), f("stale_reason", b.stale_reason, or_null);
  f("code_hash", b.code_hash, or_null), f("source_hash", b.source_hash, or_null);
  f("run_id", b.run_id), f("engine_version", b.engine_version, or_null);
  f("action_set", b.action_set, or_null), f("strategy", b.strategy), f("beam", b.beam);
  f("toolchain", b.toolchain, or_null), f("environment_id", b.environment_id, or_null);
  f("tuned_at", b.tuned_at);
}

namespace {

constexpr int64_t enough_sessions = 5;  // below, a comparison decides nothing
constexpr int max_alias_steps = 16;     // ends the walk where aliases form a circle
constexpr const char* identity = "kernel_key, device_id, mode, numerics";

std::optional<std::string> without_evidence(const BestRow& b) {
  if (!b.verified) return "its result was not verified";
  if (b.sessions < 1) return "no session stands behind its time";
  if (!std::isfinite(b.best_ns) || b.best_ns <= 0)
    return fmt::format("its time of {} ns is no time", b.best_ns);
  return std::nullopt;
}

// A total order, so that two writers end with the same row whoever comes first.
bool better_measured(const BestRow& a, const BestRow& b) {
  const auto rank = [](const BestRow& r) {
    return std::tuple(r.sessions < enough_sessions, r.best_ns, r.opts.size(), r.opts);
  };
  return rank(a) < rank(b);
}

// Times taken under another engine, toolchain or environment are not comparable.
bool comparable(const BestRow& a, const BestRow& b) {
  return a.engine_version == b.engine_version && a.toolchain == b.toolchain &&
         a.environment_id == b.environment_id;
}

std::optional<BestRow> stored(const Database& db, const std::string& key, const BestRow& id) {
  Statement s(db, fmt::format("SELECT {} FROM t_best WHERE kernel_key = ? AND device_id = ? AND "
                              "mode = ? AND numerics = ?",
                              row::names<BestRow>()));
  s.bind(1, key).bind(2, id.device_id).bind(3, id.mode).bind(4, id.numerics);
  BestRow b;
  if (!s.step() || row::read(s, b)) return std::nullopt;
  return b;
}

}  // namespace

std::optional<std::string> Store::store_best(const BestRow& b, std::optional<int64_t> beaten_run) {
  if (auto reason = without_evidence(b)) return reason;
  Transaction t(db_);
  if (const auto old = stored(db_, b.kernel_key, b)) {
    if (old->pinned) return "the stored row is pinned";
    const bool rival = old->opts != b.opts && !old->stale && comparable(*old, b) &&
                       old->run_id != b.run_id && old->run_id != beaten_run;
    if (rival && !better_measured(b, *old))
      return fmt::format("the stored row of run {} is better measured ({} ns, {} sessions)",
                         old->run_id, old->best_ns, old->sessions);
  }
  BestRow dated = b;
  if (dated.tuned_at.empty()) dated.tuned_at = utc_now();
  Statement s(db_, row::insert_sql<BestRow>("t_best", identity));
  row::bind(s, dated).run();
  t.commit();
  return std::nullopt;
}

std::optional<BestRow> Store::lookup_best(const std::string& key, const std::string& device_id,
                                          const std::string& mode,
                                          const std::string& numerics) const {
  BestRow id;
  id.device_id = device_id, id.mode = mode, id.numerics = numerics;
  const auto servable = [&](const std::string& k) {
    auto b = stored(db_, k, id);
    return b && !without_evidence(*b) ? b : std::nullopt;
  };
  if (auto b = servable(key)) return b;
  // Nearest keys first; of several equally near the one tuned last.
  Statement s(db_, R"sql(
      WITH RECURSIVE near (key, steps) AS (
        SELECT ?1, 0 UNION
        SELECT new_key, steps + 1 FROM near JOIN t_key_alias ON old_key = key WHERE steps < ?2
        UNION
        SELECT old_key, steps + 1 FROM near JOIN t_key_alias ON new_key = key WHERE steps < ?2)
      SELECT key FROM near LEFT JOIN t_best b ON b.kernel_key = key AND b.device_id = ?3
      WHERE steps > 0 GROUP BY key ORDER BY min(steps), max(tuned_at) DESC)sql");
  s.bind(1, key).bind(2, max_alias_steps).bind(3, device_id);
  while (s.step())
    if (auto b = servable(s.text(0))) return b;
  return std::nullopt;
}

void Store::set_pinned(const BestRow& b, bool pinned) {
  Statement s(db_, R"sql(
      UPDATE t_best SET pinned = ?5
      WHERE kernel_key = ?1 AND device_id = ?2 AND mode = ?3 AND numerics = ?4)sql");
  s.bind(1, b.kernel_key).bind(2, b.device_id).bind(3, b.mode).bind(4, b.numerics);
  s.bind(5, pinned).run();
}

void Store::set_bound_share(const BestRow& b, std::optional<double> share) {
  Statement s(db_, R"sql(
      UPDATE t_best SET bound_share = ?5
      WHERE kernel_key = ?1 AND device_id = ?2 AND mode = ?3 AND numerics = ?4)sql");
  s.bind(1, b.kernel_key).bind(2, b.device_id).bind(3, b.mode).bind(4, b.numerics);
  s.bind(5, share).run();
}

std::vector<BestRow> Store::all_best(std::vector<std::string>* skipped) const {
  std::vector<BestRow> out;
  Statement s(db_,
              fmt::format("SELECT {} FROM t_best ORDER BY {}", row::names<BestRow>(), identity));
  while (s.step()) {
    BestRow b;
    const char* bad = row::read(s, b);
    const auto lack = bad ? fmt::format("{} is unreadable", bad) : without_evidence(b);
    if (!lack)
      out.push_back(std::move(b));
    else if (skipped)
      skipped->push_back(fmt::format("best of {} on {}: {}", b.kernel_key, b.device_id, *lack));
  }
  return out;
}

}  // namespace beamline::db
