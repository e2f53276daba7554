// run WORKLOAD
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "db/store.h"
#include "devices/compare.h"
#include "engine/interpret/tensor.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/opt/heuristic.h"
#include "engine/opt/schedule.h"
#include "harness/cli/errors.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/execute.h"
#include "harness/program_data.h"
#include "reports/text_table.h"
#include "workloads/builder.h"
#include "workloads/elements.h"
#include "workloads/input_data.h"
#include "workloads/npy.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

constexpr int64_t most_oracle_work = 200'000'000;  // elements; a few seconds
constexpr double timeout_s = 100;

struct Chosen {
  std::string opts, from;  // given, stored, heuristic
};

// "name=file.npy" onto the instance's inputs.
void read_inputs(const Arguments& arguments, workloads::Instance& instance) {
  for (const std::string& text : arguments.list("input")) {
    const size_t eq = text.find('=');
    if (eq == std::string::npos || eq == 0 || eq + 1 == text.size())
      throw UsageError(fmt::format("--input '{}': NAME=FILE.npy is expected", text));
    const std::string name = text.substr(0, eq);
    const auto it = std::ranges::find(instance.inputs, name, &workloads::InputSpec::name);
    if (it == instance.inputs.end()) {
      std::vector<std::string> names;
      for (const auto& i : instance.inputs) names.push_back(i.name);
      throw UsageError(fmt::format("--input: {} has no input '{}'; it has {}", instance.name, name,
                                   fmt::join(names, ", ")));
    }
    it->dist = {.kind = workloads::DistKind::File, .path = text.substr(eq + 1)};
  }
}

// Of opts that an earlier engine may have found.
std::string why_illegal(UOp ast, const std::string& text, const Target& target) {
  const auto opts = parse_opts(text);
  if (const auto* error = std::get_if<OptError>(&opts)) return error->message;
  const auto schedule = apply_opts(ast, std::get<Opts>(opts), target);
  const auto* refusal = std::get_if<OptRefusal>(&schedule);
  return refusal ? refusal->reason : "";
}

std::vector<Chosen> choose(Context& context, const Arguments& arguments,
                           const std::vector<KernelProgram>& programs, const Device& device) {
  const KernelProgram& program = programs[0];
  std::unique_ptr<db::Store> store;
  std::error_code ignored;
  if (!arguments.has("no-db") && std::filesystem::exists(context.global.databases[0], ignored)) {
    try {
      store = std::make_unique<db::Store>(context.global.databases[0], db::Access::ReadOnly);
    } catch (const db::DbError& e) {
      throw UsageError(e.what());
    }
  }
  std::vector<Chosen> chosen;
  for (const ProgramKernel& k : program.kernels) {
    Arena arena;
    Arena::Scope scope(arena);
    const auto ast = parse_uops(k.ast);
    const UOp root = std::get<UOp>(ast);
    if (store)
      if (const auto best = store->lookup_best(k.key, device.identity.device_id)) {
        const std::string why = why_illegal(root, best->opts, device.target);
        if (why.empty()) {
          chosen.push_back({best->opts, "stored"});
          continue;
        }
        context.log.warn(
            fmt::format("{}: the stored opts '{}' are of engine {} and no longer legal: {}", k.name,
                        best->opts, best->engine_version, why));
      }
    chosen.push_back({opts_text(across_threads(root, heuristic(root, device.target), device.target,
                                               k.flops, k.bytes)),
                      "heuristic"});
  }
  const std::vector<KernelUse> kernels = unique_kernels(programs);
  for (const std::string& text : arguments.list("opts")) {
    const size_t eq = text.find('=');
    if (eq == std::string::npos || eq == 0)
      throw UsageError(fmt::format("--opts '{}': KERNEL=OPTS is expected", text));
    const std::string key = one_kernel(kernels, text.substr(0, eq)).get().key;
    for (size_t i = 0; i < chosen.size(); ++i)
      if (program.kernels[i].key == key) chosen[i] = {text.substr(eq + 1), "given"};
  }
  return chosen;
}

struct Result {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::string file;
  double max_err = 0, tolerance = 0;
  Comparison comparison;
};

TensorValue as_value(std::span<const std::byte> bytes, DType t, std::span<const int64_t> shape) {
  TensorValue v(t, shape);
  for (size_t i = 0; i < v.size(); ++i) {
    if (is_float(t)) {
      v.reals[i] = workloads::load(bytes, t, i);
      continue;
    }
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * static_cast<size_t>(dtype_bytes(t)),
                static_cast<size_t>(dtype_bytes(t)));
    v.wholes[i] = wrap_to(t, static_cast<int64_t>(bits));
  }
  return v;
}

// What the outputs should be, as f64 for floats and in their own type else: by the tensor-level
// evaluator where that takes seconds, else by the kernels' references.
class Expected {
 public:
  Expected(const KernelProgram& program, const std::vector<std::vector<std::byte>>& inputs,
           ProgramData& data)
      : program_(program), data_(data) {
    if (!program.instance.program) return;
    Arena arena;
    Arena::Scope scope(arena);
    const auto built = workloads::build(program.instance);
    const UOp sink = std::get<workloads::TensorGraph>(built).sink;
    if (evaluation_work(sink) > most_oracle_work) return;
    std::vector<TensorValue> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(
          as_value(inputs[i], program.instance.inputs[i].dtype, program.instance.inputs[i].shape));
    evaluated_ = evaluate_tensors(sink, values, Rounding::Wide);
  }
  std::string by() const { return evaluated_.empty() ? "kernel references" : "tensor evaluator"; }

  /// The bytes expected of output i, of type f64 or `t`.
  std::vector<std::byte> of(size_t i, DType t) {
    const DType wide = is_float(t) ? DType::F64 : t;
    if (!evaluated_.empty()) {
      const TensorValue& v = evaluated_[i];
      std::vector<std::byte> out(v.size() * static_cast<size_t>(dtype_bytes(wide)));
      for (size_t k = 0; k < v.size(); ++k) {
        if (is_float(t))
          workloads::store(out, wide, k, v.reals[k]);
        else
          workloads::store(out, wide, k, v.wholes[k]);
      }
      return out;
    }
    const auto e = data_.expected(program_.outputs[i], 0);
    if (const auto* why = std::get_if<std::string>(&e)) throw std::runtime_error(*why);
    const auto& bytes = std::get<ProgramData::Contents>(e).bytes;
    return {bytes.begin(), bytes.end()};
  }

 private:
  const KernelProgram& program_;
  ProgramData& data_;
  std::vector<TensorValue> evaluated_;
};

// Kernels one after the other add up their errors.
double tolerance_of(const KernelProgram& program) {
  if (program.instance.tolerance) return *program.instance.tolerance;
  double sum = 0;
  for (const ProgramKernel& k : program.kernels) sum += k.rtol;
  return sum;
}

Result check(const KernelProgram& program, size_t i, std::span<const std::byte> bytes,
             Expected& expected) {
  const ProgramBuffer& b = program.buffers[static_cast<size_t>(program.outputs[i])];
  Result r;
  r.dtype = *dtype_from_name(b.dtype), r.shape = b.shape,
  r.tolerance = is_float(r.dtype) ? tolerance_of(program) : 0;
  if (b.elements == 0) {
    r.comparison.ok = true;
    return r;
  }
  const std::vector<std::byte> want = expected.of(i, r.dtype);
  const DType wide = is_float(r.dtype) ? DType::F64 : r.dtype;
  const double rms = rms_of(want.data(), wide, b.elements);
  r.comparison =
      compare_output(bytes.data(), r.dtype, want.data(), wide, b.elements, r.tolerance, rms, 0);
  r.max_err = r.comparison.max_err;
  return r;
}

void write_results(const std::string& folder, const Execution& e, const KernelProgram& program,
                   std::vector<Result>& results) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("--output {}: {}", folder, error.message()));
  for (size_t i = 0; i < results.size(); ++i) {
    Result& r = results[i];
    r.file = (std::filesystem::path(folder) / fmt::format("out{}.npy", i)).string();
    std::ofstream out(r.file, std::ios::binary);
    out << workloads::npy_text(e.buffers[static_cast<size_t>(program.outputs[i])], r.dtype,
                               r.shape);
    if (!out.flush()) throw UsageError(fmt::format("--output {}: cannot write {}", folder, r.file));
  }
}

void print_results(const Context& context, const KernelProgram& program, const Execution& e,
                   const std::vector<Chosen>& chosen, const std::vector<Result>& results,
                   const std::string& by) {
  if (context.global.json) {
    ordered_json kernels = ordered_json::array(), outputs = ordered_json::array();
    for (size_t i = 0; i < chosen.size(); ++i)
      kernels.push_back({{"kernel_key", program.kernels[i].key},
                         {"name", program.kernels[i].name},
                         {"opts", e.opts[i]},
                         {"from", chosen[i].from}});
    for (const Result& r : results)
      outputs.push_back({{"dtype", dtype_name(r.dtype)},
                         {"shape", r.shape},
                         {"file", r.file.empty() ? ordered_json() : ordered_json(r.file)},
                         {"max_err", r.max_err},
                         {"tolerance", r.tolerance},
                         {"verified", r.comparison.ok}});
    context.print_json({{"schema", 1},
                        {"run", kernels},
                        {"workload", program.instance.name},
                        {"outputs", outputs},
                        {"checked_by", by}});
    return;
  }
  using Align = reports::TextTable::Align;
  reports::TextTable table({{"#", Align::Right}, {"kernel"}, {"opts"}, {"from"}});
  for (size_t i = 0; i < chosen.size(); ++i)
    table.add({fmt::format("{}", i), program.kernels[i].name,
               e.opts[i].empty() ? "(none)" : e.opts[i], chosen[i].from});
  context.print(table.text());
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    context.print(fmt::format("out{}: {}[{}], largest error {:.3g} of {:.3g} allowed ({}){}\n", i,
                              dtype_name(r.dtype), fmt::join(r.shape, ", "), r.max_err, r.tolerance,
                              by, r.file.empty() ? "" : ", written to " + r.file));
  }
}

int run(Context& context, const Arguments& arguments) {
  std::vector<KernelProgram> programs = read_programs(arguments);
  if (programs.size() != 1) {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min<size_t>(programs.size(), 8); ++i)
      names.push_back(programs[i].instance.name);
    throw UsageError(
        fmt::format("run executes one instance, {} are given: {}{}; choose with FILE:INSTANCE-GLOB",
                    programs.size(), fmt::join(names, ", "), programs.size() > 8 ? ", ..." : ""));
  }
  KernelProgram& program = programs[0];
  read_inputs(arguments, program.instance);
  const Device device = find_device(arguments.text("device", "cpu"));
  const std::vector<Chosen> chosen = choose(context, arguments, programs, device);
  std::vector<std::vector<std::byte>> inputs;
  for (const workloads::InputSpec& spec : program.instance.inputs) {
    auto data = workloads::input_data(spec, 0);
    if (const auto* why = std::get_if<std::string>(&data))
      throw UsageError(fmt::format("input {}: {}", spec.name, *why));
    inputs.push_back(std::move(std::get<0>(data)));
  }
  CacheUse cache([&context](const std::string& warning) { context.log.warn(warning); });
  Pool compilers(compiler_options(read_cache(arguments), cache),
                 static_cast<int>(device.pus.size()));
  std::vector<std::string> opts;
  for (const Chosen& c : chosen) opts.push_back(c.opts);
  const std::string target = target_text(device.target);
  context.log.live(fmt::format("running {} kernels", program.kernels.size()));
  const Execution e = execute(program, opts, inputs, compilers,
                              {.target = target, .pus = device.pus, .timeout_s = timeout_s});
  if (e.failure) {
    const auto k = static_cast<size_t>(e.failure->kernel);
    const std::string message =
        fmt::format("kernel {} {} with opts '{}': {}: {}", k, program.kernels[k].name, opts[k],
                    e.failure->status, e.failure->error);
    if (e.failure->status == "rejected" && chosen[k].from == "given") throw UsageError(message);
    context.log.error(message);
    return exit_kernels_failed;
  }
  ProgramData data(program, compilers,
                   {.target = target, .pus = device.pus, .timeout_s = timeout_s});
  Expected expected(program, inputs, data);
  std::vector<Result> results;
  for (size_t i = 0; i < program.outputs.size(); ++i)
    results.push_back(
        check(program, i, e.buffers[static_cast<size_t>(program.outputs[i])], expected));
  context.log.detail(cache.text());
  if (arguments.has("output")) write_results(arguments.text("output"), e, program, results);
  print_results(context, program, e, chosen, results, expected.by());
  for (size_t i = 0; i < results.size(); ++i) {
    const Comparison& c = results[i].comparison;
    if (c.ok) continue;
    context.log.error(fmt::format("out{} is wrong in {} elements; element {} is {}, {} is expected",
                                  i, c.bad, c.first_bad, c.got, c.want));
  }
  return std::ranges::all_of(results, [](const Result& r) { return r.comparison.ok; })
             ? exit_ok
             : exit_check_failed;
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .arguments = "WORKLOAD",
      .min_arguments = 1,
      .max_arguments = 1,
      .summary = "executes one instance and checks the result",
      .details =
          R"(Kernels run with the stored best opts, else the heuristic's; --opts decides for single kernels. Inputs that
are not given are generated. Results are compared with the tensor-level evaluator in double precision, or with the
kernels' references where that would take long, within the workload's tolerance or the sum of its kernels'.
JSON: {"schema": 1, "run": [{"kernel_key", "name", "opts", "from": "given|stored|heuristic"}], "workload", "outputs":
[{"dtype", "shape", "file", "max_err", "tolerance", "verified"}], "checked_by"}
Exit codes: 3 a result is wrong; 4 a kernel did not compile or run.)",
      .options = {device_option(),
                  {.name = "input",
                   .value = "NAME=FILE.npy",
                   .help = "contents of an input",
                   .repeatable = true},
                  {.name = "output", .value = "DIR", .help = "writes DIR/out0.npy, ..."},
                  {.name = "no-db", .value = "", .help = "uses no stored opts"},
                  {.name = "opts",
                   .value = "KERNEL=OPTS",
                   .help = "opts of a kernel: ordinal, name or key prefix",
                   .repeatable = true},
                  param_option(),
                  cache_options()[0],
                  cache_options()[1]},
      .run = run};
}

}  // namespace beamline::cli
