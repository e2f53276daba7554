// ir lower: one stage of one kernel.
#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/render/render_kernel.h"
#include "engine/rewrite/trace.h"
#include "engine/rules/verify.h"
#include "harness/cli/errors.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/assembly.h"
#include "harness/commands/commands.h"
#include "workloads/diagnostic.h"

#include <unistd.h>

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

[[noreturn]] void refuse_opt(const Opts& opts, const OptRefusal& refusal) {
  std::string which = refusal.index < opts.size() ? opts_text({opts[refusal.index]}) : "";
  throw UsageError(
      fmt::format("--opts, opt {} ({}): {}", refusal.index + 1, which, refusal.reason));
}

std::string emit(const Context& context, const std::string& stage, UOp ast,
                 const std::string& ast_text, const Opts& opts, const Device& device, int check) {
  if (stage == "ast") return ast_text;
  auto schedule = apply_opts(ast, opts, device.target);
  if (const auto* r = std::get_if<OptRefusal>(&schedule)) refuse_opt(opts, *r);
  if (stage == "axes")
    return describe_axes(std::get<KernelSchedule>(schedule),
                         !context.global.json && wants_color(context.global.color, STDOUT_FILENO));
  if (stage == "linear") {
    LowerOptions options;
    options.check = check;
    auto linear = lower(ast, opts, device.target, options);
    if (const auto* r = std::get_if<OptRefusal>(&linear)) refuse_opt(opts, *r);
    return print_linear(std::get<LinearKernel>(linear).list);
  }
  if (stage == "trace") {
    TextTrace trace;
    LowerOptions options;
    options.check = check;
    options.trace = &trace;
    options.after_pass = [&](std::string_view pass, UOp graph, double ns) {
      trace.pass(pass, graph, ns);
    };
    auto linear = lower(ast, opts, device.target, options);
    if (const auto* r = std::get_if<OptRefusal>(&linear)) refuse_opt(opts, *r);
    return trace.text();
  }
  if (stage == "asm") return assembly_of(ast_text, opts_text(opts), target_text(device.target));
  auto rendered =
      render_kernel({.ast_text = ast_text, .opts_text = opts_text(opts), .target = device.target});
  if (const auto* r = std::get_if<Refusal>(&rendered))
    throw UsageError(fmt::format("{}: {}", r->stage, r->reason));
  return std::get<RenderedKernel>(rendered).source;
}

int run(Context& context, const Arguments& arguments) {
  const std::vector<std::string> stages = {"ast", "axes", "linear", "source", "asm", "trace"};
  std::string stage = arguments.text("emit", "source");
  if (std::ranges::find(stages, stage) == stages.end())
    throw UsageError(fmt::format("--emit: '{}' is no stage{}; stages are {}", stage,
                                 workloads::did_you_mean(stage, stages),
                                 workloads::one_of(stages)));
  Device device = find_device(arguments.text("device", "cpu"));
  std::vector<KernelProgram> programs = read_programs(arguments);
  std::vector<KernelUse> kernels = unique_kernels(programs);
  KernelUse kernel = one_kernel(kernels, arguments.text("kernel"));

  Arena arena;
  Arena::Scope scope(arena);
  UOp ast = std::get<UOp>(parse_uops(kernel.get().ast));
  Opts opts = arguments.has("opts")
                  ? read_opts(opts_argument(kernels, kernel, arguments.text("opts")))
                  : cpu_heuristic(ast, device.target);
  int check = static_cast<int>(arguments.integer("check", 1, 0, 2));
  if (auto error = verify(ast, Stage::Kernel, check))
    throw UsageError(fmt::format("kernel {}: {}", kernel.get().name, *error));
  std::string text = emit(context, stage, ast, kernel.get().ast, opts, device, check);
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"kernel_key", kernel.get().key},
                        {"name", kernel.get().name},
                        {"device_id", device.identity.device_id},
                        {"opts", stage == "ast" ? "" : opts_text(opts)},
                        {"emit", stage},
                        {"text", text}});
  } else {
    context.print(text);
  }
  return exit_ok;
}

}  // namespace

Command ir_lower_command() {
  return {
      .name = "ir lower",
      .arguments = "WORKLOAD...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary = "prints one stage of a kernel: ast, axes, linear, source, asm or trace",
      .details =
          R"(Without --opts the heuristic's are used. An opt is NAME:axis:arg; several are joined with ';'. An axis is an
index into the list that '--emit axes' prints, at the moment the opt is applied (UNROLL and GROUP count
reduce axes only). An illegal opt is refused with its position and the reason, exit code 2.
JSON: {"schema": 1, "kernel_key", "name", "device_id", "opts", "emit", "text"})",
      .options = {kernel_option(),
                  device_option(),
                  param_option(),
                  {.name = "opts",
                   .value = "OPTS",
                   .help = "schedule; \"\" is the unoptimised kernel; also KERNEL=OPTS"},
                  {.name = "emit",
                   .value = "STAGE",
                   .help = "ast, axes, linear, source (default), asm or trace (every rewrite)"},
                  {.name = "check",
                   .value = "LEVEL",
                   .help = "verifier: 0 off, 1 structure (default), 2 also bounds of accesses"}},
      .run = run};
}

}  // namespace beamline::cli
