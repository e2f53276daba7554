#include "harness/cli/databases.h"

#include <fmt/format.h>

#include <filesystem>

#include "db/error.h"
#include "db/schema.h"
#include "harness/cli/errors.h"

namespace beamline::cli {
namespace {

std::unique_ptr<db::Database> open_one(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw UsageError(
        fmt::format("no database at {}: 'beamline tune' makes one, --db names another", path));
  try {
    auto database = std::make_unique<db::Database>(path, db::Access::ReadOnly);
    db::require_schema(*database);
    return database;
  } catch (const db::DbError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace

std::unique_ptr<db::Database> open_databases(const std::vector<std::string>& paths) {
  std::unique_ptr<db::Database> first = open_one(paths.at(0));
  if (paths.size() == 1) return first;
  for (size_t i = 1; i < paths.size(); ++i) {
    open_one(paths[i]);
    first->execute(fmt::format("ATTACH {} AS other{}", quoted(paths[i]), i));
  }
  // Temporary views hide those of the first file.
  for (const std::string& view : db::view_names()) {
    std::string sql = fmt::format("SELECT * FROM main.{}", view);
    for (size_t i = 1; i < paths.size(); ++i)
      sql += fmt::format(" UNION ALL SELECT * FROM other{}.{}", i, view);
    first->execute(fmt::format("CREATE TEMP VIEW {} AS {}", view, sql));
  }
  return first;
}

const std::string& one_to_write(const std::vector<std::string>& paths, std::string_view command) {
  if (paths.size() > 1)
    throw UsageError(fmt::format("{} writes to one database: give --db once", command));
  return paths.at(0);
}

std::unique_ptr<db::Store> open_store(const std::string& path) {
  try {
    return std::make_unique<db::Store>(path);
  } catch (const db::DbError& e) {
    throw UsageError(e.what());
  }
}

db::Table read_table(const db::Database& database, const std::string& sql) {
  auto result = db::query(database, sql);
  if (const auto* why = std::get_if<std::string>(&result)) throw UsageError(*why);
  return std::get<db::Table>(std::move(result));
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

std::string has_prefix(const std::string& column, const std::string& text) {
  return fmt::format("substr({}, 1, {}) = {}", column, text.size(), quoted(text));
}

}  // namespace beamline::cli
