// The common sampling primitive: one session. In each sweep every contestant runs once, in random
// order, with one untimed call (warm) or a flush of the buffers (cold) before each timed one. All
// contestants share the buffers. Nothing here decides anything; it only refuses times that are
// none.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "devices/cpu/launcher.h"
#include "devices/cpu/timer.h"

namespace beamline {

struct Contestant {
  KernelFn kernel = nullptr;
  int threads = 1;
  void* const* buffers = nullptr;  // its own; null: those of the session
};

struct SessionPlan {
  int sweeps = 10;
  bool cold = false;
  double min_batch_ns = 20'000;  // a sample lasts at least this long
  double kill_above_ns = 0;  // a contestant whose best is above this is sampled no more; 0 = never
  int kill_after = 2;        // samples before that may happen
  double floor_ns = 0;       // a time per call below this is no time (the roofline's floor)
  uint64_t seed = 0;         // of the orders
};

struct ContestantSamples {
  std::vector<double> ns;      // per call, one per sweep; the i-th is of sweep i
  std::vector<int> positions;  // in the order of its sweep
  int calls_per_sample = 1;    // of the last sample
  bool killed = false;
  std::string refused;  // why there are no times, e.g. below the resolution
};

struct SessionResult {
  std::vector<ContestantSamples> contestants;
  double canary_before_ns = 0, canary_after_ns = 0;  // 10k dependent multiply-adds
  double wall_ns = 0, cpu_ns = 0;
  int64_t voluntary_switches = 0, involuntary_switches = 0;
  int64_t minor_faults = 0, major_faults = 0;
};

/// Memory to flush before each cold call: (address, bytes).
using Spans = std::vector<std::pair<const void*, size_t>>;

SessionResult run_session(const Timer& timer, Launcher& launcher,
                          const std::vector<Contestant>& contestants, void* const* buffers,
                          const Spans& spans, const SessionPlan& plan);

}  // namespace beamline
