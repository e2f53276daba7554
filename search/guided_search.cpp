#include "search/guided_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "search/finals.h"
#include "search/race.h"

namespace beamline::search {
namespace {

// Calls that one candidate costs: the check, two sweeps of two, and its share of the anchors'.
constexpr double calls_to_race = 6;
constexpr double worthwhile = 1.01;   // an improvement of the leader that counts
constexpr size_t woken = 12;          // of the known ones: those that are raced again
constexpr double known_weight = 0.5;  // of a score from an earlier part, in sweeps

class Guided {
 public:
  Guided(const SearchTask& task, Measurer& measurer, SearchObserver& observer)
      : task_(task),
        measurer_(measurer),
        observer_(observer),
        start_(measurer.seconds()),
        field_(measurer, observer, task.seed),
        entry_(field_, task.budget_trials) {}

  SearchResult run(Proposer& proposer);

 private:
  void enter_known(Race& race);
  bool explore(Race& race, Proposer& proposer);
  size_t room(const Race& race) const;
  bool past(double share) const { return measurer_.seconds() >= start_ + share * task_.budget_s; }
  void tell(const Race& race, size_t done);

  const SearchTask& task_;
  Measurer& measurer_;
  SearchObserver& observer_;
  double start_;
  Field field_;
  Entry entry_;
  Roles roles_;
};

SearchResult Guided::run(Proposer& proposer) {
  SearchResult result;
  result.heuristic_opts = task_.space->heuristic();
  std::vector<std::string> roles{""};
  if (!result.heuristic_opts.empty()) roles.push_back(result.heuristic_opts);
  if (task_.has_stored) roles.push_back(task_.stored_opts);
  entry_.recall(task_.known, roles);

  // They come first: they are timed whatever the budget.
  std::vector<Candidate> first;
  for (const std::string& opts : roles) first.push_back({opts, {}});
  for (const Candidate& c : task_.planted)
    if (!entry_.seen(c.opts)) first.push_back(c);
  observer_.on_progress({.phase = "compile", .done = 0, .total = first.size(), .best_opts = {}});
  std::vector<int> fresh = entry_.admit(first, true);
  roles_ = {.heuristic = entry_.find(result.heuristic_opts),
            .unoptimised = entry_.find(""),
            .stored = task_.has_stored ? entry_.find(task_.stored_opts) : -1};
  std::vector<int> always;
  for (int c : {roles_.heuristic, roles_.stored})
    if (c >= 0 && std::ranges::find(always, c) == always.end()) always.push_back(c);

  Race race(field_, task_.settings, always, [this] { return past(task_.settings.search_share); });
  race.enter(fresh);
  enter_known(race);
  bool complete = explore(race, proposer);
  std::vector<int> finalists = race.finish();
  result.counts = field_.counts();
  if (observer_.stop_requested()) {
    result.status = SearchStatus::Interrupted;
    return result;
  }
  run_finals(field_, roles_, finalists, task_.settings, start_ + task_.budget_s, result);
  if (result.status == SearchStatus::Failed && !entry_.first_failure().empty())
    result.error += "; " + entry_.first_failure();
  result.counts = field_.counts();
  if (!complete && proposer.left() > 0 && result.note.empty())
    result.note = fmt::format("{} schedules did not get a turn within the budget", proposer.left());
  return result;
}

// What an earlier part of the run timed is known relative to a role that both parts have timed.
void Guided::enter_known(Race& race) {
  double offset = 0;
  bool common = false;
  for (int role : {roles_.heuristic, roles_.unoptimised, roles_.stored})
    for (const KnownTrial& k : task_.known)
      if (!common && role >= 0 && field_[role].ok() && field_[role].weight > 0 && k.time_ns &&
          entry_.find(k.opts) == role) {
        offset = field_[role].score - std::log(*k.time_ns);
        common = true;
      }
  if (!common) return;
  std::vector<int> asleep;
  for (const KnownTrial& k : task_.known) {
    int c = k.time_ns ? entry_.find(k.opts) : -1;
    if (c < 0 || field_[c].program >= 0) continue;
    field_[c].score = std::log(*k.time_ns) + offset;
    field_[c].weight = known_weight;
    asleep.push_back(c);
  }
  std::ranges::stable_sort(asleep, {}, [&](int c) { return field_[c].score; });
  if (asleep.size() > woken) asleep.resize(woken);
  std::vector<Candidate> again;
  for (int c : asleep) again.push_back({field_[c].opts, {}});
  race.enter(entry_.admit(again));
}

// A batch is smaller where a full one does not fit into what is left.
size_t Guided::room(const Race& race) const {
  auto full = static_cast<size_t>(std::max(task_.settings.batch - 3, 1));
  int best = race.incumbent();
  if (best < 0) return full;
  double each = field_.all[static_cast<size_t>(best)].best_ns * calls_to_race * 1e-9;
  double end = start_ + task_.settings.explore_share * task_.budget_s;
  double fits = (end - measurer_.seconds()) / std::max(each, 1e-9);
  return fits >= static_cast<double>(full) ? full : std::max<size_t>(1, static_cast<size_t>(fits));
}

// True: the proposer has nothing left, or what it has does not help any more.
bool Guided::explore(Race& race, Proposer& proposer) {
  Standing standing{*task_.space, field_, entry_};
  int idle = 0;
  for (size_t done = 0;;) {
    if (past(task_.settings.explore_share) || observer_.stop_requested() || entry_.full())
      return false;
    std::vector<Candidate> batch;
    for (std::string& opts : proposer.next(room(race), standing))
      batch.push_back({std::move(opts), {}});
    if (batch.empty()) return true;
    int before = race.incumbent();
    double score = before < 0 ? 0 : field_[before].score;
    race.enter(entry_.admit(batch));
    done += batch.size();
    tell(race, done);
    int after = race.incumbent();
    bool better = before < 0 || (after >= 0 && field_[after].score < score - std::log(worthwhile));
    idle = better ? 0 : idle + 1;
    if (proposer.patient() && idle >= task_.settings.patience) return true;
  }
}

void Guided::tell(const Race& race, size_t done) {
  int best = race.incumbent();
  observer_.on_progress({.phase = "search",
                         .done = done,
                         .total = 0,
                         .best_ns = best < 0 ? 0 : field_[best].best_ns,
                         .best_opts = best < 0 ? "" : field_[best].opts});
}

}  // namespace

SearchResult run_guided(const SearchTask& task, Measurer& measurer, SearchObserver& observer,
                        Proposer& proposer) {
  return Guided(task, measurer, observer).run(proposer);
}

}  // namespace beamline::search
