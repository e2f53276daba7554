// tune WORKLOAD...
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "db/runs.h"
#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/planted.h"
#include "harness/tuner.h"
#include "reports/tuning_table.h"
#include "search/guided_search.h"
#include "workloads/diagnostic.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

// "60s", "5m", "1h" or "200trials".
void read_budget(const std::string& text, TuneSettings& settings) {
  double n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  std::string unit(end, text.data() + text.size());
  double seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  bool whole = n == static_cast<double>(static_cast<int64_t>(n)) && n < 1e9;
  if (error == std::errc() && n > 0 && n < 1e9 && seconds > 0) {
    settings.budget_s = n * seconds;
  } else if (error == std::errc() && n > 0 && unit == "trials" && whole) {
    settings.budget_trials = static_cast<int>(n);
  } else {
    throw UsageError(fmt::format(
        "--budget: '{}' is not a time such as 60s, 5m, 1h, or a number such as 200trials", text));
  }
}

TuneSettings read_settings(const Context& context, const Arguments& arguments,
                           const Device& device) {
  TuneSettings s;
  s.strategy = arguments.text("strategy", "beam");
  if (search::strategy_rank(s.strategy) < 0)
    throw UsageError(
        fmt::format("--strategy: '{}' is none of heuristic, random, beam, exhaustive", s.strategy));
  if (arguments.has("beam") && s.strategy != "beam")
    throw UsageError(fmt::format("--beam: the strategy '{}' has none", s.strategy));
  s.beam = static_cast<int>(arguments.integer("beam", 4, 1, 1000));
  if (arguments.has("budget")) read_budget(arguments.text("budget"), s);
  s.seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX));
  s.timeout_s = arguments.number("timeout", 10, 0.1, 3600);
  s.workers = static_cast<int>(arguments.integer(
      "workers", std::max<int64_t>(1, static_cast<int64_t>(device.pus.size())), 1, 1024));
  s.cache = read_cache(arguments);
  s.label = arguments.text("label");
  s.retune = arguments.has("retune");
  s.command_line = context.command_line;
  s.plants = arguments.list("plant");
  for (const std::string& p : s.plants)
    if (!planted_source(p))
      throw UsageError(
          fmt::format("--plant: '{}' is none of {}", p, workloads::one_of(plant_names())));
  return s;
}

ordered_json trials_json(const KernelOutcome& k) {
  ordered_json trials = ordered_json::object();
  using search::Outcome;
  for (Outcome o : {Outcome::Ok, Outcome::Rejected, Outcome::CompileError, Outcome::LaunchError,
                    Outcome::Timeout, Outcome::Crashed, Outcome::WrongResult, Outcome::Mistrusted})
    trials[std::string(search::outcome_name(o))] = k.trials[static_cast<size_t>(o)];
  return trials;
}

ordered_json number(std::optional<double> v) { return v ? ordered_json(*v) : ordered_json(); }

void print_result(const Context& context, const Device& device, const TuneResult& result) {
  if (context.global.json) {
    ordered_json kernels = ordered_json::array();
    for (const KernelOutcome& k : result.kernels) {
      ordered_json row = {
          {"key", k.use->get().key},
          {"name", k.use->get().name},
          {"workloads", k.use->workloads},
          {"status", kernel_status_name(k.status)},
          {"opts", k.status == KernelStatus::Failed ? ordered_json() : ordered_json(k.opts)},
          {"best_ns", number(k.best_ns)},
          {"heuristic_ns", number(k.heuristic_ns)},
          {"unoptimized_ns", number(k.unoptimized_ns)},
          {"gflops", number(k.gflops)},
          {"gbps", number(k.gbps)},
          {"bound_share", number(k.bound_share)},
          {"verified", k.verified},
          {"trials", trials_json(k)}};
      if (!k.error.empty()) row["error"] = k.error;
      kernels.push_back(row);
    }
    context.print_json(
        {{"schema", 1},
         {"run", result.run_id},
         {"device", {{"id", device.identity.device_id}, {"name", device.identity.name}}},
         {"kernels", kernels},
         {"wall_s", result.wall_s}});
    return;
  }
  std::vector<reports::TuningRow> rows;
  for (const KernelOutcome& k : result.kernels) {
    const auto& uses = k.use->workloads;
    rows.push_back(
        {.kernel = k.use->get().name,
         .workload = uses[0] + (uses.size() > 1 ? fmt::format(" +{}", uses.size() - 1) : ""),
         .status = std::string(kernel_status_name(k.status)),
         .opts = k.opts,
         .note = k.error.empty() ? k.note : k.error,
         .best_ns = k.best_ns,
         .heuristic_ns = k.heuristic_ns,
         .unoptimized_ns = k.unoptimized_ns,
         .gflops = k.gflops,
         .gbps = k.gbps,
         .bound_share = k.bound_share});
  }
  if (!rows.empty()) context.print(reports::tuning_table(rows));
}

int dry_run(Context& context, const Device& device, const TuneSettings& settings,
            const std::vector<KernelUse>& kernels) {
  std::unique_ptr<db::Store> store;
  std::error_code ignored;
  if (std::filesystem::exists(context.global.databases[0], ignored))
    store = std::make_unique<db::Store>(context.global.databases[0], db::Access::ReadOnly);
  TuneDevice tuned{device.identity, device.target, device.pus};
  Tuner tuner(tuned, settings, store.get(), context.log, [] { return false; });
  ordered_json rows = ordered_json::array();
  std::string text;
  int to_search = 0;
  for (const KernelUse& k : kernels) {
    std::string reason = tuner.why_search(k);
    to_search += !reason.empty();
    rows.push_back({{"key", k.get().key},
                    {"name", k.get().name},
                    {"workloads", k.workloads},
                    {"status", reason.empty() ? "cached" : "to tune"},
                    {"reason", reason.empty() ? ordered_json() : ordered_json(reason)}});
    text += fmt::format("{}  {}  {}  {}\n", k.get().key.substr(0, 12), k.get().name, k.workloads[0],
                        reason.empty() ? "cached" : "to tune (" + reason + ")");
  }
  double budget = settings.budget_s > 0 ? settings.budget_s : default_budget_s * to_search;
  if (context.global.json) {
    context.print_json(
        {{"schema", 1},
         {"dry_run", true},
         {"device", {{"id", device.identity.device_id}, {"name", device.identity.name}}},
         {"kernels", rows},
         {"budget_s", budget}});
  } else {
    context.print(text + fmt::format("{} of {} kernels to tune, budget {:.0f} s\n", to_search,
                                     kernels.size(), budget));
  }
  return exit_ok;
}

// The interrupted run that goes on, with its seed; it is held from here on.
void resume(Context& context, const Device& device, const Arguments& arguments, db::Store& store,
            TuneSettings& settings) {
  std::string text = arguments.text("resume");
  auto found = db::find_run(store.database(), text);
  if (const auto* why = std::get_if<std::string>(&found)) throw UsageError("--resume: " + *why);
  const auto& run = std::get<db::RunInfo>(found);
  if (run.device_id != device.identity.device_id)
    throw UsageError(fmt::format("--resume: run {} was on device {}, this is {}", run.run_id,
                                 run.device_id, device.identity.device_id));
  if (arguments.has("seed") && static_cast<int64_t>(settings.seed) != run.seed)
    throw UsageError(
        fmt::format("--resume: run {} has seed {}; leave --seed out", run.run_id, run.seed));
  if (auto why = store.resume_run(run.run_id)) throw UsageError("--resume: " + *why);
  settings.resume = run.run_id;
  settings.seed = static_cast<uint64_t>(run.seed);
  context.log.info(fmt::format("resuming run {}, {}", run.run_id, run.status));
}

int run(Context& context, const Arguments& arguments) {
  const std::string& path = one_to_write(context.global.databases, "tune");
  Device device = find_device(arguments.text("device", "cpu"),
                              static_cast<int>(arguments.integer("threads", 0, 1, 65'536)));
  set_tensor_cores(arguments, device.target);
  TuneSettings settings = read_settings(context, arguments, device);
  std::vector<KernelProgram> programs = read_programs(arguments);
  std::vector<KernelUse> kernels = unique_kernels(programs);
  if (arguments.has("dry-run")) return dry_run(context, device, settings, kernels);

  catch_interrupts();
  const std::unique_ptr<db::Store> store = open_store(path);
  for (const std::string& note : store->database().notes()) context.log.warn(note);
  if (arguments.has("resume")) resume(context, device, arguments, *store, settings);
  TuneDevice tuned{device.identity, device.target, device.pus};
  Tuner tuner(tuned, settings, store.get(), context.log, interrupted);
  TuneResult result = tuner.run(programs, kernels);
  print_result(context, device, result);
  if (result.interrupted) {
    context.log.info(fmt::format("interrupted: {} of {} kernels are done and stored",
                                 result.kernels.size(), kernels.size()));
    return exit_interrupted;
  }
  bool failed = std::ranges::any_of(
      result.kernels, [](const KernelOutcome& k) { return k.status == KernelStatus::Failed; });
  return failed ? exit_kernels_failed : exit_ok;
}

}  // namespace

Command tune_command() {
  return {
      .name = "tune",
      .arguments = "WORKLOAD...",
      .min_arguments = 1,
      .max_arguments = any_number,
      .summary = "searches schedules for every kernel and stores the best with its evidence",
      .details =
          R"(WORKLOAD is a .toml or .uop file, a directory, or FILE:INSTANCE-GLOB. For each kernel the unoptimised
program, the heuristic's and what the database serves, then what the strategy proposes, are compiled, checked
against a reference in double precision and raced; the finalists are timed in interleaved sessions, and fresh
ones decide. beam: neighbours of the best schedules so far; heuristic: the first level of legal opts; random:
random sequences; exhaustive: all, shorter ones first. A kernel that the database serves already is 'cached':
its row was searched with these actions, at least as thoroughly, and is not stale.
^C keeps the work so far; --resume goes on with it and repeats no finished trial.

JSON: {"schema": 1, "run", "device": {"id", "name"}, "kernels": [{"key", "name", "workloads", "status":
"tuned|cached|failed", "opts", "best_ns", "heuristic_ns", "unoptimized_ns", "gflops", "gbps", "bound_share",
"verified", "trials": {"ok", "rejected", "compile_error", "launch_error", "timeout", "crashed", "wrong_result",
"mistrusted"}}], "wall_s"}; a failed kernel has "error" too. What is not known is null.
With --dry-run: {"schema": 1, "dry_run": true, "device", "kernels": [{"key", "name", "workloads", "status":
"cached|to tune", "reason"}], "budget_s"}.
Exit codes: 4 when a kernel failed, 130 when interrupted.)",
      .options =
          {device_option(),
           {.name = "strategy",
            .value = "S",
            .help = "beam (default), heuristic, random or exhaustive"},
           {.name = "beam",
            .value = "N",
            .help = "how many of the best schedules are extended at a time; default 4"},
           {.name = "budget",
            .value = "B",
            .help = "wall time (60s, 5m, 1h) or trials (200trials); default 12 s per kernel"},
           {.name = "seed", .value = "N", .help = "of inputs, orders and shuffles; default 0"},
           {.name = "timeout",
            .value = "S",
            .help = "seconds a candidate may compile, and run; default 10"},
           {.name = "threads",
            .value = "N",
            .help =
                "most that a kernel may use; default one per processing unit. Part of the device's "
                "identity"},
           {.name = "workers",
            .value = "N",
            .help = "compilers at a time; default one per processing unit"},
           {.name = "label", .value = "TEXT", .help = "name of the run"},
           param_option(),
           {.name = "retune", .value = "", .help = "search also what the database serves"},
           {.name = "resume",
            .value = "RUN",
            .help = "goes on with an interrupted run (a number, last or a label)"},
           {.name = "dry-run", .value = "", .help = "say what would be done; change nothing"},
           {.name = "plant",
            .value = "FAULT",
            .help = "adds a broken candidate to every search: wrong, crash or hang",
            .group = "Testing",
            .repeatable = true},
           tensor_core_options()[0],
           tensor_core_options()[1],
           cache_options()[0],
           cache_options()[1]},
      .run = run};
}

}  // namespace beamline::cli
