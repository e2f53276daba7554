// Faults by hand, so that users and tests can see the safety net hold: LLVM IR of an entry
// `planted`.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace beamline {

/// wrong, crash, hang.
const std::vector<std::string>& plant_names();
/// Nothing for an unknown name.
std::optional<std::string> planted_source(const std::string& name);

}  // namespace beamline
