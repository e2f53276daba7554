#include "harness/tuner.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "db/query.h"
#include "engine/opt/actions.h"
#include "harness/measurer.h"
#include "harness/planted.h"
#include "harness/toolchain.h"
#include "harness/version.h"
#include "reports/numbers.h"
#include "search/guided_search.h"

namespace beamline {
namespace {

using search::SearchStatus;

constexpr double unlimited_s = 3600;       // a kernel's time where only trials are limited
constexpr double reference_patience = 10;  // times the candidates' timeout: it runs unoptimised
constexpr int quarantine_after = 2;        // crashes or hangs of the same code

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string toolchain_of(const Target& target) {
  Toolchain t = ask_toolchain(target);
  if (t.name.empty()) throw std::runtime_error(t.error);
  return t.name;
}

uint64_t seed_of(uint64_t seed, const std::string& key) {
  return seed ^ std::stoull(key.substr(0, 16), nullptr, 16);
}

}  // namespace

std::string_view kernel_status_name(KernelStatus s) {
  return s == KernelStatus::Tuned ? "tuned" : s == KernelStatus::Cached ? "cached" : "failed";
}

struct Tuner::Workshop {
  Workshop(const TuneSettings& settings, cli::Log& log)
      : cache([&log](const std::string& warning) { log.warn(warning); }),
        compilers(compiler_options(settings.cache, cache), settings.workers) {}
  CacheUse cache;
  Pool compilers;
  const KernelProgram* program = nullptr;
  std::unique_ptr<ProgramData> data;
  std::map<std::string, std::vector<db::TrialRow>> tried;  // by kernel key: of the resumed run
  std::map<std::string, std::string> quarantined;          // by code hash
};

// Writes trials as they happen and shows where the search is.
class Tuner::Observer final : public search::SearchObserver {
 public:
  Observer(Tuner& tuner, const KernelUse& kernel, std::string heading)
      : tuner_(tuner), kernel_(kernel), heading_(std::move(heading)) {
    for (const db::TrialRow& t : tuner_.workshop_->tried[kernel.get().key])
      written_[{t.stage, t.opts}] = t.trial_id;
  }

  void on_trial(const search::Trial& t) override {
    db::TrialRow row = trial_row(t, kernel_.get().key, tuner_.here_);
    auto [it, is_new] = written_.try_emplace({row.stage, row.opts}, 0);
    if (is_new)
      it->second = tuner_.store_->insert_trial(row);
    else
      tuner_.store_->replace_trial(it->second, row);
    tuner_.log_.detail(fmt::format("{}  {:<7} {:<13} {:>9}  {}{}", heading_, row.stage, row.status,
                                   reports::time_text(t.time_ns),
                                   t.opts.empty() ? "(none)" : t.opts,
                                   t.error.empty() ? "" : ": " + t.error));
  }
  void on_progress(const search::Progress& p) override {
    std::string best = p.best_ns > 0
                           ? fmt::format(", best {} {}", reports::time_text(p.best_ns), p.best_opts)
                           : "";
    std::string of = p.total > 0 ? fmt::format("/{}", p.total) : "";
    tuner_.log_.live(fmt::format("{}: {} {}{}{}", heading_, p.phase, p.done, of, best));
  }
  bool stop_requested() override { return tuner_.stop_requested_(); }

 private:
  Tuner& tuner_;
  const KernelUse& kernel_;
  std::string heading_;
  std::map<std::pair<std::string, std::string>, int64_t> written_;  // trials by stage and opts
};

Tuner::Tuner(const TuneDevice& device, TuneSettings settings, db::Store* store, cli::Log& log,
             std::function<bool()> stop_requested)
    : device_(device),
      settings_(std::move(settings)),
      store_(store),
      log_(log),
      stop_requested_(std::move(stop_requested)),
      here_{.device_id = device.identity.device_id,
            .toolchain = toolchain_of(device.target),
            .environment_id = read_environment_id()} {}

Tuner::~Tuner() = default;

std::string Tuner::why_search(const KernelUse& kernel) const {
  if (store_ == nullptr) return "not stored";
  auto row = store_->lookup_best(kernel.get().key, device_.identity.device_id);
  if (!row) return "not stored";
  if (settings_.resume > 0 && row->run_id == settings_.resume) return {};
  if (settings_.retune) return "asked to";
  if (row->pinned) return {};
  if (std::string why = why_stale(*row, here_); !why.empty()) return why;
  if (row->action_set != action_set_name()) return "searched with other actions";
  if (search::strategy_rank(row->strategy) < search::strategy_rank(settings_.strategy))
    return "searched by " + row->strategy;
  if (row->strategy == "beam" && settings_.strategy == "beam" && row->beam < settings_.beam)
    return fmt::format("searched with beam {}", row->beam);
  return {};
}

TuneResult Tuner::run(const std::vector<KernelProgram>& programs,
                      const std::vector<KernelUse>& kernels) {
  store_->mark_dead_runs();
  record_programs(*store_, device_.identity, programs);
  here_.run_id = settings_.resume;
  if (settings_.resume == 0)
    here_.run_id = store_->begin_run(
        {.label = settings_.label,
         .command = settings_.command_line,
         .device_id = device_.identity.device_id,
         .budget = settings_.budget_trials > 0 ? fmt::format("{}trials", settings_.budget_trials)
                                               : fmt::format("{}s", settings_.budget_s),
         .engine_version = engine_version,
         .toolchain = here_.toolchain,
         .seed = static_cast<int64_t>(settings_.seed)});
  try {
    TuneResult result = run_kernels(kernels);
    store_->finish_run(here_.run_id, result.interrupted ? "interrupted" : "finished");
    return result;
  } catch (...) {
    store_->finish_run(here_.run_id, "failed");
    throw;
  }
}

TuneResult Tuner::run_kernels(const std::vector<KernelUse>& kernels) {
  TuneResult result;
  result.run_id = here_.run_id;
  double start = now_s();
  std::vector<std::string> reasons;
  size_t to_search = 0;
  for (const KernelUse& k : kernels) {
    reasons.push_back(why_search(k));
    to_search += !reasons.back().empty();
  }
  double budget = settings_.budget_s;
  if (budget == 0)
    budget = settings_.budget_trials > 0 ? unlimited_s * static_cast<double>(to_search)
                                         : default_budget_s * static_cast<double>(to_search);
  log_.info(fmt::format(
      "run {}: {} kernels, {} to search, budget {:.0f} s{}, device {} ({})", here_.run_id,
      kernels.size(), to_search, budget,
      settings_.budget_trials > 0 ? fmt::format(" and {} trials", settings_.budget_trials) : "",
      device_.identity.name, device_.identity.device_id));
  workshop_ = std::make_unique<Workshop>(settings_, log_);
  if (settings_.resume > 0)
    for (db::TrialRow& t : store_->trials_of(settings_.resume)) {
      std::string key = t.kernel_key;
      workshop_->tried[key].push_back(std::move(t));
    }
  auto bad = db::query(
      store_->database(),
      fmt::format("SELECT code_hash, reason FROM quarantine WHERE device_id = '{}' AND count >= {}",
                  device_.identity.device_id, quarantine_after));
  if (const auto* table = std::get_if<db::Table>(&bad))
    for (const auto& row : table->rows)
      if (const auto* hash = std::get_if<std::string>(&row[0]))
        workshop_->quarantined[*hash] =
            std::holds_alternative<std::string>(row[1]) ? std::get<std::string>(row[1]) : "";

  int trials_left = settings_.budget_trials;
  for (size_t i = 0; i < kernels.size() && !result.interrupted; ++i) {
    const KernelUse& k = kernels[i];
    std::string heading = fmt::format("[{}/{}] {}", i + 1, kernels.size(), k.get().name);
    KernelOutcome outcome;
    if (stop_requested_()) {
      result.interrupted = true;
      break;
    }
    if (reasons[i].empty()) {
      outcome = serve(k, *store_->lookup_best(k.get().key, device_.identity.device_id));
    } else {
      double share = std::max(0.0, start + budget - now_s()) / static_cast<double>(to_search);
      int trials =
          settings_.budget_trials > 0 ? std::max(1, trials_left / static_cast<int>(to_search)) : 0;
      outcome = search_kernel(k, share, trials, heading, result.interrupted);
      for (int n : outcome.trials) trials_left -= n;
      --to_search;
      if (result.interrupted) break;
    }
    std::string gain =
        outcome.heuristic_ns && outcome.best_ns
            ? fmt::format(", {} over the heuristic",
                          reports::ratio_text(*outcome.heuristic_ns / *outcome.best_ns))
            : "";
    log_.info(outcome.status == KernelStatus::Failed
                  ? fmt::format("{}: failed: {}", heading, outcome.error)
                  : fmt::format("{}: {} {}{}  {}", heading, kernel_status_name(outcome.status),
                                reports::time_text(outcome.best_ns), gain, outcome.opts));
    result.kernels.push_back(std::move(outcome));
  }
  result.wall_s = now_s() - start;
  if (workshop_->cache.programs() > 0) log_.info(workshop_->cache.text());
  workshop_.reset();
  return result;
}

KernelOutcome Tuner::serve(const KernelUse& kernel, const db::BestRow& row) const {
  return {.use = &kernel,
          .status = KernelStatus::Cached,
          .opts = row.opts,
          .error = {},
          .note = {},
          .best_ns = row.best_ns,
          .heuristic_ns = row.heuristic_ns,
          .unoptimized_ns = row.unoptimized_ns,
          .gflops = row.gflops,
          .gbps = row.gbps,
          .bound_share = row.bound_share,
          .verified = row.verified};
}

KernelOutcome Tuner::search_kernel(const KernelUse& kernel, double budget_s, int budget_trials,
                                   const std::string& heading, bool& interrupted) {
  KernelOutcome outcome;
  outcome.use = &kernel;
  const std::string target = target_text(device_.target);
  if (workshop_->program != kernel.program) {
    workshop_->data = std::make_unique<ProgramData>(
        *kernel.program, workshop_->compilers,
        ReferenceOptions{.target = target,
                         .pus = device_.pus,
                         .timeout_s = reference_patience * settings_.timeout_s,
                         .seed = settings_.seed});
    workshop_->program = kernel.program;
  }
  MeasurerOptions options{.target = target,
                          .pus = device_.pus,
                          .timeout_s = settings_.timeout_s,
                          .quarantined = {},
                          .on_killer = {}};
  options.quarantined = [this](const std::string& hash) -> std::optional<std::string> {
    auto it = workshop_->quarantined.find(hash);
    return it == workshop_->quarantined.end() ? std::nullopt : std::optional(it->second);
  };
  options.on_killer = [this](const std::string& hash, const std::string& reason) {
    store_->quarantine(hash, device_.identity.device_id, reason);
  };
  double start = now_s();
  auto failed = [&](const std::string& why) {
    outcome.error = why;
    return outcome;
  };
  try {
    log_.live(heading + ": reference");
    ProcessMeasurer measurer(kernel.get(), kernel.kernel, *workshop_->data, workshop_->compilers,
                             options);
    if (auto why = measurer.prepare()) return failed(*why);

    auto space = search::engine_space(kernel.get().ast, device_.target);
    auto stored = store_->lookup_best(kernel.get().key, device_.identity.device_id);
    search::SearchTask task;
    task.space = space.get();
    task.has_stored = stored.has_value();
    if (stored) task.stored_opts = stored->opts;
    for (const std::string& plant : settings_.plants)
      task.planted.push_back(
          {.opts = "plant:" + plant, .planted_source = planted_source(plant).value()});
    task.known = known_trials(workshop_->tried[kernel.get().key]);
    task.seed = seed_of(settings_.seed, kernel.get().key);
    task.budget_s = std::max(0.0, budget_s - (now_s() - start));
    task.budget_trials = budget_trials;

    Observer observer(*this, kernel, heading);
    search::SearchResult found =
        search::make_strategy(settings_.strategy, settings_.beam)->run(task, measurer, observer);
    outcome.trials = found.counts;
    outcome.note = found.note;
    if (found.status == SearchStatus::Interrupted) {
      interrupted = true;
      return outcome;
    }
    if (found.status == SearchStatus::Failed) return failed(found.error);
    store_winner(kernel, found, stored, outcome);
    return outcome;
  } catch (const db::DbError&) {
    throw;  // without its database the run has no sense
  } catch (const std::exception& e) {
    return failed(e.what());
  }
}

void Tuner::store_winner(const KernelUse& kernel, const search::SearchResult& found,
                         const std::optional<db::BestRow>& stored, KernelOutcome& outcome) {
  db::BestRow row = best_row(found, kernel.get(), here_);
  row.strategy = settings_.strategy;
  row.beam = settings_.strategy == "beam" ? settings_.beam : 0;
  outcome.status = KernelStatus::Tuned;
  outcome.opts = row.opts;
  outcome.best_ns = row.best_ns;
  outcome.heuristic_ns = row.heuristic_ns;
  outcome.unoptimized_ns = row.unoptimized_ns;
  outcome.gflops = row.gflops;
  outcome.gbps = row.gbps;
  if (auto peaks = stored_peaks(store_->database(), device_.identity.device_id))
    row.bound_share = bound_share(*peaks, kernel.get().flops, kernel.get().bytes,
                                  kernel.get().dtypes, row.best_ns);
  outcome.bound_share = row.bound_share;
  outcome.verified = row.verified;
  // The stored row was a contestant, so the new one may replace it however the two times compare.
  auto refused = store_->store_best(row, stored ? std::optional(stored->run_id) : std::nullopt);
  if (refused) outcome.note += (outcome.note.empty() ? "" : "; ") + ("not stored: " + *refused);
}

}  // namespace beamline
