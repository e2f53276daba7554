// Strategy: how a kernel's schedules are searched. What it is given, what it reports on the way,
// and what it ends with. A strategy is deterministic given the seed and the measurer's answers.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/measurer.h"
#include "search/space.h"
#include "search/stats/sessions.h"

namespace beamline::search {

/// Numbers of the measuring protocol (measurement.md 6 a, b), in one place.
struct SearchSettings {
  int batch = 16;           // contestants of a racing session, incumbent and heuristic included
  int finalists = 6;        // next to heuristic, unoptimised and stored best
  int sweeps = 10;          // of a session in the finals
  int select_sessions = 5;  // and as many again for those still close
  int confirm_sessions = 20;
  int patience = 8;                // batches in a row that improve the leader by under 1 %: enough
  double search_share = 0.7;       // of the budget; the rest is for the finals
  double explore_share = 0.55;     // of the budget: new candidates; then the race is finished
  double unconfirmed_ratio = 3.0;  // slower than this many times the leader: not in the finals
};

/// What an earlier part of the same run found out about a candidate: it is not tried again.
struct KnownTrial {
  std::string opts;
  Outcome outcome = Outcome::Ok;
  std::optional<double> time_ns;  // of the race; comparable only within that part
  std::string code_hash;
};

struct SearchTask {
  const ScheduleSpace* space = nullptr;  // borrowed
  std::string stored_opts;               // what the database serves today
  bool has_stored = false;
  std::vector<Candidate> planted;  // faults that the search must survive
  std::vector<KnownTrial> known;   // of the run that is resumed
  uint64_t seed = 0;
  double budget_s = 12;
  int budget_trials = 0;  // candidates that may be compiled; 0 = no limit
  SearchSettings settings;
};

enum class Stage : uint8_t { Search, Select, Confirm };
std::string_view stage_name(Stage s);

/// What happened to one candidate in one stage. Final when reported, except that a later stage adds
/// its own.
struct Trial {
  std::string opts;
  Outcome outcome = Outcome::Ok;
  Stage stage = Stage::Search;
  std::optional<double> time_ns;  // fastest sample (search), median of session minima (later)
  std::optional<double> ratio_to_incumbent;
  std::vector<stats::Sample> samples;
  double compile_ms = 0;
  std::string code_hash;
  std::string error;
};

struct Progress {
  std::string_view phase;  // compile, race, select, confirm
  size_t done = 0, total = 0;
  double best_ns = 0;  // of the incumbent so far; a search time, no result
  std::string best_opts;
};

class SearchObserver {
 public:
  virtual ~SearchObserver() = default;
  /// A Search trial may be told again with the same opts when the race has measured more: the last
  /// counts.
  virtual void on_trial(const Trial&) {}
  virtual void on_progress(const Progress&) {}
  /// True: end as soon as possible; what is known is kept.
  virtual bool stop_requested() { return false; }
};

enum class SearchStatus : uint8_t { Tuned, Failed, Interrupted };

struct SearchResult {
  SearchStatus status = SearchStatus::Failed;
  std::string error;  // Failed: why no schedule is right
  std::string opts, code_hash, source_hash;
  std::string heuristic_opts;
  double best_ns = 0;  // median over confirmation sessions of the session minimum
  std::optional<double> heuristic_ns,
      unoptimized_ns;  // best_ns times the paired ratio; none: failed
  stats::Gain gain;    // over the heuristic, from data that did not choose the winner
  std::vector<std::string> tie_opts;  // finalists that cannot be told from the winner
  bool verified = false;
  std::string output_hash;  // of the winner on input set 0
  std::string note;         // e.g. a voided confirmation
  std::array<int, static_cast<size_t>(Outcome::Count)>
      counts{};  // trials of the search, by outcome
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;
  virtual SearchResult run(const SearchTask& task, Measurer& measurer,
                           SearchObserver& observer) = 0;
};

}  // namespace beamline::search
