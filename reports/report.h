// What a report says about one or two runs on a device, as plain values: commands gather it from a
// database, the writers (html.h, writers.h) format it. Times are ns; what is not known is absent.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/stats/verdict.h"

namespace beamline::reports {

struct RunFacts {
  int64_t run_id = 0;
  std::string label, command, status, started_at, ended_at, budget, engine_version, toolchain, host;
  int64_t seed = 0;
  std::optional<double> wall_s;
};

struct DeviceFacts {
  std::string device_id, name, backend, arch;
  std::optional<double> peak_gflops, peak_gbps;
  std::vector<std::pair<std::string, std::string>> environment;  // as it is when the report is made
};

/// One trial; a kernel lists its trials in the order in which they happened.
struct Candidate {
  int64_t run_id = 0;
  std::string opts, status, stage, error;
  std::optional<double> time_ns;
};

/// Trials that failed in the same way.
struct Failure {
  std::string status, error, opts;  // opts: of the first
  int64_t count = 0;
};

/// The winner against another contestant of its confirmation, from paired sessions.
struct Duel {
  std::string opts, role;          // role: heuristic, unoptimised, "" = another
  stats::Verdict verdict;          // ratio = winner / this one
  std::vector<double> log_ratios;  // by session
};

struct Axis {
  int64_t size = 0;
  std::string type;  // LOOP, THREAD, UPCAST, REDUCE, UNROLL, ...
};

/// Made anew from AST and opts: sources are not stored.
struct CodeView {
  std::string ir, assembly;
  std::string note;  // how it relates to the code that was measured, or why there is none
};

struct KernelFacts {
  std::string key, name, shape, dtypes;
  double flops = 0, bytes = 0;
  std::vector<std::string> workloads;  // instances it occurs in
  std::string status;                  // tuned, cached, failed, untuned
  std::string opts, mode, numerics, stale_reason, tuned_at, engine_version, toolchain;
  int64_t run_id = 0, sessions = 0;
  bool verified = false, pinned = false, stale = false;
  std::optional<double> best_ns, heuristic_ns, unoptimized_ns, gain, ci_low, ci_high;
  std::optional<double> gflops, gbps, bound_share;
  std::vector<std::string> ties;
  std::vector<Candidate> candidates;
  std::vector<Duel> duels;
  std::vector<Axis> axes;
  CodeView code;

  /// Two runs: the winner of the earlier one and its gain over its heuristic.
  std::optional<std::string> earlier_opts;
  std::optional<double> earlier_ns, earlier_gain;

  std::optional<double> over_heuristic() const;  // speed-ups; > 1: the winner is faster
  std::optional<double> over_unoptimized() const;
  std::map<std::string, int64_t> status_counts() const;
  std::vector<Failure> failures() const;  // most frequent first
};

/// A workload instance: its kernels in a row, as often as they occur.
struct WorkloadFacts {
  std::string name;
  double weight = 1;
  int64_t kernels = 0, missing = 0;               // missing: kernels without a stored best
  std::optional<double> best_ns, over_heuristic;  // absent while a kernel is missing
};

struct Report {
  std::string generated_at, beamline_version, database;
  DeviceFacts device;
  std::vector<RunFacts> runs;  // one, or two: the earlier first; the last one is reported
  std::vector<KernelFacts> kernels;
  std::vector<WorkloadFacts> workloads;

  std::map<std::string, int64_t> kernel_counts() const;  // by status
  std::map<std::string, int64_t> trial_counts() const;   // by status, of all kernels
  /// Geometric means over the kernels that have the number; absent where none has.
  std::optional<double> mean_over_heuristic() const;
  std::optional<double> mean_over_unoptimized() const;
  /// Speed-up of the user's model: weights are the shares of its run time with the heuristic.
  std::optional<double> weighted_over_heuristic() const;
};

/// "(none)" for the unoptimised kernel.
std::string opts_or_none(const std::string& opts);
/// "1.23x [1.20, 1.26]", without the interval where there is none.
std::string gain_text(std::optional<double> gain, std::optional<double> low,
                      std::optional<double> high);

}  // namespace beamline::reports
