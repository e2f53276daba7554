// Runs a program's kernels: through the interpreter of linear kernels and as machine code.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/programs/opts.h"
#include "tests/programs/program.h"

namespace beamline::fuzz {

struct RunFacts {
  size_t kernels = 0;
  size_t unproved = 0;  // accesses whose bounds are not proved by vmin and vmax
  Coverage* coverage = nullptr;
};
/// Which opts the kernels get, and where they run: as machine code, or emulated.
struct Plan {
  enum class Kind : uint8_t { Unoptimised, Heuristic, Random, Listed };
  Kind kind = Kind::Unoptimised;
  Target target{};
  uint64_t seed = 0;                  // of Random
  std::vector<std::string> listed{};  // of Listed: one text a kernel
  std::string renderer{};             // not empty: emulated kernels also as its text
  bool fused = false;                 // pairs of kernels are one, where they can be
  bool variables = false;             // a factor of each kernel's index math is an argument
  bool on_device = false;             // that text by the system's OpenCL
  std::string describe() const;
};
/// Compares with the tensor-level evaluator; machine code's kernels also without opts through the
/// interpreter. The text says what differs, or what failed on the way; nothing when all agree.
std::optional<std::string> disagreement(const Program& p, const Plan& plan,
                                        RunFacts* run = nullptr);

/// Lowers a program's kernels, and counts what that took.
void cover(const Program& p, const Plan& plan, Coverage& coverage);
/// The opts that a plan gives the kernels of a program, as Listed has them.
std::vector<std::string> opts_of(const Program& p, const Plan& plan);
/// The kernels of a program, as text, each with its opts.
std::vector<std::pair<std::string, std::string>> kernels_of(const Program& p, const Plan& plan);
/// For a program that fails under a plan: the smallest found that does in the same way, with its
/// opts, as text.
std::string shrunk(const Program& p, const Plan& plan);

}  // namespace beamline::fuzz
