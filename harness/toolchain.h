// The compiler behind beamline-compile, as it names itself.
#pragma once
#include <string>

#include "engine/ir/target.h"

namespace beamline {

struct Toolchain {
  std::string name;   // "llvm 19.1.7", "clang 19.1.7"; empty: there is none
  std::string error;  // why there is none
};

/// Starts a helper and asks it. A helper that does not work is an error here, too; throws
/// std::runtime_error only when none can be started.
Toolchain ask_toolchain(const Target& target);

}  // namespace beamline
