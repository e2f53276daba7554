// bench WORKLOAD... [-- --benchmark_...]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "db/store.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/opt/heuristic.h"
#include "harness/bench_report.h"
#include "harness/cli/errors.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/measurer.h"
#include "harness/version.h"

namespace beamline::cli {
namespace {

constexpr double timeout_s = 10, reference_timeout_s = 100;

struct Variant {
  std::string name, opts;
  int program = -1;
  std::string error;  // instead of a program
};

// The kernel's variants: what is stored, what the heuristic says, nothing done.
std::vector<Variant> variants_of(const ProgramKernel& kernel, const Device& device,
                                 const db::Store* store) {
  std::vector<Variant> list;
  if (store != nullptr)
    if (auto best = store->lookup_best(kernel.key, device.identity.device_id))
      list.push_back({"best", best->opts, -1, {}});
  Arena arena;
  Arena::Scope scope(arena);
  auto ast = parse_uops(kernel.ast);
  if (const UOp* root = std::get_if<UOp>(&ast))
    list.push_back({"heuristic", opts_text(heuristic(*root, device.target)), -1, {}});
  list.push_back({"unoptimised", "", -1, {}});
  return list;
}

void compile_and_check(search::Measurer& measurer, std::vector<Variant>& variants) {
  std::vector<search::Candidate> candidates;
  for (const Variant& v : variants) candidates.push_back({v.opts, {}});
  const std::vector<search::Compiled> compiled = measurer.compile(candidates);
  for (size_t i = 0; i < variants.size(); ++i) {
    auto failed = [&](search::Outcome outcome, const std::string& error) {
      variants[i].error = fmt::format("{}: {}", search::outcome_name(outcome), error);
    };
    if (compiled[i].outcome != search::Outcome::Ok) {
      failed(compiled[i].outcome, compiled[i].error);
      continue;
    }
    const int program = compiled[i].program;
    const search::Checked checked = measurer.check(std::span(&program, 1), 0)[0];
    if (checked.outcome != search::Outcome::Ok)
      failed(checked.outcome, checked.error);
    else
      variants[i].program = program;
  }
}

void register_variant(search::Measurer& measurer, const ProgramKernel& kernel,
                      const std::string& name, const Variant& v) {
  auto body = [&measurer, &kernel, v, seed = uint64_t{0}](benchmark::State& state) mutable {
    if (v.program < 0) {
      state.SkipWithError(v.error.c_str());
      return;
    }
    for (auto _ : state) {
      if (interrupted()) {
        state.SkipWithError("interrupted");
        break;
      }
      const auto timed = measurer.time({.programs = {v.program}, .sweeps = 1, .seed = ++seed});
      if (timed[0].outcome != search::Outcome::Ok || timed[0].ns.empty()) {
        state.SkipWithError(
            fmt::format("{}: {}", search::outcome_name(timed[0].outcome), timed[0].error).c_str());
        break;
      }
      state.SetIterationTime(timed[0].ns[0] * 1e-9);
    }
    using benchmark::Counter;
    state.counters["FLOP/s"] = Counter(kernel.flops, Counter::kIsIterationInvariantRate);
    state.counters["bytes/s"] = Counter(kernel.bytes, Counter::kIsIterationInvariantRate);
    state.SetLabel(v.opts.empty() ? "(none)" : v.opts);
  };
  benchmark::RegisterBenchmark((name + "/" + v.name).c_str(), body)->UseManualTime();
}

struct Request {
  std::vector<std::string> flags;  // Google Benchmark's
  std::string format = "console", file;
};

// Flags that this command has to serve itself, since it runs the library once a kernel.
Request read_flags(const Context& context, std::vector<std::string> flags) {
  Request r;
  // Defaults first: a later flag wins.
  r.flags = {"--benchmark_enable_random_interleaving=true", "--benchmark_repetitions=10",
             "--benchmark_min_time=0.005"};
  if (context.global.json) r.format = "json";
  for (std::string& f : flags) {
    auto value = [&](const std::string& name) {
      return f.starts_with(name + "=") ? std::optional(f.substr(name.size() + 1)) : std::nullopt;
    };
    if (auto v = value("--benchmark_out")) {
      r.file = *v;
    } else if (auto w = value("--benchmark_out_format")) {
      if (*w != "json")
        throw UsageError(fmt::format("--benchmark_out_format: '{}' is not json", *w));
    } else if (auto x = value("--benchmark_format")) {
      if (*x != "json" && *x != "console")
        throw UsageError(fmt::format("--benchmark_format: '{}' is not console or json", *x));
      if (context.global.json && *x != "json")
        throw UsageError("--json and --benchmark_format=console exclude each other");
      r.format = *x;
    } else {
      r.flags.push_back(std::move(f));
    }
  }
  return r;
}

void start_library(const std::vector<std::string>& flags) {
  static std::vector<std::string> words;  // the library keeps a pointer to the first
  words = {"beamline"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1) throw UsageError(fmt::format("Google Benchmark does not know '{}'", argv[1]));
}

int run(Context& context, const Arguments& all) {
  std::vector<std::string> flags, workloads;
  for (const std::string& p : all.positionals())
    (p.starts_with("--") ? flags : workloads).push_back(p);
  if (workloads.empty()) throw UsageError("bench: WORKLOAD... is missing");
  const Request request = read_flags(context, flags);
  const Device device = find_device(all.text("device", "cpu"));
  KernelPrograms programs = lower_workloads(workloads, read_params(all));
  if (!programs.errors.empty()) refuse(programs.errors);
  std::vector<KernelUse> kernels = unique_kernels(programs.list);
  if (all.has("kernel")) kernels = {one_kernel(kernels, all.text("kernel"))};
  std::unique_ptr<db::Store> store;
  std::error_code ignored;
  if (std::filesystem::exists(context.global.databases[0], ignored)) {
    try {
      store = std::make_unique<db::Store>(context.global.databases[0], db::Access::ReadOnly);
    } catch (const db::DbError& e) {
      throw UsageError(e.what());
    }
  }
  start_library(request.flags);
  std::unique_ptr<BenchReport> report;
  try {
    report = std::make_unique<BenchReport>(
        request.format, wants_color(context.global.color, STDOUT_FILENO), request.file);
  } catch (const std::runtime_error& e) {
    throw UsageError(fmt::format("--benchmark_out: {}", e.what()));
  }
  catch_interrupts();
  benchmark::AddCustomContext("beamline", beamline_version);
  benchmark::AddCustomContext("device_id", device.identity.device_id);
  benchmark::AddCustomContext("device", device.identity.name);

  CacheUse cache([&context](const std::string& warning) { context.log.warn(warning); });
  Pool compilers(compiler_options(read_cache(all), cache), static_cast<int>(device.pus.size()));
  const std::string target = target_text(device.target);
  std::unique_ptr<ProgramData> data;
  const KernelProgram* program = nullptr;
  size_t matched = 0;
  for (const KernelUse& k : kernels) {
    if (interrupted()) break;
    if (program != k.program) {
      program = k.program;
      data = std::make_unique<ProgramData>(
          *program, compilers,
          ReferenceOptions{.target = target, .pus = device.pus, .timeout_s = reference_timeout_s});
    }
    context.log.live(k.get().name + ": compiling");
    MeasurerOptions options{.target = target,
                            .pus = device.pus,
                            .timeout_s = timeout_s,
                            .quarantined = {},
                            .on_killer = {}};
    ProcessMeasurer measurer(k.get(), k.kernel, *data, compilers, options);
    std::vector<Variant> variants = variants_of(k.get(), device, store.get());
    if (auto why = measurer.prepare())
      for (Variant& v : variants) v.error = "no reference: " + *why;
    else
      compile_and_check(measurer, variants);
    context.log.end_live();
    const bool twice = std::ranges::count_if(kernels, [&](const KernelUse& o) {
                         return o.get().name == k.get().name;
                       }) > 1;
    const std::string name = k.get().name + (twice ? "@" + k.get().key.substr(0, 8) : "");
    benchmark::ClearRegisteredBenchmarks();
    for (const Variant& v : variants) register_variant(measurer, k.get(), name, v);
    matched += benchmark::RunSpecifiedBenchmarks(report.get());
    report->next();
  }
  benchmark::ClearRegisteredBenchmarks();
  context.log.detail(cache.text());
  if (!report->end()) throw std::runtime_error("cannot write " + request.file);
  if (interrupted()) return exit_interrupted;
  if (matched == 0) throw UsageError("--benchmark_filter: no benchmark matches");
  return report->failed() > 0 ? exit_kernels_failed : exit_ok;
}

}  // namespace

Command bench_command() {
  return {
      .name = "bench",
      .arguments = "WORKLOAD...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary =
          "stored best, heuristic and unoptimised kernels, interleaved, with Google Benchmark",
      .details =
          R"(For each kernel one benchmark a variant (KERNEL/best, KERNEL/heuristic, KERNEL/unoptimised) on the same buffers,
checked first; its repetitions are interleaved in random order, an iteration is one timed batch in the runner.
Flags of Google Benchmark follow --, e.g. -- --benchmark_filter=best --benchmark_repetitions=40; by default 10
repetitions of at least 5 ms. A variant that crashes costs its own row; exit code 4 then.
JSON: the document of Google Benchmark; 'verdict' reads two of them.)",
      .options = {device_option(), param_option(), kernel_option(), cache_options()[0],
                  cache_options()[1]},
      .run = run};
}

}  // namespace beamline::cli
