#include "db/store.h"

#include <cstdlib>
#include <ctime>

#include "db/row_internal.h"
#include "db/schema.h"

namespace beamline::db {

using row::Column;

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, WorkloadRow>
void each_column(R& w, F&& f) {
  f("workload_id", w.workload_id), f("file", w.file, Column::OrNull), f("name", w.name);
  f("params", w.params_json, Column::OrNull), f("weight", w.weight), f("repeat", w.repeat);
  f("content_hash", w.content_hash, Column::OrNull);
}

template <class R, class F>
requires std::is_same_v<std::remove_const_t<R>, KernelRow>
void each_column(R& k, F&& f) {
  f("kernel_key", k.kernel_key), f("name", k.name), f("ast", k.ast), f("flops", k.flops);
  f("bytes", k.bytes), f("shape", k.shape_json, Column::OrNull);
  f("dtypes", k.dtypes, Column::OrNull), f("key_version", k.key_version);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
  return text;
}

std::string default_path() {
  const auto env = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  if (const std::string path = env("BEAMLINE_DB"); !path.empty()) return path;
  std::string data = env("XDG_DATA_HOME");
  if (data.empty() || data[0] != '/') data = env("HOME") + "/.local/share";  // as XDG says
  return data + "/beamline/beamline.db";
}

namespace {

const std::string& made(const std::string& path, Access access, const OpenOptions& options) {
  if (access == Access::ReadWrite) create_if_missing(path, options);
  return path;
}

}  // namespace

Store::Store(const std::string& path, Access access, const OpenOptions& options)
    : db_(made(path, access, options), access, options), lock_(path) {
  access == Access::ReadWrite ? migrate(db_) : require_schema(db_);
}

void Store::upsert_device(const DeviceRow& d) {
  Statement s(db_, R"sql(
      INSERT INTO t_device (device_id, name, backend, arch, facts, peak_gflops, peak_gbps,
                            first_seen, last_seen)
      VALUES (?1, ?2, ?3, nullif(?4, ''), nullif(?5, ''), ?6, ?7, ?8, ?8)
      ON CONFLICT (device_id) DO UPDATE SET name = excluded.name, backend = excluded.backend,
        arch = excluded.arch, last_seen = excluded.last_seen,
        facts = CASE WHEN json_valid(facts) AND json_valid(excluded.facts)
                     THEN json_patch(facts, excluded.facts) ELSE excluded.facts END,
        peak_gflops = coalesce(excluded.peak_gflops, peak_gflops),
        peak_gbps = coalesce(excluded.peak_gbps, peak_gbps))sql");
  s.bind(1, d.device_id).bind(2, d.name).bind(3, d.backend).bind(4, d.arch).bind(5, d.facts_json);
  s.bind(6, d.peak_gflops).bind(7, d.peak_gbps).bind(8, utc_now()).run();
}

void Store::upsert_workload(const WorkloadRow& w) {
  Statement s(db_, row::insert_sql<WorkloadRow>("t_workload", "workload_id"));
  row::bind(s, w).run();
}

void Store::upsert_kernel(const KernelRow& k) {
  Statement s(db_, row::insert_sql<KernelRow>("t_kernel", "kernel_key") + ", orphaned=0");
  row::bind(s, k).run();
}

void Store::upsert_kernel_use(const std::string& key, const std::string& workload_id,
                              int64_t ordinal, int64_t count) {
  Statement s(db_, R"sql(
      INSERT INTO t_kernel_use (kernel_key, workload_id, ordinal, count) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (kernel_key, workload_id, ordinal) DO UPDATE SET count = excluded.count)sql");
  s.bind(1, key).bind(2, workload_id).bind(3, ordinal).bind(4, count).run();
}

void Store::add_key_alias(const std::string& old_key, const std::string& new_key,
                          const std::string& engine_version) {
  Statement s(db_, R"sql(
      INSERT INTO t_key_alias (old_key, new_key, engine_version) VALUES (?1, ?2, nullif(?3, ''))
      ON CONFLICT (old_key) DO UPDATE SET new_key = excluded.new_key,
        engine_version = excluded.engine_version)sql");
  s.bind(1, old_key).bind(2, new_key).bind(3, engine_version).run();
}

void Store::accept(int64_t run_id, const std::string& key, const std::string& device_id,
                   const std::string& note) {
  Transaction t(db_);
  Statement u(db_, R"sql(
      UPDATE t_verdict SET note = ?4
      WHERE run_id = ?1 AND kernel_key = ?2 AND device_id = ?3 AND verdict = 'ACCEPTED')sql");
  u.bind(1, run_id).bind(2, key).bind(3, device_id).bind(4, note).run();
  if (db_.changes() == 0) {
    Statement s(db_, R"sql(
        INSERT INTO t_verdict (run_id, kernel_key, device_id, verdict, note)
        VALUES (?1, ?2, ?3, 'ACCEPTED', ?4))sql");
    s.bind(1, run_id).bind(2, key).bind(3, device_id).bind(4, note).run();
  }
  t.commit();
}

void Store::quarantine(const std::string& code_hash, const std::string& device_id,
                       const std::string& reason) {
  Statement s(db_, R"sql(
      INSERT INTO t_quarantine (code_hash, device_id, reason, count, last_seen)
      VALUES (?1, ?2, ?3, 1, ?4)
      ON CONFLICT (code_hash, device_id) DO UPDATE SET reason = excluded.reason,
        count = count + 1, last_seen = excluded.last_seen)sql");
  s.bind(1, code_hash).bind(2, device_id).bind(3, reason).bind(4, utc_now()).run();
}

std::optional<std::string> Store::quarantined(const std::string& code_hash,
                                              const std::string& device_id) const {
  Statement s(db_, "SELECT reason FROM t_quarantine WHERE code_hash = ? AND device_id = ?");
  s.bind(1, code_hash).bind(2, device_id);
  return s.step() ? std::optional(s.text(0)) : std::nullopt;
}

}  // namespace beamline::db
