// A report with everything in it, and names that try to break out of a document.
#pragma once
#include <cmath>
#include <string>

#include "reports/report.h"

namespace beamline::reports {

inline const std::string hostile =
    "</script><script>alert(\"x\")</script> 'q' & | [l](javascript:x)";

inline KernelFacts tuned_kernel() {
  KernelFacts k;
  k.key = "aa11";
  k.name = "r_512";
  k.shape = "512 x 512";
  k.dtypes = "f32 <- f32, f32";
  k.flops = 2e6;
  k.bytes = 4096;
  k.workloads = {"matmul/M=512", hostile};
  k.status = "tuned";
  k.opts = "UPCAST:0:4";
  k.mode = "warm";
  k.numerics = "default";
  k.tuned_at = "2026-01-02T03:04:05Z";
  k.engine_version = "1";
  k.toolchain = "llvm 19";
  k.run_id = 7;
  k.sessions = 20;
  k.verified = true;
  k.best_ns = 1000, k.heuristic_ns = 1500, k.unoptimized_ns = 4000;
  k.gain = 1.5, k.ci_low = 1.45, k.ci_high = 1.55;
  k.gflops = 2000, k.gbps = 4.096, k.bound_share = 0.8;
  k.ties = {"UPCAST:0:8"};
  k.candidates = {{7, "", "ok", "search", "", 4000},
                  {7, "UPCAST:0:4", "ok", "search", "", 1010},
                  {7, "UPCAST:0:8", "ok", "select", "", 1005},
                  {7, "UPCAST:0:3", "rejected", "search", "duplicate code", {}},
                  {7, "UNROLL:0:4", "wrong_result", "search", hostile, {}},
                  {7, "UPCAST:0:4", "ok", "confirm", "", 1000}};
  Duel d{.opts = "", .role = "unoptimised", .verdict = {}, .log_ratios = {}};
  d.log_ratios.assign(25, std::log(0.25));
  d.verdict = stats::decide(d.log_ratios);
  k.duels = {d};
  k.axes = {{512, "LOOP"}, {4, "UPCAST"}, {512, "REDUCE"}};
  k.code = {"define void @k() {\n  ret void ; <x>\n}\n", "k:\n  ret\n", "Made anew."};
  return k;
}

inline Report sample_report() {
  Report r;
  r.generated_at = "2026-01-02T03:05:00Z";
  r.beamline_version = "0.1.0";
  r.database = "/data/" + hostile;
  r.device = {.device_id = "cpu-1",
              .name = hostile,
              .backend = "cpu",
              .arch = "x86_64",
              .peak_gflops = 100.0,
              .peak_gbps = 20.0,
              .environment = {{"governor", "performance"}}};
  r.runs = {{.run_id = 7,
             .label = hostile,
             .command = "beamline tune " + hostile,
             .status = "finished",
             .started_at = "2026-01-02T03:04:00Z",
             .ended_at = "2026-01-02T03:04:40Z",
             .budget = "40s",
             .engine_version = "1",
             .toolchain = "llvm 19",
             .host = "h",
             .seed = 3,
             .wall_s = 40}};
  KernelFacts failed;
  failed.key = "bb22";
  failed.name = "e_7";
  failed.workloads = {"scale/N=7"};
  failed.status = "failed";
  failed.candidates = {{7, "", "crashed", "search", "signal 11", {}},
                       {7, "UPCAST:0:7", "crashed", "search", "signal 11", {}}};
  KernelFacts untried;
  untried.key = "cc33";
  untried.name = "e_9";
  untried.status = "untuned";
  r.kernels = {tuned_kernel(), failed, untried};
  r.workloads = {
      {.name = "matmul/M=512", .weight = 2, .kernels = 1, .best_ns = 1000, .over_heuristic = 1.5},
      {.name = hostile,
       .weight = 1,
       .kernels = 2,
       .missing = 1,
       .best_ns = {},
       .over_heuristic = {}}};
  return r;
}

}  // namespace beamline::reports
