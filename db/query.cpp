#include "db/query.h"

#include <filesystem>

#include <fmt/format.h>
#include <sqlite3.h>

#include "db/schema.h"

namespace beamline::db {

std::variant<Table, std::string> query(const Database& db, std::string_view sql) {
  sqlite3_stmt* probe = nullptr;
  const char* rest = nullptr;
  const int rc = sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &probe, &rest);
  const std::string_view tail(rest ? rest : sql.data(), rest ? static_cast<size_t>(sql.data() + sql.size() - rest) : 0);
  const bool readonly = probe && sqlite3_stmt_readonly(probe);
  sqlite3_finalize(probe);
  if (rc != SQLITE_OK) return fmt::format("{}", sqlite3_errmsg(db.handle()));
  if (!probe) return "expected one SQL statement";
  if (tail.find_first_not_of(" \t\r\n;") != std::string_view::npos) return "expected one SQL statement, found more";
  if (!readonly) return "the statement would write; a query only reads";
  Table t;
  try {
    Statement s(db, sql);
    for (int c = 0; c < s.columns(); c++) t.columns.push_back(s.column_name(c));
    while (s.step()) {
      std::vector<Cell> row;
      for (int c = 0; c < s.columns(); c++) {
        switch (sqlite3_column_type(s.handle(), c)) {
          case SQLITE_NULL: row.emplace_back(); break;
          case SQLITE_INTEGER: row.emplace_back(s.integer(c)); break;
          case SQLITE_FLOAT: row.emplace_back(s.real(c)); break;
          default: row.emplace_back(s.text(c));
        }
      }
      t.rows.push_back(std::move(row));
    }
  } catch (const DbError& e) {
    return std::string(e.what());
  }
  return t;
}

Info info(const Database& db) {
  Info i;
  i.path = db.path();
  const auto one = [&](const std::string& sql) {
    Statement s(db, sql);
    s.step();
    return s.text(0);
  };
  i.journal_mode = one("PRAGMA journal_mode");
  i.schema_version = std::stoll(one("PRAGMA user_version"));
  std::error_code ec;
  i.bytes = static_cast<int64_t>(std::filesystem::file_size(db.path(), ec));
  if (ec) i.bytes = 0;
  for (const std::string& v : view_names()) i.rows.emplace_back(v, std::stoll(one("SELECT count(*) FROM " + v)));
  return i;
}

std::vector<std::string> check(const Database& db) {
  std::vector<std::string> out;
  const auto rows = [&](std::string_view what, const std::string& sql) {
    try {
      Statement s(db, sql);
      while (s.step()) out.push_back(fmt::format("{}: {}", what, s.text(0)));
    } catch (const DbError& e) {
      out.push_back(fmt::format("{}: {}", what, e.what()));
    }
  };
  rows("integrity", "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'");
  rows("foreign key", "SELECT \"table\" || ' row ' || rowid || ' refers to a missing row of ' || parent FROM pragma_foreign_key_check");
  for (const std::string& v : view_names()) {
    try {
      Statement s(db, "SELECT * FROM " + v);
      while (s.step()) {}
    } catch (const DbError& e) {
      out.push_back(fmt::format("view {}: {}", v, e.what()));
    }
  }
  rows("best without evidence", "SELECT kernel_key FROM best_opts WHERE verified IS NOT 1 OR sessions < 1 OR best_ns <= 0 OR best_ns IS NULL");
  rows("best without an ok trial", "SELECT b.kernel_key FROM best_opts b WHERE NOT EXISTS (SELECT 1 FROM trials t WHERE t.kernel_key = b.kernel_key "
                                   "AND t.device_id = b.device_id AND t.run_id = b.run_id AND t.status = 'ok' AND t.opts = b.opts)");
  rows("trial with a time but not ok", "SELECT trial_id FROM trials WHERE status NOT IN ('ok','mistrusted') AND time_ns IS NOT NULL");
  return out;
}

}  // namespace beamline::db
