#include "harness/cli/workload_args.h"

#include <fmt/format.h>

#include <charconv>

#include <nlohmann/json.hpp>

#include "devices/cpu/cpu_target.h"
#include "devices/cpu/topology.h"
#include "engine/ir/tensor_core.h"
#include "harness/cli/errors.h"
#include "workloads/diagnostic.h"

namespace beamline::cli {

OptionSpec param_option() {
  return {.name = "param",
          .value = "K=V",
          .help = "replaces the values of a param; V may be a list: 1,2",
          .repeatable = true};
}
OptionSpec device_option() {
  return {.name = "device",
          .value = "D",
          .help = "a name, a device_id or its unique prefix; default cpu"};
}
OptionSpec kernel_option() {
  return {.name = "kernel", .value = "N", .help = "ordinal from 0, name, or prefix of a key"};
}

std::vector<OptionSpec> tensor_core_options() {
  return {{.name = "tc",
           .value = "USE",
           .help = "tensor cores, where a device has any: on (default), off, or shape (the loops "
                   "are split for them, the products are not theirs)"},
          {.name = "allow-tf32",
           .value = "",
           .help = "tensor cores may round f32 factors to 10 bits of mantissa"}};
}
void set_tensor_cores(const Arguments& arguments, Target& target) {
  const std::string text = arguments.text("tc", "on");
  const auto use = tensor_core_use(text);
  if (!use) throw UsageError(fmt::format("--tc: '{}' is none of off, on, shape", text));
  const auto cores = tensor_cores(target);
  if (cores.empty()) return;
  target.tensor_cores = *use;
  target.allow_tf32 = arguments.has("allow-tf32") &&
                      std::ranges::any_of(cores, [](const TensorCore* t) { return t->tf32; });
}

std::vector<OptionSpec> cache_options() {
  return {{.name = "no-cache", .value = "", .help = "compiles everything, keeps nothing of it"},
          {.name = "cache-size",
           .value = "SIZE",
           .help = "most that compiled programs may take on disk ($BEAMLINE_CACHE, else "
                   "~/.cache/beamline/programs), such as 64M or 2G; default 512M"}};
}
CacheSettings read_cache(const Arguments& arguments) {
  if (arguments.has("no-cache")) {
    if (arguments.has("cache-size"))
      throw UsageError("--no-cache and --cache-size exclude each other");
    return {};
  }
  CacheSettings s{default_cache_folder(), default_cache_bytes};
  if (!arguments.has("cache-size")) return s;
  const std::string text = arguments.text("cache-size");
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string unit(end, text.data() + text.size());
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (error != std::errc() || shift < 0 || n == 0 || n > (uint64_t{1} << 20))
    throw UsageError(fmt::format("--cache-size: '{}' is not a size such as 64M or 2G", text));
  s.bytes = n << shift;
  return s;
}

std::vector<workloads::ParamOverride> read_params(const Arguments& arguments) {
  std::vector<workloads::ParamOverride> overrides;
  for (const std::string& text : arguments.list("param")) {
    auto parsed = workloads::parse_param_override(text);
    if (const auto* why = std::get_if<std::string>(&parsed))
      throw UsageError(fmt::format("--param {}: {}", text, *why));
    overrides.push_back(std::get<workloads::ParamOverride>(std::move(parsed)));
  }
  return overrides;
}

void refuse(const std::vector<workloads::WorkloadError>& errors) {
  std::string text;
  for (const workloads::WorkloadError& e : errors)
    text += (text.empty() ? "" : "\n") + workloads::to_string(e);
  throw UsageError(text);
}

std::vector<KernelProgram> read_programs(const Arguments& arguments) {
  KernelPrograms programs = lower_workloads(arguments.positionals(), read_params(arguments));
  if (!programs.errors.empty()) refuse(programs.errors);
  return std::move(programs.list);
}

KernelUse one_kernel(const std::vector<KernelUse>& kernels, const std::string& selector) {
  auto listing = [](const std::vector<KernelUse>& list) {
    std::string text;
    for (size_t i = 0; i < list.size() && i < 10; ++i)
      text += fmt::format("\n  {}  {}  ({})", list[i].get().key.substr(0, 12), list[i].get().name,
                          list[i].workloads.empty() ? "" : list[i].workloads[0]);
    return list.size() > 10 ? text + fmt::format("\n  ... {} in all", list.size()) : text;
  };
  if (selector.empty()) {
    if (kernels.size() == 1) return kernels[0];
    throw UsageError(fmt::format("--kernel is needed: there are {} kernels{}", kernels.size(),
                                 listing(kernels)));
  }
  std::vector<KernelUse> found = select_kernels(kernels, selector);
  if (found.empty())
    throw UsageError(
        fmt::format("--kernel: no kernel is called '{}'{}", selector, listing(kernels)));
  if (found.size() > 1)
    throw UsageError(
        fmt::format("--kernel: '{}' names {} kernels{}", selector, found.size(), listing(found)));
  return found[0];
}

Device find_target(const std::string& name) {
  auto target = emulated_target(name);
  if (!target && name.starts_with("emulator")) {
    const std::vector<std::string_view> names = emulated_targets();
    throw UsageError(fmt::format("--device: '{}' is none of {}", name,
                                 workloads::one_of({names.begin(), names.end()})));
  }
  if (!target) return find_device(name);
  Device d;
  d.target = *target;
  d.identity.device_id = d.identity.name = d.identity.backend = name;
  return d;
}

Device find_device(const std::string& name, int threads) {
  if (name.starts_with("emulator"))
    throw UsageError(fmt::format(
        "--device: {} only shows what a kernel computes; there is nothing to time", name));
  CpuTopology topology = read_topology();
  CpuModel model = read_cpu_model();
  Device d;
  d.target = cpu_target(model, topology, threads);
  d.target.name = name.starts_with("cpu:c") || name.starts_with("cpu_c") ? "cpu:c" : "cpu";
  d.identity = identify_cpu(d.target.name, model, topology, d.target.threads);
  d.pus = topology.pus;
  if (static_cast<size_t>(d.target.threads) < d.pus.size())
    d.pus.resize(static_cast<size_t>(d.target.threads));
  bool prefix = name.size() > 4 && d.identity.device_id.starts_with(name);
  if (name == d.target.name || prefix) return d;
  auto id = [&](const char* backend) {
    return identify_cpu(backend, model, topology, d.target.threads).device_id;
  };
  throw UsageError(fmt::format("--device: '{}' is not available; usable here: cpu ({}), cpu:c ({})",
                               name, id("cpu"), id("cpu:c")));
}

std::string workload_id(const workloads::Instance& instance) {
  return instance.name + "@" + instance.content_hash.substr(0, 16);
}

std::string params_json(const workloads::Instance& instance) {
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  for (const auto& [name, value] : instance.params) params[name] = value;
  return params.dump();
}

}  // namespace beamline::cli
