// ir lower: one stage of one kernel.
#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"
#include "engine/lower/lower.h"
#include "engine/render/render_kernel.h"
#include "engine/rewrite/trace.h"
#include "harness/cli/errors.h"
#include "harness/commands/assembly.h"
#include "harness/commands/commands.h"
#include "harness/commands/ir_kernel.h"
#include "workloads/diagnostic.h"

#include <unistd.h>

namespace beamline::cli {
namespace {

// UOp text with a comment wherever a node comes from another line of the workload than the one
// before.
std::string with_origins(const std::string& text, std::span<const UOp> nodes, Provenance* table) {
  if (!table) return text;
  std::string out, last;
  size_t at = text.find('\n') + 1;  // after "uop 1"
  out = text.substr(0, at);
  for (UOp u : nodes) {
    if (const std::string& o = table->origin(u); !o.empty() && o != last)
      out += "# " + (last = o) + "\n";
    const size_t end = text.find('\n', at) + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string emit(const Context& context, const std::string& stage, const ChosenKernel& k,
                 const std::string& renderer, bool origins) {
  if (stage == "ast") return with_origins(k.ast_text, toposort(k.ast), Provenance::current());
  auto schedule = apply_opts(k.ast, k.opts, k.device.target);
  if (const auto* r = std::get_if<OptRefusal>(&schedule)) refuse_opt(k.opts, *r);
  if (stage == "axes")
    return describe_axes(std::get<KernelSchedule>(schedule),
                         !context.global.json && wants_color(context.global.color, STDOUT_FILENO));
  if (stage == "linear") {
    LowerOptions options;
    options.check = k.check;
    auto linear = lower(k.ast, k.opts, k.device.target, options);
    if (const auto* r = std::get_if<OptRefusal>(&linear)) refuse_opt(k.opts, *r);
    const std::vector<UOp>& list = std::get<LinearKernel>(linear).list;
    return with_origins(print_linear(list), list, Provenance::current());
  }
  if (stage == "trace") {
    TextTrace trace;
    LowerOptions options;
    options.check = k.check;
    options.trace = &trace;
    const TraceScope tracing(&trace);
    options.after_pass = [&](std::string_view pass, UOp graph, double ns) {
      trace.pass(pass, graph, ns);
    };
    auto linear = lower(k.ast, k.opts, k.device.target, options);
    if (const auto* r = std::get_if<OptRefusal>(&linear)) refuse_opt(k.opts, *r);
    return trace.text();
  }
  if (stage == "asm")
    return assembly_of(k.ast_text, opts_text(k.opts), target_text(k.device.target));
  auto rendered = render_kernel({.ast_text = k.ast_text,
                                 .opts_text = opts_text(k.opts),
                                 .target = k.device.target,
                                 .origins = origins ? k.origins : std::vector<std::string>{},
                                 .renderer = renderer});
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
  const bool origins = arguments.has("origins");
  if (origins && stage != "ast" && stage != "linear" && stage != "source")
    throw UsageError(
        fmt::format("--origins: for --emit ast, linear and source, not for {}", stage));
  const std::string renderer = arguments.text("renderer", "");
  if (!renderer.empty() && stage != "source")
    throw UsageError(fmt::format("--renderer: for --emit source, not for {}", stage));
  Arena arena;
  Arena::Scope scope(arena);
  Provenance provenance;
  const Provenance::Scope naming(origins ? &provenance : nullptr);
  const ChosenKernel k = choose_kernel(arguments);
  std::string text = emit(context, stage, k, renderer, origins);
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"kernel_key", k.key},
                        {"name", k.name},
                        {"device_id", k.device.identity.device_id},
                        {"opts", stage == "ast" ? "" : opts_text(k.opts)},
                        {"emit", stage},
                        {"text", text}});
  } else {
    context.print(text);
  }
  return exit_ok;
}

}  // namespace

Command ir_lower_command() {
  std::vector<OptionSpec> options = kernel_choice_options();
  options.push_back({.name = "emit",
                     .value = "STAGE",
                     .help = "ast, axes, linear, source (default), asm or trace (every rewrite)"});
  options.push_back({.name = "renderer",
                     .value = "NAME",
                     .help = "source as opencl, cuda, hip or metal, for a device with groups"});
  options.push_back(
      {.name = "origins",
       .value = "",
       .help = "comments: the workload's line that each part computes (ast, linear, source)"});
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
      .options = options,
      .run = run};
}

}  // namespace beamline::cli
