// Workload files: TOML text to definitions, definitions to instances. Everything that does not
// depend on the values of params is checked here; what does (dims, bounds of inputs) is checked by
// expand(); shapes and types of the computation are checked by build() in builder.h. All mistakes
// found are returned.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/dtype.h"
#include "workloads/diagnostic.h"
#include "workloads/expression.h"
#include "workloads/number.h"

namespace beamline::workloads {

enum class DistKind { Uniform, Normal, Int, Ones, File };

struct ParamDef {
  std::string name;
  SourcePos at;
  std::vector<int64_t> values;
  bool is_list = false;
};
struct InputDef {
  std::string name;
  SourcePos at;       // of its key
  SourcePos type_at;  // of its dtype
  DType dtype = DType::F32;
  Program dims;
  DistKind dist = DistKind::Ones;
  SourcePos dist_at;
  Program first, second;  // bounds, or mean and deviation; empty where the kind has none
  std::string path;       // File: as written
  bool constant = false;
};
struct WorkloadDef {
  std::string file;
  std::string name;
  SourcePos at;
  std::vector<ParamDef> params;  // in file order, like the inputs
  bool zip = false;
  std::vector<InputDef> inputs;
  std::shared_ptr<const Program> program;
  double weight = 1;
  int64_t repeat = 1;
  std::vector<std::string> tags;
  std::optional<double> tolerance;
  bool relaxed = false;  // math = "relaxed"
};

struct LoadedFile {
  std::vector<WorkloadDef> workloads;  // complete only without errors
  std::vector<WorkloadError> errors;   // by position
};
/// `file` is the name used in messages and to find input files; nothing is read from disk.
LoadedFile parse_workload_file(const std::string& file, std::string_view toml);

/// How an input of an instance is filled.
struct Dist {
  DistKind kind = DistKind::Ones;
  double first = 0, second = 0;     // Uniform: [first, second); Normal: mean and deviation
  int64_t lowest = 0, highest = 0;  // Int: inclusive
  std::string path;                 // File: relative to the workload file's directory resolved
};
struct InputSpec {
  std::string name;
  SourcePos at;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  Dist dist;
  bool constant = false;
  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
};
struct Instance {
  std::string file, workload;
  std::string name;  // "gemm/M=128,N=1024", or the workload's name without params
  SourcePos at;
  Params params;
  std::vector<InputSpec> inputs;
  std::shared_ptr<const Program> program;
  double weight = 1;
  int64_t repeat = 1;
  std::vector<std::string> tags;
  std::optional<double> tolerance;
  bool relaxed = false;
  std::string
      content_hash;  // of what is computed on what: not of names, weight, repeat, tags, tolerance
};

/// `--param K=V`: replaces the values of a param the workload has.
struct ParamOverride {
  std::string name;
  std::vector<int64_t> values;
};
/// Reads "K=V" or "K=V1,V2"; the text says what is wrong.
std::variant<ParamOverride, std::string> parse_param_override(std::string_view text);

/// The instances of a definition: the product of its params' values, the last param fastest, or
/// their rows with expand = "zip". Overrides of params that it does not have are ignored.
std::vector<Instance> expand(const WorkloadDef& def, const std::vector<ParamOverride>& overrides,
                             std::vector<WorkloadError>& errors);

}  // namespace beamline::workloads
