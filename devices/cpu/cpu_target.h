// The engine's Target of this processor: vector width, registers and feature list follow from its
// model.
#pragma once
#include "devices/cpu/topology.h"
#include "engine/ir/target.h"

namespace beamline {

/// `threads`: the most that a THREAD opt may use; 0 = one per allowed PU, within the cgroup's
/// quota.
Target cpu_target(const CpuModel& model, const CpuTopology& topology, int threads = 0);

}  // namespace beamline
