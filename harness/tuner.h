// The main job: tunes every kernel of some programs on one device and records it all. A kernel that
// cannot be tuned costs itself, never the run; an interrupt keeps what is done.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"
#include "devices/identity.h"
#include "engine/ir/target.h"
#include "harness/cli/terminal.h"
#include "harness/compilers.h"
#include "harness/programs.h"
#include "harness/tune_records.h"
#include "search/strategy.h"

namespace beamline {

struct TuneSettings {
  double budget_s = 0;    // wall time of everything; 0 = 12 s a kernel that is searched
  int budget_trials = 0;  // candidates of the whole run; 0 = no limit
  uint64_t seed = 0;
  double timeout_s = 10;
  int workers = 1;  // compilers
  CacheSettings cache{};
  std::string strategy = "beam";
  int beam = 4;
  int64_t resume = 0;  // this run goes on: nothing that it has tried is tried again; 0 = a new run
  std::string label, command_line;
  bool retune = false;              // search even what is served
  std::vector<std::string> plants;  // faults: wrong, crash, hang
};
inline constexpr double default_budget_s = 12;

struct TuneDevice {
  DeviceIdentity identity;
  Target target;
  std::vector<unsigned> pus;
};

enum class KernelStatus { Tuned, Cached, Failed };
std::string_view kernel_status_name(KernelStatus s);  // tuned, cached, failed

struct KernelOutcome {
  const KernelUse* use = nullptr;
  KernelStatus status = KernelStatus::Failed;
  std::string opts, error, note;
  std::optional<double> best_ns, heuristic_ns, unoptimized_ns, gflops, gbps, bound_share;
  bool verified = false;
  std::array<int, static_cast<size_t>(search::Outcome::Count)> trials{};
};

struct TuneResult {
  int64_t run_id = 0;
  std::vector<KernelOutcome> kernels;  // those that were dealt with, in order
  bool interrupted = false;
  double wall_s = 0;
};

class Tuner {
 public:
  /// Borrows all but the values. `store` may be null: then nothing is looked up (a plan without a
  /// database).
  Tuner(const TuneDevice& device, TuneSettings settings, db::Store* store, cli::Log& log,
        std::function<bool()> stop_requested);
  ~Tuner();

  /// Why the database does not serve the kernel; empty: it does (served_row()).
  std::string why_search(const KernelUse& kernel) const;
  /// Needs a writable store that holds settings.resume, if given. Throws when the harness itself
  /// fails; the run is then marked failed.
  TuneResult run(const std::vector<KernelProgram>& programs, const std::vector<KernelUse>& kernels);

 private:
  class Observer;
  TuneResult run_kernels(const std::vector<KernelUse>& kernels);
  KernelOutcome serve(const KernelUse& kernel, const db::BestRow& row) const;
  KernelOutcome search_kernel(const KernelUse& kernel, double budget_s, int budget_trials,
                              const std::string& heading, bool& interrupted);
  void store_winner(const KernelUse& kernel, const search::SearchResult& found,
                    const std::optional<db::BestRow>& stored, KernelOutcome& outcome);

  const TuneDevice& device_;
  TuneSettings settings_;
  db::Store* store_;
  cli::Log& log_;
  std::function<bool()> stop_requested_;
  Provenance here_;
  struct Workshop;  // compilers, and the data of the program in hand
  std::unique_ptr<Workshop> workshop_;
};

}  // namespace beamline
