// What commands share: WORKLOAD arguments, the device that --device names, kernels that --kernel
// names.
#pragma once
#include <string>
#include <vector>

#include "devices/identity.h"
#include "engine/ir/target.h"
#include "harness/cli/arguments.h"
#include "harness/compilers.h"
#include "harness/programs.h"

namespace beamline::cli {

OptionSpec param_option();
OptionSpec device_option();
OptionSpec kernel_option();
/// --tc and --allow-tf32.
std::vector<OptionSpec> tensor_core_options();
/// --no-cache and --cache-size.
std::vector<OptionSpec> cache_options();

std::vector<workloads::ParamOverride> read_params(const Arguments& arguments);
/// Throws UsageError with one line a mistake: FILE:LINE:COLUMN: ...
[[noreturn]] void refuse(const std::vector<workloads::WorkloadError>& errors);
/// Lowers the positional arguments; throws UsageError on any mistake in them.
std::vector<KernelProgram> read_programs(const Arguments& arguments);
/// The one kernel that --kernel names; without it the only one. Throws UsageError.
KernelUse one_kernel(const std::vector<KernelUse>& kernels, const std::string& selector);

/// A device that candidates can be compiled for and run on.
struct Device {
  DeviceIdentity identity;
  Target target;
  std::vector<unsigned> pus;
};
/// "cpu" (through LLVM), "cpu:c" (through C and clang), a device_id or a unique prefix of one.
/// Throws UsageError for any other.
Device find_device(const std::string& name, int threads = 0);
/// One to look at code for: also an emulated GPU, which runs nothing and has no PUs.
Device find_target(const std::string& name);

/// What those options say, for a target that has tensor cores; others stay as they are. Throws
/// UsageError.
void set_tensor_cores(const Arguments& arguments, Target& target);

/// What those options say of the cache of compiled programs. Throws UsageError.
CacheSettings read_cache(const Arguments& arguments);

/// Stable name of an instance in the database.
std::string workload_id(const workloads::Instance& instance);
/// The params as a JSON object.
std::string params_json(const workloads::Instance& instance);

}  // namespace beamline::cli
