// From the WORKLOAD arguments of a command to instances: a .toml file, an .onnx model (imported on
// the way), a directory (its .toml files, recursively, by name), or FILE:INSTANCE-GLOB.
#pragma once
#include <string>
#include <vector>

#include "workloads/workload_file.h"

namespace beamline::workloads {

struct Selection {
  std::vector<Instance> instances;    // in the order of arguments, file and expansion; each once;
                                      // complete only without errors
  std::vector<WorkloadError> errors;  // what cannot be read or selects nothing is here, too
};

/// True for what select() reads: a directory, a .toml or .onnx file, or one with a glob.
bool is_workload_argument(const std::string& argument);

/// Reads, expands and selects. An override of a param that no selected workload has is an error.
Selection select(const std::vector<std::string>& arguments,
                 const std::vector<ParamOverride>& overrides = {});

/// `*`, `?` and `[...]`; `*` also matches '/' and ','.
bool matches_glob(const std::string& glob, const std::string& name);

}  // namespace beamline::workloads
