// From an instance to its tensor graph. Errors carry the position in the file: shapes that do not
// fit print both, unknown names suggest the nearest.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "engine/ir/uop.h"
#include "workloads/workload_file.h"

namespace beamline::workloads {

struct OutputSpec {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};
/// Input i of the instance is the PARAM of slot i (absent from the graph if unused).
struct TensorGraph {
  UOp sink;  // SINK over the returned values, in their order
  std::vector<OutputSpec> outputs;
};

/// Builds in the current Arena; the graph lives as long as that. All mistakes are returned.
std::variant<TensorGraph, std::vector<WorkloadError>> build(const Instance& instance);

/// The mistakes that build() finds, each once, for many instances of a file; works in an arena of
/// its own.
std::vector<WorkloadError> check(const std::vector<Instance>& instances);

/// Names that can be called, sorted.
std::vector<std::string> function_names();

}  // namespace beamline::workloads
