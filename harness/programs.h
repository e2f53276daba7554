// From WORKLOAD arguments to programs: every instance lowered to kernels, as texts and plain
// values, so that no UOp leaves this file. A program is the context in which a kernel's inputs have
// their contents.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/target.h"
#include "workloads/selection.h"

namespace beamline {

struct ProgramBuffer {
  std::string dtype;
  int64_t elements = 0;
  std::vector<int64_t> shape;
  int input = -1;       // index of the instance's input; -1: written by a kernel
  int producer = -1;    // index of the kernel that writes it; -1: an input
  int64_t offset = -1;  // of a temporary: its place in the arena, in bytes
};

struct ProgramKernel {
  std::string key, name, ast;   // ast: prepared, in UOp text
  double flops = 0, bytes = 0;  // counted on the AST
  std::vector<int64_t> shape;   // of its (first) output
  std::string dtypes;           // by slot, outputs first: "f32 <- f32, f32"
  double rtol = 0;              // tolerance of the kernel; architecture "Tolerance of a kernel"
  std::vector<int> buffers;     // by slot: index into KernelProgram::buffers
  std::vector<bool> written;    // by slot
};

struct KernelProgram {
  workloads::Instance instance;  // of a .uop file: one without a computation
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramKernel> kernels;  // in the order in which they run
  std::vector<int> outputs;            // buffers of the results, in their order
  int64_t arena_bytes = 0;             // what the temporaries need when they share memory
};

struct KernelPrograms {
  std::vector<KernelProgram> list;
  std::vector<workloads::WorkloadError> errors;  // complete only without
};

/// Reads and lowers .toml files, directories, FILE:GLOB and .uop files.
KernelPrograms lower_workloads(const std::vector<std::string>& arguments,
                               const std::vector<workloads::ParamOverride>& overrides = {});

/// A kernel of several programs is one kernel.
struct KernelUse {
  const KernelProgram* program = nullptr;  // where it occurs first, with its data
  int kernel = 0;                          // index there
  int64_t count = 0;                       // occurrences, repeats of the instances included
  std::vector<std::string> workloads;      // instances it occurs in, in order, each once
  const ProgramKernel& get() const { return program->kernels[static_cast<size_t>(kernel)]; }
};
/// In order of first occurrence. Points into `programs`.
std::vector<KernelUse> unique_kernels(const std::vector<KernelProgram>& programs);

/// Kernels that `selector` names: an ordinal from 0, a name, or a prefix of a key.
std::vector<KernelUse> select_kernels(const std::vector<KernelUse>& kernels,
                                      const std::string& selector);

}  // namespace beamline
