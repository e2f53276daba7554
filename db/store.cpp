#include "db/store.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <ctime>
#include <fstream>

#include <fmt/format.h>

#include "db/schema.h"

namespace beamline::db {
namespace {

constexpr int max_alias_steps = 16;

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}
// Process numbers repeat after a reboot: a run is known by both.
std::string boot_id() {
  std::ifstream f("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(f, id);
  return id;
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
  return text;
}

Store::Store(const std::string& path) : db_(path, Access::ReadWrite) { migrate(db_); }

void Store::upsert_device(const DeviceRow& d) {
  const std::string now = utc_now();
  Statement s(db_, "INSERT INTO t_device (device_id,name,backend,arch,facts,first_seen,last_seen) VALUES (?1,?2,?3,?4,?5,?6,?6) "
                   "ON CONFLICT (device_id) DO UPDATE SET name=?2, backend=?3, arch=?4, facts=?5, last_seen=?6");
  s.bind(1, d.device_id).bind(2, d.name).bind(3, d.backend).bind(4, d.arch).bind(5, d.facts_json).bind(6, now).run();
}
void Store::upsert_workload(const WorkloadRow& w) {
  Statement s(db_, "INSERT INTO t_workload (workload_id,file,name,params,weight,repeat,content_hash) VALUES (?1,?2,?3,?4,?5,?6,?7) "
                   "ON CONFLICT (workload_id) DO UPDATE SET file=?2, name=?3, params=?4, weight=?5, repeat=?6, content_hash=?7");
  s.bind(1, w.workload_id).bind(2, w.file).bind(3, w.name).bind(4, w.params_json).bind(5, w.weight).bind(6, w.repeat)
      .bind(7, w.content_hash).run();
}
void Store::upsert_kernel(const KernelRow& k) {
  Statement s(db_, "INSERT INTO t_kernel (kernel_key,name,ast,flops,bytes,shape,dtypes,key_version) VALUES (?1,?2,?3,?4,?5,?6,?7,?8) "
                   "ON CONFLICT (kernel_key) DO UPDATE SET name=?2, ast=?3, flops=?4, bytes=?5, shape=?6, dtypes=?7, key_version=?8, orphaned=0");
  s.bind(1, k.kernel_key).bind(2, k.name).bind(3, k.ast).bind(4, k.flops).bind(5, k.bytes).bind(6, k.shape_json).bind(7, k.dtypes)
      .bind(8, k.key_version).run();
}
void Store::upsert_kernel_use(const std::string& key, const std::string& workload_id, int64_t ordinal, int64_t count) {
  Statement s(db_, "INSERT INTO t_kernel_use VALUES (?1,?2,?3,?4) ON CONFLICT DO UPDATE SET count=?4");
  s.bind(1, key).bind(2, workload_id).bind(3, ordinal).bind(4, count).run();
}

int64_t Store::begin_run(const RunRow& r) {
  Statement s(db_, "INSERT INTO t_run (label,command,device_id,started_at,status,seed,budget,engine_version,toolchain,host,pid,boot_id) "
                   "VALUES (?1,?2,?3,?4,'running',?5,?6,?7,?8,?9,?10,?11)");
  s.bind(1, r.label).bind(2, r.command).bind(3, r.device_id).bind(4, utc_now()).bind(5, r.seed).bind(6, r.budget)
      .bind(7, r.engine_version).bind(8, r.toolchain).bind(9, host_name()).bind(10, int64_t{getpid()}).bind(11, boot_id()).run();
  return db_.last_id();
}
void Store::finish_run(int64_t run_id, const std::string& status) {
  Statement s(db_, "UPDATE t_run SET status=?2, ended_at=?3 WHERE run_id=?1");
  s.bind(1, run_id).bind(2, status).bind(3, utc_now()).run();
}
int Store::mark_dead_runs() {
  std::vector<int64_t> dead;
  Statement s(db_, "SELECT run_id, pid, boot_id FROM t_run WHERE status='running' AND host=?1");
  s.bind(1, host_name());
  while (s.step()) {
    const bool alive = s.text(2) == boot_id() && (kill(static_cast<pid_t>(s.integer(1)), 0) == 0 || errno == EPERM);
    if (!alive) dead.push_back(s.integer(0));
  }
  for (int64_t id : dead) finish_run(id, "interrupted");
  return static_cast<int>(dead.size());
}

int64_t Store::insert_trial(const TrialRow& t) {
  Transaction tx(db_);
  Statement s(db_, "INSERT INTO t_trial (run_id,kernel_key,device_id,mode,opts,status,stage,time_ns,ratio_to_incumbent,n_samples,compile_ms,"
                   "code_hash,error,created_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)");
  s.bind(1, t.run_id).bind(2, t.kernel_key).bind(3, t.device_id).bind(4, t.mode).bind(5, t.opts).bind(6, t.status).bind(7, t.stage)
      .bind(8, t.time_ns).bind(9, t.ratio_to_incumbent).bind(10, t.n_samples).bind(11, t.compile_ms).bind(12, t.code_hash)
      .bind(13, t.error).bind(14, utc_now()).run();
  const int64_t id = db_.last_id();
  Statement p(db_, "INSERT INTO t_trial_sample VALUES (?1,?2,?3,?4)");
  for (const Sample& x : t.samples) p.bind(1, id).bind(2, x.session).bind(3, x.sweep).bind(4, x.ns).run();
  tx.commit();
  return id;
}
std::vector<TrialRow> Store::trials_of(int64_t run_id) const {
  std::vector<TrialRow> out;
  Statement s(db_, "SELECT kernel_key,device_id,mode,opts,status,stage,time_ns,ratio_to_incumbent,n_samples,compile_ms,code_hash,error "
                   "FROM t_trial WHERE run_id=?1 ORDER BY trial_id");
  s.bind(1, run_id);
  while (s.step()) {
    TrialRow t;
    t.run_id = run_id;
    t.kernel_key = s.text(0), t.device_id = s.text(1), t.mode = s.text(2), t.opts = s.text(3), t.status = s.text(4), t.stage = s.text(5);
    t.time_ns = s.optional_real(6), t.ratio_to_incumbent = s.optional_real(7), t.n_samples = s.integer(8);
    t.compile_ms = s.optional_real(9), t.code_hash = s.text(10), t.error = s.text(11);
    out.push_back(std::move(t));
  }
  return out;
}

std::optional<std::string> Store::store_best(const BestRow& b) {
  if (!b.verified) return "its result was not verified";
  if (b.sessions < 1) return "no session stands behind its time";
  if (!std::isfinite(b.best_ns) || b.best_ns <= 0) return fmt::format("its time of {} ns is no time", b.best_ns);
  Transaction tx(db_);
  Statement pin(db_, "SELECT pinned FROM t_best WHERE kernel_key=?1 AND device_id=?2 AND mode=?3 AND numerics=?4");
  pin.bind(1, b.kernel_key).bind(2, b.device_id).bind(3, b.mode).bind(4, b.numerics);
  if (pin.step() && pin.integer(0) != 0) return "the stored row is pinned";
  Statement s(db_, "INSERT OR REPLACE INTO t_best (kernel_key,device_id,mode,numerics,opts,local_size,best_ns,heuristic_ns,unoptimized_ns,gain,"
                   "ci_low,ci_high,sessions,tie_opts,gflops,gbps,bound_share,verified,output_hash,pinned,stale,stale_reason,code_hash,source_hash,"
                   "run_id,engine_version,action_set,toolchain,environment_id,strategy,tuned_at) VALUES "
                   "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,1,?18,?19,?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30)");
  s.bind(1, b.kernel_key).bind(2, b.device_id).bind(3, b.mode).bind(4, b.numerics).bind(5, b.opts).bind(6, b.local_size).bind(7, b.best_ns)
      .bind(8, b.heuristic_ns).bind(9, b.unoptimized_ns).bind(10, b.gain).bind(11, b.ci_low).bind(12, b.ci_high).bind(13, b.sessions)
      .bind(14, b.tie_opts_json).bind(15, b.gflops).bind(16, b.gbps).bind(17, b.bound_share).bind(18, b.output_hash).bind(19, b.pinned)
      .bind(20, b.stale).bind(21, b.stale_reason).bind(22, b.code_hash).bind(23, b.source_hash).bind(24, b.run_id).bind(25, b.engine_version)
      .bind(26, b.action_set).bind(27, b.toolchain).bind(28, b.environment_id).bind(29, b.strategy)
      .bind(30, b.tuned_at.empty() ? utc_now() : b.tuned_at).run();
  tx.commit();
  return std::nullopt;
}

std::optional<BestRow> Store::lookup_best(const std::string& key, const std::string& device_id, const std::string& mode,
                                          const std::string& numerics) const {
  std::string k = key;
  for (int i = 0; i < max_alias_steps; i++) {
    Statement s(db_, "SELECT opts,local_size,best_ns,heuristic_ns,unoptimized_ns,gain,ci_low,ci_high,sessions,tie_opts,gflops,gbps,bound_share,"
                     "verified,output_hash,pinned,stale,stale_reason,code_hash,source_hash,run_id,engine_version,action_set,toolchain,"
                     "environment_id,strategy,tuned_at FROM t_best WHERE kernel_key=?1 AND device_id=?2 AND mode=?3 AND numerics=?4");
    s.bind(1, k).bind(2, device_id).bind(3, mode).bind(4, numerics);
    if (s.step()) {
      BestRow b;
      b.kernel_key = k, b.device_id = device_id, b.mode = mode, b.numerics = numerics;
      b.opts = s.text(0), b.local_size = s.text(1), b.best_ns = s.real(2), b.heuristic_ns = s.optional_real(3);
      b.unoptimized_ns = s.optional_real(4), b.gain = s.optional_real(5), b.ci_low = s.optional_real(6), b.ci_high = s.optional_real(7);
      b.sessions = s.integer(8), b.tie_opts_json = s.text(9), b.gflops = s.optional_real(10), b.gbps = s.optional_real(11);
      b.bound_share = s.optional_real(12), b.verified = s.integer(13) != 0, b.output_hash = s.text(14), b.pinned = s.integer(15) != 0;
      b.stale = s.integer(16) != 0, b.stale_reason = s.text(17), b.code_hash = s.text(18), b.source_hash = s.text(19);
      b.run_id = s.integer(20), b.engine_version = s.text(21), b.action_set = s.text(22), b.toolchain = s.text(23);
      b.environment_id = s.text(24), b.strategy = s.text(25), b.tuned_at = s.text(26);
      return b;
    }
    // The row may still be under the key that this one replaced.
    Statement a(db_, "SELECT old_key FROM t_key_alias WHERE new_key=?1");
    a.bind(1, k);
    if (!a.step()) return std::nullopt;
    k = a.text(0);
  }
  return std::nullopt;
}

void Store::quarantine(const std::string& code_hash, const std::string& device_id, const std::string& reason) {
  Statement s(db_, "INSERT INTO t_quarantine VALUES (?1,?2,?3,1,?4) ON CONFLICT DO UPDATE SET reason=?3, count=count+1, last_seen=?4");
  s.bind(1, code_hash).bind(2, device_id).bind(3, reason).bind(4, utc_now()).run();
}
std::optional<std::string> Store::quarantined(const std::string& code_hash, const std::string& device_id) const {
  Statement s(db_, "SELECT reason FROM t_quarantine WHERE code_hash=?1 AND device_id=?2");
  s.bind(1, code_hash).bind(2, device_id);
  return s.step() ? std::optional(s.text(0)) : std::nullopt;
}

}  // namespace beamline::db
