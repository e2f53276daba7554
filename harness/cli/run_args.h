// How commands name a run of a database: its number, "last", "last-1", or a label.
#pragma once
#include <cstdint>
#include <string>

#include "db/sqlite.h"

namespace beamline::cli {

/// The newest run that `name` fits; a number wins over a label that looks like one. Throws
/// UsageError with the runs there are, naming `option`.
int64_t find_run(const db::Database& database, const std::string& name, const std::string& option);

}  // namespace beamline::cli
