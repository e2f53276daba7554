// Runs `beamline tune` into a scratch database and reads what it says.
#pragma once
#include <string>
#include <vector>

#include "tests/bench/goal.h"

namespace beamline::bench {

struct TunedKernel {
  std::string name, key, status, opts;
  int ok_trials = 0;
};
struct TuneRun {
  std::vector<TunedKernel> kernels;
  double wall_s = 0;  // of the command's search, start of its workers included
  double cpu_s = 0;   // of all its processes: what it got of a machine that others use too
};
/// `toml`: the workload; `pus`: processing units it may use, 0 = all; `seed`: of the search. Throws
/// std::runtime_error when the command fails.
TuneRun tune(const Settings& settings, const std::string& toml, double budget_s, int pus,
             int seed = 0);

}  // namespace beamline::bench
