// ir trace: every rewrite of a kernel's lowering, as a page, on the terminal or as text.
#include <fmt/format.h>

#include <fstream>

#include "engine/ir/arena.h"
#include "engine/lower/lower.h"
#include "engine/rewrite/trace.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "harness/commands/ir_kernel.h"
#include "harness/commands/ir_trace_page.h"
#include "harness/commands/ir_trace_text.h"
#include "harness/commands/ir_trace_view.h"

#include <unistd.h>

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

ordered_json passes_json(const RecordedTrace& trace) {
  const TraceNodes nodes(trace);
  ordered_json passes = ordered_json::array();
  for (const TracedPass& p : trace.passes()) {
    ordered_json rewrites = ordered_json::array();
    for (const TracedRewrite& r : p.rewrites)
      rewrites.push_back({{"rule", r.rule},
                          {"file", r.file},
                          {"line", r.line},
                          {"before", nodes.expression(r.before)},
                          {"after", nodes.expression(r.after)},
                          {"ns", r.ns}});
    passes.push_back({{"pass", p.name}, {"nodes", p.nodes}, {"ns", p.ns}, {"rewrites", rewrites}});
  }
  return passes;
}
ordered_json counts_json(const RuleCounts& counts) {
  ordered_json rows = ordered_json::array();
  for (const auto& [rule, c] : counts.list())
    rows.push_back({{"rule", rule->name},
                    {"tried", c.tried},
                    {"matched", c.matched},
                    {"applied", c.applied},
                    {"ns", c.ns}});
  return rows;
}

void write_page(const std::string& path, const std::string& page) {
  std::ofstream out(path, std::ios::binary);
  out << page;
  out.close();
  if (!out) throw UsageError(fmt::format("--html: '{}' cannot be written", path));
}

int run(Context& context, const Arguments& arguments) {
  Arena arena;
  Arena::Scope scope(arena);
  const ChosenKernel k = choose_kernel(arguments);
  RecordedTrace trace(k.ast);
  LowerOptions options;
  options.check = k.check;
  options.trace = &trace;
  options.after_pass = [&](std::string_view pass, UOp graph, double ns) {
    trace.pass(pass, graph, ns);
  };
  const TraceScope tracing(&trace);
  const auto linear = lower(k.ast, k.opts, k.device.target, options);
  if (const auto* r = std::get_if<OptRefusal>(&linear)) refuse_opt(k.opts, *r);

  const std::string opts = opts_text(k.opts), device = k.device.identity.device_id;
  if (arguments.has("html"))
    write_page(arguments.text("html"), trace_page(trace, {k.name, k.key, opts, device}));
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"kernel_key", k.key},
                        {"name", k.name},
                        {"device_id", device},
                        {"opts", opts},
                        {"passes", passes_json(trace)},
                        {"left_out", trace.left_out()},
                        {"rules", counts_json(trace.counts())}});
  } else if (arguments.has("html")) {
    context.print(arguments.text("html") + "\n");
  } else if (arguments.has("stats")) {
    context.print(trace.counts().text());
  } else if (isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
    view_trace(trace, fmt::format("{}  {}", k.name, opts),
               wants_color(context.global.color, STDOUT_FILENO));
  } else {
    context.print(trace_text(trace));
  }
  return exit_ok;
}

}  // namespace

Command ir_trace_command() {
  std::vector<OptionSpec> options = kernel_choice_options();
  options.push_back({.name = "html",
                     .value = "PATH",
                     .help = "writes one self-contained page to step through passes and rewrites"});
  options.push_back(
      {.name = "stats", .value = "", .help = "how often each rule was tried, matched, applied"});
  return {
      .name = "ir trace",
      .arguments = "WORKLOAD...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary = "every rewrite of a kernel's lowering: page, terminal viewer or text",
      .details =
          R"(On a terminal: a viewer (n p: pass, j k: rewrite, q: quit). Into a pipe: one line a rewrite, with the rule,
its file and line, the ns it took, and the expression before and after. Without --opts the heuristic's are
used.
JSON: {"schema": 1, "kernel_key", "name", "device_id", "opts", "passes": [{"pass", "nodes", "ns",
"rewrites": [{"rule", "file", "line", "before", "after", "ns"}]}], "left_out", "rules": [{"rule", "tried",
"matched", "applied", "ns"}]}; left_out counts rewrites beyond the first 20,000.)",
      .options = options,
      .run = run};
}

}  // namespace beamline::cli
