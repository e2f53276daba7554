#include "search/heuristic_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "search/entry.h"
#include "search/finals.h"
#include "search/race.h"

namespace beamline::search {
namespace {

// Calls that one candidate costs: the check, two sweeps of two, and its share of the anchors'.
constexpr double calls_to_race = 6;

}  // namespace

SearchResult HeuristicSearch::run(const SearchTask& task, Measurer& measurer,
                                  SearchObserver& observer) {
  double start = measurer.seconds();
  Deadlines limits{start + task.settings.search_share * task.budget_s, start + task.budget_s};
  Field field(measurer, observer, task.seed);
  Entry entry(field, task.budget_trials);
  SearchResult result;
  result.heuristic_opts = task.space->heuristic();

  // The contestants with a part of their own come first: they are timed whatever the budget.
  std::vector<Candidate> first{{.opts = "", .planted_source = {}}};
  if (!result.heuristic_opts.empty()) first.push_back({result.heuristic_opts, {}});
  if (task.has_stored) first.push_back({task.stored_opts, {}});
  first.insert(first.end(), task.planted.begin(), task.planted.end());
  observer.on_progress({.phase = "compile", .done = 0, .total = first.size(), .best_opts = {}});
  std::vector<int> fresh = entry.admit(first);
  Roles roles{.heuristic = entry.find(result.heuristic_opts),
              .unoptimised = entry.find(""),
              .stored = task.has_stored ? entry.find(task.stored_opts) : -1};

  std::vector<int> always;
  for (int c : {roles.heuristic, roles.stored})
    if (c >= 0 && std::ranges::find(always, c) == always.end()) always.push_back(c);
  auto out_of_time = [&] { return measurer.seconds() >= limits.search_end; };
  Race race(field, task.settings, always, out_of_time);
  race.enter(fresh);

  std::vector<std::string> level = task.space->extensions("");
  std::vector<int> order(level.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  field.shuffle(order);
  size_t done = 0;
  // A chunk is a racing batch, smaller where one does not fit into what is left.
  auto chunk = [&]() -> size_t {
    auto full = static_cast<size_t>(std::max(task.settings.batch - 3, 1));
    int best = race.incumbent();
    if (best < 0) return full;
    double each = field[best].best_ns * calls_to_race * 1e-9;
    double fits = (limits.search_end - measurer.seconds()) / std::max(each, 1e-9);
    return fits >= static_cast<double>(full) ? full
                                             : std::max<size_t>(1, static_cast<size_t>(fits));
  };
  while (done < order.size() && !out_of_time() && !observer.stop_requested() && !entry.full()) {
    std::vector<Candidate> candidates;
    for (size_t room = chunk(); done < order.size() && candidates.size() < room; ++done)
      candidates.push_back({level[static_cast<size_t>(order[done])], {}});
    race.enter(entry.admit(candidates));
    int best = race.incumbent();
    observer.on_progress({.phase = "search",
                          .done = done,
                          .total = order.size(),
                          .best_ns = best < 0 ? 0 : field[best].best_ns,
                          .best_opts = best < 0 ? "" : field[best].opts});
  }
  std::vector<int> finalists = race.finish();
  result.counts = field.counts();
  if (observer.stop_requested()) {
    result.status = SearchStatus::Interrupted;
    return result;
  }
  run_finals(field, roles, finalists, task.settings, limits.end, result);
  if (result.status == SearchStatus::Failed && !entry.first_failure().empty())
    result.error += "; " + entry.first_failure();
  result.counts = field.counts();
  if (done < order.size() && result.note.empty())
    result.note = fmt::format("{} of {} schedules did not get a turn within the budget",
                              order.size() - done, order.size());
  return result;
}

}  // namespace beamline::search
