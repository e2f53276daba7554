// workloads list | show | check
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/arena.h"
#include "engine/rangeify/rangeify.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "reports/numbers.h"
#include "reports/text_table.h"
#include "workloads/builder.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

std::vector<workloads::Instance> selected(const Arguments& arguments) {
  workloads::Selection s = workloads::select(arguments.positionals(), read_params(arguments));
  if (!s.errors.empty()) refuse(s.errors);
  return std::move(s.instances);
}

ordered_json row_of(const workloads::Instance& i) {
  return {{"workload_id", workload_id(i)},
          {"file", i.file},
          {"name", i.name},
          {"params", ordered_json::parse(params_json(i))},
          {"weight", i.weight},
          {"repeat", i.repeat},
          {"content_hash", i.content_hash}};
}

int list(Context& context, const Arguments& arguments) {
  std::vector<workloads::Instance> instances = selected(arguments);
  if (context.global.json) {
    ordered_json rows = ordered_json::array();
    for (const auto& i : instances) rows.push_back(row_of(i));
    context.print_json({{"schema", 1}, {"workloads", rows}});
    return 0;
  }
  reports::TextTable table({{"instance"},
                            {"weight", reports::TextTable::Align::Right},
                            {"repeat", reports::TextTable::Align::Right},
                            {"file"}});
  for (const auto& i : instances)
    table.add({i.name, fmt::format("{:g}", i.weight), fmt::format("{}", i.repeat), i.file});
  context.print(table.text());
  return 0;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string dist_text(const workloads::Dist& d) {
  using workloads::DistKind;
  switch (d.kind) {
    case DistKind::Uniform: return fmt::format("uniform {:g}..{:g}", d.first, d.second);
    case DistKind::Normal: return fmt::format("normal {:g} {:g}", d.first, d.second);
    case DistKind::Int: return fmt::format("int {}..{}", d.lowest, d.highest);
    case DistKind::File: return "file " + d.path;
    case DistKind::Ones: break;
  }
  return "ones";
}

// Bytes that running an instance takes.
struct Memory {
  int64_t inputs = 0, outputs = 0, temporaries = 0;  // each for itself
  int64_t arena = 0;                                 // the temporaries, where they share memory
};
Memory memory_of(const KernelGraph& graph) {
  Memory m;
  for (const BufferInfo& b : graph.buffers) {
    const int64_t bytes = b.dtype == DType::Void ? 0 : b.elements * dtype_bytes(b.dtype);
    (b.kind == BufferInfo::Kind::Input    ? m.inputs
     : b.kind == BufferInfo::Kind::Output ? m.outputs
                                          : m.temporaries) += bytes;
  }
  m.arena = graph.arena_bytes;
  return m;
}

int show(Context& context, const Arguments& arguments) {
  std::vector<workloads::Instance> instances = selected(arguments);
  ordered_json rows = ordered_json::array();
  std::string text;
  for (const auto& i : instances) {
    std::vector<workloads::OutputSpec> outputs;  // known only once the computation is built
    Memory memory;
    {
      Arena arena;
      Arena::Scope scope(arena);
      auto built = workloads::build(i);
      if (const auto* errors = std::get_if<std::vector<workloads::WorkloadError>>(&built))
        refuse(*errors);
      outputs = std::get<workloads::TensorGraph>(built).outputs;
      memory = memory_of(make_kernels(std::get<workloads::TensorGraph>(built).sink));
    }
    ordered_json inputs_json = ordered_json::array(), outputs_json = ordered_json::array();
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", i.name);
    for (const auto& in : i.inputs) {
      inputs_json.push_back({{"name", in.name},
                             {"dtype", dtype_name(in.dtype)},
                             {"shape", in.shape},
                             {"dist", dist_text(in.dist)},
                             {"const", in.constant},
                             {"bytes", in.bytes()}});
      text += fmt::format("  input   {} {}{}  {}{}  {}\n", in.name, dtype_name(in.dtype),
                          shape_text(in.shape), dist_text(in.dist), in.constant ? ", const" : "",
                          reports::bytes_text(static_cast<double>(in.bytes())));
    }
    for (const auto& o : outputs) {
      outputs_json.push_back({{"dtype", dtype_name(o.dtype)}, {"shape", o.shape}});
      text += fmt::format("  output  {}{}\n", dtype_name(o.dtype), shape_text(o.shape));
    }
    const auto bytes = [](int64_t n) { return reports::bytes_text(static_cast<double>(n)); };
    text +=
        fmt::format("  memory  inputs {}, outputs {}, temporaries {} in {}\n", bytes(memory.inputs),
                    bytes(memory.outputs), bytes(memory.temporaries), bytes(memory.arena));
    std::string program = workloads::print(*i.program);
    ordered_json row = row_of(i);
    row["inputs"] = inputs_json;
    row["outputs"] = outputs_json;
    row["compute"] = program;
    row["math"] = i.relaxed ? "relaxed" : "ieee";
    row["memory"] = {{"inputs", memory.inputs},
                     {"outputs", memory.outputs},
                     {"temporaries", memory.temporaries},
                     {"arena", memory.arena}};
    rows.push_back(row);
    size_t from = 0;
    while (from < program.size()) {
      size_t end = std::min(program.find('\n', from), program.size());
      text += "  | " + program.substr(from, end - from) + "\n";
      from = end + 1;
    }
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"workloads", rows}});
  } else {
    context.print(text);
  }
  return 0;
}

int check(Context& context, const Arguments& arguments) {
  std::vector<workloads::Instance> instances = selected(arguments);
  std::vector<workloads::WorkloadError> errors = workloads::check(instances);
  if (!errors.empty()) refuse(errors);
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"instances", instances.size()}});
  } else {
    context.print(
        fmt::format("ok: {} instance{}\n", instances.size(), instances.size() == 1 ? "" : "s"));
  }
  return 0;
}

}  // namespace

std::vector<Command> workloads_commands() {
  const std::string mistakes =
      "A mistake is reported as FILE:LINE:COLUMN: FIELD: what is wrong (expected ...); exit code "
      "2.\n";
  Command list_command{
      .name = "workloads list",
      .arguments = "FILE...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary = "instances after expansion",
      .details =
          mistakes +
          R"(JSON: {"schema": 1, "workloads": [{"workload_id", "file", "name", "params", "weight", "repeat",
"content_hash"}]})",
      .options = {param_option()},
      .run = list};
  Command show_command = list_command;
  show_command.name = "workloads show";
  show_command.summary = "inputs, outputs and computation of every instance";
  show_command.details =
      mistakes +
      R"(JSON: {"schema": 1, "workloads": [{..., "inputs": [{"name", "dtype", "shape", "dist", "const", "bytes"}],
"outputs": [{"dtype", "shape"}], "compute", "math", "memory": {"inputs", "outputs", "temporaries", "arena"}}]}, with
the members of 'workloads list' first. memory: in bytes; temporaries that are never needed together share the arena.)";
  show_command.run = show;
  Command check_command = list_command;
  check_command.name = "workloads check";
  check_command.summary = "validates definitions, shapes and types; reads no input file";
  check_command.details = mistakes + R"(JSON: {"schema": 1, "instances": N})";
  check_command.run = check;
  return {list_command, show_command, check_command};
}

}  // namespace beamline::cli
