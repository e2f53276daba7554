// Runs as users name them: a number, `last`, `last-1`, ..., or a label.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "db/sqlite.h"

namespace beamline::db {

struct RunInfo {
  int64_t run_id = 0;
  std::string label, command, device_id, started_at, ended_at, status;
  int64_t seed = 0;
  std::string budget, engine_version, toolchain, host;  // "" = not recorded
};

/// The run, or why there is none. A label names the newest run that has it; `last` counts all runs.
/// Digits alone are always a number. Throws DbError when the database fails.
std::variant<RunInfo, std::string> find_run(const Database& db, std::string_view text);

}  // namespace beamline::db
