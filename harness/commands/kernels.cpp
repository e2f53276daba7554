// kernels WORKLOAD...
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

// "12 @, +, 13 relu": a line's number once; cut where the column would get wide.
std::string lines_text(const std::vector<std::string>& origins) {
  constexpr size_t widest = 40;
  std::string text, line;
  for (const std::string& o : origins) {
    const size_t space = o.find(' ');
    const bool same = !text.empty() && line == o.substr(0, space);
    const std::string next = (text.empty() ? "" : ", ") + (same ? o.substr(space + 1) : o);
    if (text.size() + next.size() > widest) return text + ", ...";
    line = o.substr(0, space);
    text += next;
  }
  return text;
}

int run(Context& context, const Arguments& arguments) {
  std::vector<KernelProgram> programs = read_programs(arguments);
  std::vector<KernelUse> kernels = unique_kernels(programs);
  if (context.global.json) {
    ordered_json rows = ordered_json::array();
    for (const KernelUse& use : kernels) {
      const ProgramKernel& k = use.get();
      rows.push_back({{"kernel_key", k.key},
                      {"name", k.name},
                      {"ast", k.ast},
                      {"flops", k.flops},
                      {"bytes", k.bytes},
                      {"shape", k.shape},
                      {"dtypes", k.dtypes},
                      {"count", use.count},
                      {"workloads", use.workloads},
                      {"lines", k.origins}});
    }
    context.print_json({{"schema", 1}, {"kernels", rows}});
    return 0;
  }
  using Align = reports::TextTable::Align;
  reports::TextTable table({{"#", Align::Right},
                            {"key"},
                            {"name"},
                            {"shape"},
                            {"dtypes"},
                            {"GFLOP", Align::Right},
                            {"bytes", Align::Right},
                            {"count", Align::Right},
                            {"workload"},
                            {"lines"}});
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ProgramKernel& k = kernels[i].get();
    const auto& uses = kernels[i].workloads;
    table.add({fmt::format("{}", i), k.key.substr(0, 12), k.name,
               fmt::format("{}", fmt::join(k.shape, "x")), k.dtypes,
               reports::digits_text(k.flops / 1e9), reports::bytes_text(k.bytes),
               fmt::format("{}", kernels[i].count),
               uses[0] + (uses.size() > 1 ? fmt::format(" and {} more", uses.size() - 1) : ""),
               lines_text(k.origins)});
  }
  context.print(table.text());
  return 0;
}

}  // namespace

Command kernels_command() {
  return {
      .name = "kernels",
      .arguments = "WORKLOAD...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary = "lowers workloads and lists their kernels",
      .details =
          R"(WORKLOAD is a .toml, .uop or .onnx file, a directory, or FILE:INSTANCE-GLOB. A kernel that occurs several times
is one row; "count" says how often it runs, repeats of its instances included.
JSON: {"schema": 1, "kernels": [{"kernel_key", "name", "ast", "flops", "bytes", "shape", "dtypes", "count",
"workloads", "lines"}]}
"lines": what the kernel computes of its workload's file, e.g. "12 softmax" for a call of softmax in line 12.)",
      .options = {param_option()},
      .run = run};
}

}  // namespace beamline::cli
