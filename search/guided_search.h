// What all strategies share: the contestants with a part of their own enter first, then a Proposer
// names candidates, batch by batch, each compiled, checked and raced before the next is named; the
// race is finished and the finals decide. Compiling and timing alternate, so a kernel of any size
// stays within its budget; what never got its turn is left out, not failed.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "search/entry.h"
#include "search/field.h"
#include "search/strategy.h"

namespace beamline::search {

/// What a proposer may look at.
struct Standing {
  const ScheduleSpace& space;
  Field& field;  // for its contestants, and its random numbers
  const Entry& entry;
};

class Proposer {
 public:
  virtual ~Proposer() = default;
  /// At most `room` texts, none of them seen by the entry; empty: there is nothing left to try.
  virtual std::vector<std::string> next(size_t room, const Standing& standing) = 0;
  /// Candidates it would still have named; said when the budget ends before it does. 0 = unknown.
  virtual size_t left() const { return 0; }
  /// False: goes on although the leader does not get better any more.
  virtual bool patient() const { return true; }
};

SearchResult run_guided(const SearchTask& task, Measurer& measurer, SearchObserver& observer,
                        Proposer& proposer);

/// heuristic, random, beam or exhaustive; null for another name. `beam`: schedules that are
/// extended at a time, at least 1.
std::unique_ptr<Strategy> make_strategy(std::string_view name, int beam = 4);

/// How thorough a strategy is: heuristic < random < beam < exhaustive; -1 for another name.
int strategy_rank(std::string_view name);

}  // namespace beamline::search
