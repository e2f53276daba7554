// Runs a whole program: its kernels one after the other, compiled with the opts given, in one
// runner process; what a kernel writes is what the next one reads.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/process_pool.h"
#include "harness/programs.h"

namespace beamline {

struct ExecuteOptions {
  std::string target;  // target_text
  std::vector<unsigned> pus;
  double timeout_s = 100;  // of compiling, and of running, one kernel
};

struct Execution {
  struct Failure {
    int kernel = 0;
    std::string status;  // as of a trial: rejected, compile_error, crashed, ...
    std::string error;
  };
  std::optional<Failure> failure;  // the first; the kernels after it did not run
  std::vector<std::string> opts;   // by kernel, as the compiler prints them
  // By program buffer: inputs and results; complete without a failure. Temporaries lie in an arena
  // that ends with the run.
  std::vector<std::vector<std::byte>> buffers;
};

/// `opts` by kernel; `inputs` by input of the instance, each of its full size.
Execution execute(const KernelProgram& program, const std::vector<std::string>& opts,
                  const std::vector<std::vector<std::byte>>& inputs, Pool& compilers,
                  const ExecuteOptions& options);

}  // namespace beamline
