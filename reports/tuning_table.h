// The table that a tuning run ends with.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace beamline::reports {

struct TuningRow {
  std::string kernel;    // its name
  std::string workload;  // first instance it occurs in, and how many more
  std::string status;    // tuned, cached, failed, interrupted
  std::string opts;
  std::string note;  // why it failed, what limits the number
  std::optional<double> best_ns = {}, heuristic_ns = {}, unoptimized_ns = {};
  std::optional<double> gflops = {}, gbps = {}, bound_share = {};
};

std::string tuning_table(const std::vector<TuningRow>& rows);

}  // namespace beamline::reports
