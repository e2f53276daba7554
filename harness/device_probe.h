// Measures the device itself: what it can do at most, and how well two equal programs can be told
// apart on it. Programs are compiled by beamline-compile and timed by beamline-runner, pinned as
// candidates are. Throws std::runtime_error when a helper fails.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/ir/target.h"
#include "harness/device_peaks.h"

namespace beamline {

struct ProbeSettings {
  Target target;
  std::vector<unsigned> pus;
  int64_t largest_footprint = int64_t{256} << 20;
  int sessions = 3, sweeps = 10;                     // of each program
  std::function<void(const std::string&)> progress;  // may be empty
  std::function<bool()> stop_requested;              // may be empty
};

/// Footprints are 16 KiB and four times more each, up to the largest. Nothing when stopped.
std::optional<DevicePeaks> probe_peaks(const ProbeSettings& settings);

/// ln(second / first) of one program against itself, one a session: a chain of multiply-adds, or a
/// stream over main memory. Sessions are spread over `passes` fresh processes.
struct SelfComparison {
  std::vector<double> compute, memory;
  std::string timer;
  double timer_overhead_ns = 0;
};
SelfComparison compare_with_self(const ProbeSettings& settings, int sessions, int processes);

}  // namespace beamline
