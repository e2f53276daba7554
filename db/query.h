// Reading: any one SQL statement that writes nothing, what a database holds, and whether it is sound.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "db/sqlite.h"

namespace beamline::db {

using Cell = std::variant<std::monostate, int64_t, double, std::string>;
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};
/// Runs one read-only statement. A wrong or writing statement is the text in the variant.
std::variant<Table, std::string> query(const Database& db, std::string_view sql);

struct Info {
  std::string path, journal_mode;
  int64_t schema_version = 0, bytes = 0;
  std::vector<std::pair<std::string, int64_t>> rows;  // per view
};
Info info(const Database& db);

/// What is wrong; empty when the database is sound.
std::vector<std::string> check(const Database& db);

}  // namespace beamline::db
