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
  // Lines of the workload's file that it computes, and what they do, in order: "12 softmax".
  std::vector<std::string> origins;
  std::vector<std::string>
      node_origins;  // one of these, or none, by line of `ast` (after the first)
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

/// What instances were lowered to, by the hash of their tensor graph (and their math): one that is
/// unchanged but for its name, weight or inputs' contents is not lowered again. Not thread safe.
class LoweringCache {
 public:
  struct Lowered {
    std::vector<ProgramBuffer> buffers;
    std::vector<ProgramKernel> kernels;
    std::vector<int> outputs;
    int64_t arena_bytes = 0;
    std::string from;  // the workload whose lines the kernels' origins name
  };
  const Lowered* find(const std::string& hash);  // null: not there
  const Lowered& add(const std::string& hash, Lowered lowered);
  size_t hits() const { return hits_; }
  size_t size() const { return by_hash_.size(); }

 private:
  std::map<std::string, Lowered> by_hash_;
  size_t hits_ = 0;
};

/// Reads and lowers .toml and .onnx files, directories, FILE:GLOB and .uop files.
KernelPrograms lower_workloads(const std::vector<std::string>& arguments,
                               const std::vector<workloads::ParamOverride>& overrides = {},
                               LoweringCache* cache = nullptr);

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
