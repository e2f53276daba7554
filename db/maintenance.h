// Care of a database file: a copy that is whole, and making it smaller. Throws DbError.
#pragma once
#include <cstdint>
#include <string>

#include "db/sqlite.h"

namespace beamline::db {

/// A compact copy as of one moment, while others may write. `target` must not exist; a failed copy
/// leaves no file.
void backup(const Database& db, const std::string& target);

struct Pruned {
  int64_t runs = 0, trials = 0, samples = 0, artifacts = 0;
  int64_t bytes_before = 0, bytes_after = 0;
};
/// Removes the trials and samples of all but the `keep` newest runs. Kept in any case: all runs'
/// rows, what runs in progress wrote, and the confirmations that stored bests stand on. Artifacts
/// go when no trial and no best names their hash. Then gives the space back.
Pruned prune(const Database& db, int64_t keep, bool dry_run);

}  // namespace beamline::db
