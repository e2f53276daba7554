// A database as two tuning runs leave it, made without measuring anything: kernels of a workload
// file, this machine's device, trials of every status, a confirmation and stored bests.
#pragma once
#include <string>

#include "cli_runner.h"
#include "db/store.h"

namespace beamline::test {

inline const char* const sample_workload = R"toml([[workload]]
name    = "scale"
inputs  = { x = "f32[1000]" }
compute = "return x * 2 + 1"
weight  = 3.0

[[workload]]
name    = "rows"
inputs  = { x = "f32[32, 48]" }
compute = "return sum(x, axis=1)"

[[workload]]
name    = "broken"
inputs  = { x = "f32[77]" }
compute = "return x * x"
)toml";

/// Runs 1 ("first") and 2 (a hostile label); kernel 0 is tuned in run 2, 1 in run 1 only, 2 failed.
inline void make_sample_database(const CliRunner& cli, const std::string& path) {
  const std::string file = cli.file("sample.toml", sample_workload);
  const auto kernels = cli.run({"kernels", file, "--json"}).json()["kernels"];
  const auto device = cli.run({"devices", "--json"}).json()["devices"][0];
  const std::string id = device["device_id"];
  db::Store store(path);
  store.upsert_device({.device_id = id,
                       .name = "<b>" + device["name"].get<std::string>(),
                       .backend = "cpu",
                       .arch = device["arch"],
                       .facts_json = device["facts"].dump()});
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto& j = kernels[k];
    store.upsert_kernel({.kernel_key = j["kernel_key"],
                         .name = j["name"],
                         .ast = j["ast"],
                         .shape_json = j["shape"].dump(),
                         .dtypes = j["dtypes"],
                         .flops = 2000,
                         .bytes = 8000});
    const std::string name = j["workloads"][0];
    store.upsert_workload({.workload_id = name + "@1",
                           .file = file,
                           .name = name,
                           .params_json = "{}",
                           .content_hash = "1",
                           .weight = k == 0 ? 3.0 : 1.0});
    store.upsert_kernel_use(j["kernel_key"], name + "@1", 0, 1);
  }
  for (int run = 1; run <= 2; ++run) {
    const int64_t run_id =
        store.begin_run({.label = run == 1 ? "first" : "</title><script>alert('x')</script>",
                         .command = "beamline tune \"<i>\"",
                         .device_id = id,
                         .budget = "40s",
                         .engine_version = "1",
                         .toolchain = "llvm 19",
                         .seed = 3});
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (run == 2 && k == 1) continue;
      db::TrialRow t;
      t.run_id = run_id;
      t.kernel_key = kernels[k]["kernel_key"];
      t.device_id = id;
      const bool broken = k == 2;
      for (const char* status : {"rejected", "compile_error", "launch_error", "timeout", "crashed",
                                 "wrong_result", "mistrusted"}) {
        t.opts = std::string("UPCAST:0:") + std::to_string(3 + (status[0] % 7));
        t.status = status;
        t.error = std::string(status) + " because of <img src=x onerror=alert(1)>";
        store.insert_trial(t);
      }
      if (broken) continue;
      t.status = "ok";
      t.error.clear();
      for (int i = 0; i < 30; ++i) {
        t.opts = "UPCAST:0:" + std::to_string(2 + i);
        t.time_ns = 2000.0 + 100 * i;
        t.n_samples = 2;
        store.insert_trial(t);
      }
      t.stage = "confirm";
      for (const char* opts : {"UPCAST:0:4", ""}) {
        t.opts = opts;
        t.samples.clear();
        const double level = opts[0] == 0 ? 4000 : 1000;
        for (int session = 0; session < 30; ++session)
          for (int sweep = 0; sweep < 2; ++sweep)
            t.samples.push_back({session, sweep, level + session % 5 + sweep});
        t.time_ns = level;
        t.ratio_to_incumbent = level / 4000;
        t.n_samples = 60;
        store.insert_trial(t);
      }
      db::BestRow b;
      b.kernel_key = t.kernel_key;
      b.device_id = id;
      b.opts = "UPCAST:0:4";
      b.tie_opts_json = R"(["UPCAST:0:8"])";
      b.best_ns = 1000;
      b.heuristic_ns = 1500;
      b.unoptimized_ns = 4000;
      b.gain = 1.5;
      b.ci_low = 1.45;
      b.ci_high = 1.55;
      b.gflops = 2;
      b.gbps = 8;
      b.sessions = 30;
      b.run_id = run_id;
      b.verified = true;
      b.engine_version = "1";
      b.action_set = "1";
      b.toolchain = "llvm 19";
      b.environment_id = "e";
      store.store_best(b);
    }
    store.finish_run(run_id, "finished");
  }
}

}  // namespace beamline::test
