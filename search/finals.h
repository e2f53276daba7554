// Finals: from a few finalists to one winner that may be published (measurement.md 6b). Selection
// orders the finalists on interleaved sessions; confirmation times the leader against heuristic,
// unoptimised and stored best on fresh sessions, and only those decide and are quoted.
#pragma once
#include "search/field.h"

namespace beamline::search {

/// Contestants with a part of their own; -1: there is none, or it failed. Two may be the same.
struct Roles {
  int heuristic = -1, unoptimised = -1, stored = -1;
};

/// Fills everything of the result but heuristic_opts and counts. The winner is never slower than
/// heuristic, unoptimised or stored best as far as the sessions can tell; on a tie the first of
/// stored best, heuristic, unoptimised is kept. A winner that fails here is replaced by the next.
void run_finals(Field& field, const Roles& roles, const std::vector<int>& finalists,
                const SearchSettings& settings, double end_s, SearchResult& result);

/// Sessions and sweeps that fit into `budget_ns` when one sweep of all contestants, untimed calls
/// included, takes `sweep_ns`: fewer sweeps first, then fewer sessions, at least 3 of one sweep.
struct SessionBudget {
  int sessions = 0, sweeps = 0;
};
SessionBudget fit_sessions(double budget_ns, double sweep_ns, int sessions, int sweeps);

}  // namespace beamline::search
