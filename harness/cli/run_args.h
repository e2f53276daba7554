// Runs that options name.
#pragma once
#include <cstdint>
#include <string>

#include "db/sqlite.h"

namespace beamline::cli {

/// The run that `name` means (db/runs.h). Throws UsageError, naming `option`, when there is none.
int64_t find_run(const db::Database& database, const std::string& name, const std::string& option);

}  // namespace beamline::cli
