// From an ONNX model to a workload file: one workload whose compute text has about one line a node.
// Shape arithmetic is done here, over names of dims; a named dim is a param, 1 unless told
// otherwise. Initialisers become constant inputs that are read from the model, or generated ones of
// the same range. What the operators mean is that of ONNX, opsets 7 to 17.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "workloads/workload_file.h"

namespace beamline::onnx {

struct ImportOptions {
  std::string name;        // of the workload; "" makes one of the file's name
  std::string reference;   // the model's path as the workload file is to name it; "" = as given
  bool generated = false;  // initialisers get numbers of their range instead of their data
  std::vector<workloads::ParamOverride> params;  // values of params; unknown names are mistakes
};

/// The text of a workload file that builds, or all that stands in the way; the field of a mistake
/// names the node.
std::variant<std::string, std::vector<workloads::WorkloadError>> import_model(
    const std::string& path, const ImportOptions& options = {});

/// Operators that import_model() knows, sorted.
std::vector<std::string> operator_names();

}  // namespace beamline::onnx
