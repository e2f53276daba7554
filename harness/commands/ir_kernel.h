// The kernel that an `ir` command is about: chosen from workloads, with its opts and its device.
#pragma once
#include <string>
#include <vector>

#include "engine/ir/uop.h"
#include "engine/opt/schedule.h"
#include "harness/cli/workload_args.h"

namespace beamline::cli {

struct ChosenKernel {
  std::string key, name, ast_text;
  UOp ast;  // in the arena that was current
  Opts opts;
  Device device;
  int check = 1;                     // the verifier's level
  std::vector<std::string> origins;  // by node of `ast`, as its text has them: "12 softmax"
};

/// Reads WORKLOAD... and the options below; throws UsageError. Without --opts: the heuristic's. A
/// current Provenance learns where the nodes come from.
ChosenKernel choose_kernel(const Arguments& arguments);
std::vector<OptionSpec> kernel_choice_options();

/// An opt the kernel or its device does not allow.
[[noreturn]] void refuse_opt(const Opts& opts, const OptRefusal& refusal);

}  // namespace beamline::cli
