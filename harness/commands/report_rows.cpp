#include "harness/commands/report_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/errors.h"

namespace beamline::cli {
namespace {

using db::Statement;
using nlohmann::json;

std::string shape_text(const std::string& shape_json) {
  const json shape = json::parse(shape_json, nullptr, false);
  std::vector<std::string> sizes;
  if (shape.is_array())
    for (const json& n : shape) sizes.push_back(n.dump());
  return sizes.empty() ? "scalar" : fmt::format("{}", fmt::join(sizes, " x "));
}

void read_best(const Statement& s, int c, StoredKernel& k) {
  reports::KernelFacts& f = k.facts;
  f.opts = s.text(c);
  f.mode = s.text(c + 1);
  f.numerics = s.text(c + 2);
  f.best_ns = s.optional_real(c + 3);
  f.heuristic_ns = s.optional_real(c + 4);
  f.unoptimized_ns = s.optional_real(c + 5);
  f.gain = s.optional_real(c + 6);
  f.ci_low = s.optional_real(c + 7);
  f.ci_high = s.optional_real(c + 8);
  f.sessions = s.integer(c + 9);
  const json ties = json::parse(s.text(c + 10), nullptr, false);
  if (ties.is_array())
    for (const json& t : ties)
      if (t.is_string()) f.ties.push_back(t.get<std::string>());
  f.gflops = s.optional_real(c + 11);
  f.gbps = s.optional_real(c + 12);
  f.bound_share = s.optional_real(c + 13);
  f.verified = s.integer(c + 14) == 1;
  f.pinned = s.integer(c + 15) == 1;
  f.stale = s.integer(c + 16) == 1;
  f.stale_reason = s.text(c + 17);
  k.code_hash = s.text(c + 18);
  k.source_hash = s.text(c + 19);
  f.run_id = s.integer(c + 20);
  f.engine_version = s.text(c + 21);
  f.toolchain = s.text(c + 22);
  f.tuned_at = s.text(c + 23);
}

}  // namespace

reports::RunFacts read_run(const db::Database& database, int64_t run_id, std::string& device_id) {
  Statement s(database, R"sql(
      SELECT coalesce(label, ''), command, status, started_at, coalesce(ended_at, ''),
        coalesce(budget, ''), coalesce(engine_version, ''), coalesce(toolchain, ''),
        coalesce(host, ''), coalesce(seed, 0),
        (julianday(ended_at) - julianday(started_at)) * 86400.0, coalesce(device_id, '')
      FROM runs WHERE run_id = ?)sql");
  s.bind(1, run_id);
  if (!s.step()) throw UsageError(fmt::format("there is no run {}", run_id));
  device_id = s.text(11);
  return {.run_id = run_id,
          .label = s.text(0),
          .command = s.text(1),
          .status = s.text(2),
          .started_at = s.text(3),
          .ended_at = s.text(4),
          .budget = s.text(5),
          .engine_version = s.text(6),
          .toolchain = s.text(7),
          .host = s.text(8),
          .seed = s.integer(9),
          .wall_s = s.optional_real(10)};
}

StoredDevice read_device(const db::Database& database, const std::string& device_id) {
  StoredDevice d;
  d.facts.device_id = device_id;
  Statement s(database, R"sql(
      SELECT name, backend, coalesce(arch, ''), coalesce(facts, ''), peak_gflops, peak_gbps
      FROM devices WHERE device_id = ?)sql");
  s.bind(1, device_id);
  if (!s.step()) return d;
  d.facts.name = s.text(0);
  d.facts.backend = s.text(1);
  d.facts.arch = s.text(2);
  d.all = json::parse(s.text(3), nullptr, false);
  d.facts.peak_gflops = s.optional_real(4);
  d.facts.peak_gbps = s.optional_real(5);
  return d;
}

std::vector<StoredKernel> read_kernels(const db::Database& database, const std::string& device_id) {
  // Kernels with rows of this device, and those that no device has tuned.
  Statement s(database, R"sql(
      SELECT k.kernel_key, k.name, k.ast, coalesce(k.flops, 0), coalesce(k.bytes, 0),
        coalesce(k.shape, ''), coalesce(k.dtypes, ''),
        b.opts, b.mode, b.numerics, b.best_ns, b.heuristic_ns, b.unoptimized_ns, b.gain, b.ci_low,
        b.ci_high, b.sessions, b.tie_opts, b.gflops, b.gbps, b.bound_share, b.verified, b.pinned,
        b.stale, b.stale_reason, b.code_hash, b.source_hash, b.run_id, b.engine_version,
        b.toolchain, b.tuned_at
      FROM kernels k
      LEFT JOIN best_opts b ON b.kernel_key = k.kernel_key AND b.device_id = ?1
      WHERE b.kernel_key IS NOT NULL
        OR EXISTS (SELECT 1 FROM trials t WHERE t.kernel_key = k.kernel_key AND t.device_id = ?1)
        OR (k.orphaned = 0 AND k.kernel_key NOT IN (SELECT new_key FROM key_alias)
            AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.kernel_key = k.kernel_key)
            AND NOT EXISTS (SELECT 1 FROM best_opts o WHERE o.kernel_key = k.kernel_key))
      ORDER BY k.name, k.kernel_key, b.mode DESC, b.numerics)sql");
  s.bind(1, device_id);
  std::vector<StoredKernel> list;
  while (s.step()) {
    StoredKernel k;
    k.facts.key = s.text(0);
    k.facts.name = s.text(1);
    k.ast = s.text(2);
    k.facts.flops = static_cast<double>(s.integer(3));
    k.facts.bytes = static_cast<double>(s.integer(4));
    k.facts.shape = shape_text(s.text(5));
    k.facts.dtypes = s.text(6);
    if (!s.is_null(7)) read_best(s, 7, k);
    list.push_back(std::move(k));
  }
  return list;
}

// "+run_id": the index of the kernel is the one to use, not that of the run.
void read_candidates(const db::Database& database, const std::string& device_id, int64_t run,
                     reports::KernelFacts& k) {
  Statement s(database, R"sql(
      SELECT opts, status, stage, coalesce(error, ''), time_ns FROM trials
      WHERE kernel_key = ?1 AND device_id = ?2 AND +run_id = ?3 AND (?4 = '' OR mode = ?4)
      ORDER BY trial_id)sql");
  s.bind(1, k.key).bind(2, device_id).bind(3, run).bind(4, k.mode);
  while (s.step())
    k.candidates.push_back({run, s.text(0), s.text(1), s.text(2), s.text(3), s.optional_real(4)});
}

Confirmed read_confirmed(const db::Database& database, const std::string& device_id, int64_t run,
                         const reports::KernelFacts& k) {
  Statement s(database, R"sql(
      SELECT t.trial_id, t.opts, s.session, s.sweep, s.ns
      FROM trials t JOIN trial_samples s ON s.trial_id = t.trial_id
      WHERE t.kernel_key = ?1 AND t.device_id = ?2 AND +t.run_id = ?3 AND t.stage = 'confirm'
        AND t.status = 'ok' AND (?4 = '' OR t.mode = ?4)
      ORDER BY t.trial_id, s.session, s.sweep)sql");
  s.bind(1, k.key).bind(2, device_id).bind(3, run).bind(4, k.mode);
  Confirmed list;
  int64_t last = -1;
  while (s.step()) {
    if (s.integer(0) != last) {
      last = s.integer(0);
      std::erase_if(list, [&](const auto& e) { return e.first == s.text(1); });
      list.push_back({s.text(1), {}});
    }
    list.back().second.push_back({s.integer(2), s.integer(3), s.real(4)});
  }
  return list;
}

}  // namespace beamline::cli
