// Takes in what another database knows: of two nights on two machines, or of a colleague.
#pragma once
#include <cstdint>
#include <string>

#include "db/store.h"

namespace beamline::db {

struct Merged {
  int64_t runs = 0, known_runs = 0;  // taken in; here already (from an earlier merge or copy)
  int64_t trials = 0, samples = 0, kernels = 0, workloads = 0, devices = 0, verdicts = 0;
  int64_t best_taken = 0, best_kept = 0;  // rows of the other: stored; ours was as good or pinned
  int64_t aliases = 0, artifacts = 0, quarantined = 0;
};

/// One transaction: all of `other` or nothing. Runs and trials get new numbers here; a run that is
/// here already (same start, host, process, command, label and device) is not taken again, so a
/// second merge changes nothing. A stored best is replaced by the rule of Store::store_best.
/// `other` must have today's schema and is only read. Throws DbError.
Merged merge(Store& into, const std::string& other);

}  // namespace beamline::db
