// What ends a command, apart from its result.
#pragma once
#include <stdexcept>

namespace beamline::cli {

/// Bad usage or input: exit code 2. The text is the whole message, one or more lines.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum ExitCode : int {
  exit_ok = 0,
  exit_internal = 1,
  exit_usage = 2,
  exit_check_failed = 3,  // a confirmed regression, or a check
  exit_kernels_failed = 4,
  exit_interrupted = 130,
};

}  // namespace beamline::cli
