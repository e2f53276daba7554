// The strategy `heuristic`: unoptimised, heuristic, what the database serves today and the first
// level of legal actions are compiled, verified and raced; the finals decide. Compiling and timing
// alternate, so a kernel of any size stays within its budget; what never got its turn is left out,
// not failed.
#pragma once
#include "search/strategy.h"

namespace beamline::search {

class HeuristicSearch final : public Strategy {
 public:
  std::string_view name() const override { return "heuristic"; }
  SearchResult run(const SearchTask& task, Measurer& measurer, SearchObserver& observer) override;
};

}  // namespace beamline::search
