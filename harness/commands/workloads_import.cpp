// workloads import M.onnx -o F.toml
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/cli/errors.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "workloads/onnx/import.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

// The model as a file at `output` names it: relative to the file's directory.
std::string seen_from(const std::string& output, const std::string& model) {
  const auto folder = output == "-" ? std::filesystem::current_path()
                                    : std::filesystem::absolute(output).parent_path();
  return std::filesystem::absolute(model).lexically_proximate(folder).generic_string();
}

int import(Context& context, const Arguments& arguments) {
  const std::string& model = arguments.positionals()[0];
  const std::string output = arguments.text("output"), weights = arguments.text("weights", "data");
  if (weights != "data" && weights != "generated")
    throw UsageError(fmt::format("--weights '{}': data or generated is expected", weights));
  if (output != "-" && std::filesystem::path(output).extension() != ".toml")
    throw UsageError(output.empty() ? "-o FILE.toml is needed: where the workload goes"
                                    : fmt::format("-o {}: a .toml file is expected", output));
  auto imported = onnx::import_model(model, {.name = arguments.text("name"),
                                             .reference = seen_from(output, model),
                                             .generated = weights == "generated",
                                             .params = read_params(arguments)});
  if (const auto* errors = std::get_if<1>(&imported)) refuse(*errors);
  const std::string& text = std::get<std::string>(imported);
  if (output == "-") {
    context.print(text);
    return exit_ok;
  }
  std::ofstream out(output, std::ios::binary);
  out << text;
  if (!out.flush()) throw UsageError(fmt::format("-o {}: cannot write the file", output));
  const workloads::LoadedFile file = workloads::parse_workload_file(output, text);
  const workloads::WorkloadDef& def = file.workloads.at(0);
  const auto constants = std::ranges::count(def.inputs, true, &workloads::InputDef::constant);
  const auto inputs = std::ssize(def.inputs) - constants;
  std::vector<std::string> params;
  for (const auto& p : def.params) params.push_back(p.name);
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"file", output},
                        {"workload", def.name},
                        {"params", params},
                        {"inputs", inputs},
                        {"weights", constants},
                        {"statements", def.program->statements.size()}});
    return exit_ok;
  }
  context.print(
      fmt::format("{}: workload {}, {} inputs, {} weights, {} statements{}\n", output, def.name,
                  inputs, constants, def.program->statements.size(),
                  params.empty() ? "" : fmt::format("; params {}", fmt::join(params, ", "))));
  return exit_ok;
}

// In lines of at most 115 columns.
std::string operators_text() {
  constexpr size_t width = 115;
  std::string text, line = "Operators:";
  for (const std::string& name : onnx::operator_names()) {
    if (line.size() + name.size() + 1 > width) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + name;
  }
  return text + line + "\n";
}

}  // namespace

Command workloads_import_command() {
  return {
      .name = "workloads import",
      .arguments = "MODEL.onnx",
      .min_arguments = 1,
      .max_arguments = 1,
      .summary = "writes an ONNX model as a workload file",
      .details =
          R"(Opsets 7 to 17. Dims that have names become params, 1 unless --param says otherwise. Weights are read from the
model when inputs are filled; with --weights generated they are numbers of the same range and the model is not needed
any more. Mistakes name the node; exit code 2. An .onnx file can also be given wherever a WORKLOAD can.
)" + operators_text() +
          R"(JSON: {"schema": 1, "file", "workload", "params": [names], "inputs": N, "weights": N, "statements": N})",
      .options = {{.name = "output",
                   .value = "F.toml",
                   .help = "the file to write; - is stdout",
                   .letter = 'o'},
                  {.name = "weights",
                   .value = "data|generated",
                   .help = "contents of initialisers; default data"},
                  {.name = "name",
                   .value = "NAME",
                   .help = "of the workload; default: of the model's file"},
                  param_option()},
      .run = import};
}

}  // namespace beamline::cli
