// Who a device is. `device_id` is stable across reboots and upgrades: a hash of what is fixed for
// performance. What can change under a device (kernel, governor, ...) is in devices/environment.h.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "devices/cpu/topology.h"

namespace beamline {

struct DeviceIdentity {
  std::string device_id;  // "cpu-" and 16 hex digits
  std::string name;       // for people: "AMD EPYC 7763"
  std::string backend;    // "cpu", "cpu:c"
  std::string arch;       // devices with equal arch may serve each other's opts as a fallback
  nlohmann::json facts;   // all facts, those of the id under "fixed"
};

/// `threads` is the run's thread limit (it decides what a THREAD opt can gain, so it is in the id).
/// A pure function of its arguments.
DeviceIdentity identify_cpu(const std::string& backend, const CpuModel& model,
                            const CpuTopology& topology, int threads);

/// The text that is hashed: one "name=value" line per fixed fact, in a fixed order.
std::string identity_text(const std::string& backend, const CpuModel& model,
                          const CpuTopology& topology, int threads);

}  // namespace beamline
