// Runs a program's kernels: through the interpreter of linear kernels and as machine code.
#pragma once
#include <optional>
#include <string>

#include "tests/programs/program.h"

namespace beamline::fuzz {

struct RunFacts {
  size_t kernels = 0;
  size_t unproved = 0;  // accesses whose bounds are not proved by vmin and vmax
};
/// Compares both with the tensor-level evaluator. The text says what differs, or what failed on the
/// way; nothing when all agree. `heuristic` compiles with the heuristic's opts.
std::optional<std::string> disagreement(const Program& p, bool heuristic, RunFacts* run = nullptr);

}  // namespace beamline::fuzz
