// What can change under a device between two runs: recorded with every row, part of no identity.
#pragma once
#include <nlohmann/json.hpp>

namespace beamline {

/// Facts of this moment: kernel, microcode, governor, boost, SMT, huge page policy, clock source,
/// hypervisor, ASLR, mitigations. What cannot be read is null, with its reason under "unreadable".
nlohmann::json read_environment();

/// Load of this moment: {"loadavg": [1, 5, 15 minutes], "steal_ticks": n or null}.
nlohmann::json read_load();

}  // namespace beamline
