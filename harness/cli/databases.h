// The databases that a command reads: one file, or the union of several under the names of the
// stable views (ids of runs and trials are those of their file).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/query.h"
#include "db/store.h"

namespace beamline::cli {

/// Read-only. Throws UsageError when a file does not exist or is no database of beamline.
std::unique_ptr<db::Database> open_databases(const std::vector<std::string>& paths);

/// The file that `command` writes to. Throws UsageError when several are given.
const std::string& one_to_write(const std::vector<std::string>& paths, std::string_view command);
/// For writing; made where there is none. Throws UsageError when it cannot be.
std::unique_ptr<db::Store> open_store(const std::string& path);

/// Throws UsageError with SQLite's reason.
db::Table read_table(const db::Database& database, const std::string& sql);

/// 'text' for SQL.
std::string quoted(const std::string& text);
/// column LIKE 'text%', with the wildcards of `text` taken literally.
std::string has_prefix(const std::string& column, const std::string& text);

}  // namespace beamline::cli
