#include "harness/commands/ir_kernel.h"

#include <fmt/format.h>

#include "engine/ir/print.h"
#include "engine/ir/provenance.h"
#include "engine/opt/heuristic.h"
#include "engine/rules/verify.h"
#include "harness/cli/errors.h"

namespace beamline::cli {
namespace {

// --opts is OPTS, or KERNEL=OPTS where KERNEL names the kernel in question.
std::string opts_argument(const std::vector<KernelUse>& kernels, const KernelUse& kernel,
                          const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) return text;
  std::string name = text.substr(0, equals);
  KernelUse named = one_kernel(kernels, name);
  if (named.get().key != kernel.get().key)
    throw UsageError(fmt::format("--opts: '{}' is not the kernel that --kernel names", name));
  return text.substr(equals + 1);
}

Opts read_opts(const std::string& text) {
  auto parsed = parse_opts(text);
  if (const auto* e = std::get_if<OptError>(&parsed))
    throw UsageError(fmt::format("--opts, column {}: {}", e->position, e->message));
  return std::get<Opts>(std::move(parsed));
}

}  // namespace

void refuse_opt(const Opts& opts, const OptRefusal& refusal) {
  std::string which = refusal.index < opts.size() ? opts_text({opts[refusal.index]}) : "";
  throw UsageError(
      fmt::format("--opts, opt {} ({}): {}", refusal.index + 1, which, refusal.reason));
}

ChosenKernel choose_kernel(const Arguments& arguments) {
  ChosenKernel k;
  k.device = find_target(arguments.text("device", "cpu"));
  set_tensor_cores(arguments, k.device.target);
  std::vector<KernelProgram> programs = read_programs(arguments);
  std::vector<KernelUse> kernels = unique_kernels(programs);
  KernelUse kernel = one_kernel(kernels, arguments.text("kernel"));
  k.key = kernel.get().key, k.name = kernel.get().name, k.ast_text = kernel.get().ast;
  k.ast = std::get<UOp>(parse_uops(k.ast_text));
  k.origins = kernel.get().node_origins;
  if (Provenance* table = Provenance::current()) table->restore(k.ast, k.origins);
  k.opts = arguments.has("opts") ? read_opts(opts_argument(kernels, kernel, arguments.text("opts")))
                                 : heuristic(k.ast, k.device.target);
  k.check = static_cast<int>(arguments.integer("check", 1, 0, 2));
  if (auto error = verify(k.ast, Stage::Kernel, k.check))
    throw UsageError(fmt::format("kernel {}: {}", k.name, *error));
  return k;
}

std::vector<OptionSpec> kernel_choice_options() {
  return {kernel_option(),
          device_option(),
          param_option(),
          tensor_core_options()[0],
          tensor_core_options()[1],
          {.name = "opts",
           .value = "OPTS",
           .help = "schedule; \"\" is the unoptimised kernel; also KERNEL=OPTS"},
          {.name = "check",
           .value = "LEVEL",
           .help = "verifier: 0 off, 1 structure (default), 2 also bounds of accesses"}};
}

}  // namespace beamline::cli
