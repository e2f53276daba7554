// Reading a database as its users do: any one SQL statement that writes nothing, what a file holds,
// and whether it is sound. Nothing here changes the file; all work on a read-only Database too.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "db/sqlite.h"

namespace beamline::db {

struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};
using Cell = std::variant<std::monostate, int64_t, double, std::string, Blob>;  // monostate: NULL

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};
/// Runs one statement that only reads: SELECT, WITH, VALUES, EXPLAIN, and PRAGMAs that tell about
/// the schema. Any other, and one that SQLite refuses, is the reason in the variant. Throws
/// DbError if the file is damaged.
std::variant<Table, std::string> query(const Database& db, std::string_view sql);

struct Info {
  std::string path, journal_mode;
  int64_t schema_version = 0;
  int64_t bytes = 0;                                  // of the file and its write-ahead log
  std::vector<std::pair<std::string, int64_t>> rows;  // per view; -1: it cannot be read
  std::vector<std::string> notes;                     // of the Database
};
Info info(const Database& db);

struct Finding {
  std::string check;    // integrity, foreign key, view, row, best
  std::string where;    // the view, or the table
  std::string message;  // names the row
};
/// What is wrong; empty when the database is sound. Goes on after whatever it cannot read. Of each
/// check and place at most 20 findings and the number of further ones.
std::vector<Finding> check(const Database& db);

}  // namespace beamline::db
