#include "db/sqlite.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

namespace beamline::db {
namespace {

constexpr int busy_ms = 30000;  // how long a writer waits for another

std::string message(sqlite3* db, const std::string& path, std::string_view doing) {
  return fmt::format("database {}: {} ({})", path, db ? sqlite3_errmsg(db) : "out of memory", doing);
}

}  // namespace

Database::Database(const std::string& path, Access access) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (access == Access::ReadWrite && path != ":memory:") {
    if (const fs::path dir = fs::path(path).parent_path(); !dir.empty()) fs::create_directories(dir, ec);
    if (ec) throw DbError(fmt::format("database {}: cannot create its directory: {}", path, ec.message()));
  }
  if (access == Access::ReadOnly && !fs::exists(path, ec)) throw DbError(fmt::format("database {}: no such file", path));
  const int flags = access == Access::ReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
    const std::string text = message(db_, path, "opening");
    sqlite3_close(db_);
    throw DbError(text);
  }
  sqlite3_busy_timeout(db_, busy_ms);
  try {
    if (access == Access::ReadWrite) {
      Statement wal(*this, "PRAGMA journal_mode=WAL");  // answers with the mode it could get
      wal.step();
      execute("PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL");
    }
    Statement probe(*this, "SELECT count(*) FROM sqlite_master");
    probe.step();
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}
Database::~Database() { sqlite3_close(db_); }
Database::Database(Database&& o) noexcept : path_(std::move(o.path_)), db_(std::exchange(o.db_, nullptr)) {}
Database& Database::operator=(Database&& o) noexcept {
  std::swap(path_, o.path_);
  std::swap(db_, o.db_);
  return *this;
}
void Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw DbError(message(db_, path_, sql.substr(0, 200)));
}
int64_t Database::last_id() const { return sqlite3_last_insert_rowid(db_); }
int Database::changes() const { return sqlite3_changes(db_); }

Statement::Statement(const Database& db, std::string_view sql) : db_(db) {
  if (sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &stmt_, nullptr) != SQLITE_OK)
    throw DbError(message(db.handle(), db.path(), sql.substr(0, 200)));
}
Statement::~Statement() { sqlite3_finalize(stmt_); }
void Statement::fail() const { throw DbError(message(db_.handle(), db_.path(), stmt_ ? sqlite3_sql(stmt_) : "")); }
Statement& Statement::bind(int i, int64_t v) {
  if (sqlite3_bind_int64(stmt_, i, v) != SQLITE_OK) fail();
  return *this;
}
Statement& Statement::bind(int i, double v) {
  if (std::isnan(v)) return bind_null(i);
  if (sqlite3_bind_double(stmt_, i, v) != SQLITE_OK) fail();
  return *this;
}
Statement& Statement::bind(int i, std::string_view v) {
  if (sqlite3_bind_text(stmt_, i, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT) != SQLITE_OK) fail();
  return *this;
}
Statement& Statement::bind_null(int i) {
  if (sqlite3_bind_null(stmt_, i) != SQLITE_OK) fail();
  return *this;
}
bool Statement::step() {
  const int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) fail();
  return false;
}
void Statement::run() {
  while (step()) {}
  reset();
}
void Statement::reset() {
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
}
bool Statement::is_null(int c) const { return sqlite3_column_type(stmt_, c) == SQLITE_NULL; }
int64_t Statement::integer(int c) const { return sqlite3_column_int64(stmt_, c); }
double Statement::real(int c) const { return sqlite3_column_double(stmt_, c); }
std::string Statement::text(int c) const {
  const auto* s = sqlite3_column_text(stmt_, c);
  return s ? std::string(reinterpret_cast<const char*>(s), static_cast<size_t>(sqlite3_column_bytes(stmt_, c))) : "";
}
std::optional<double> Statement::optional_real(int c) const {
  return is_null(c) ? std::nullopt : std::optional(real(c));
}
int Statement::columns() const { return sqlite3_column_count(stmt_); }
std::string Statement::column_name(int c) const { return sqlite3_column_name(stmt_, c); }

Transaction::Transaction(Database& db) : db_(db) { db_.execute("BEGIN IMMEDIATE"); }
Transaction::~Transaction() {
  if (open_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  db_.execute("COMMIT");
  open_ = false;
}

}  // namespace beamline::db
