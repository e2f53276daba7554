// SQLite in RAII. A Database is used by one thread at a time; several processes may share the file.
// Whatever the library reports becomes a DbError with the file and the statement.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace beamline::db {

struct DbError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Access { ReadWrite, ReadOnly };

class Database {
 public:
  /// Opens `path`; a writer creates missing directories and the file. Uses a write-ahead log, or a rollback
  /// journal where the file system cannot share memory. Throws DbError.
  Database(const std::string& path, Access access);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  void execute(const std::string& sql);
  int64_t last_id() const;
  int changes() const;
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return db_; }

 private:
  std::string path_;
  sqlite3* db_ = nullptr;
};

/// One prepared statement. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& db, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int i, int64_t v);
  Statement& bind(int i, int v) { return bind(i, static_cast<int64_t>(v)); }
  Statement& bind(int i, bool v) { return bind(i, static_cast<int64_t>(v)); }
  Statement& bind(int i, double v);  // NaN is stored as NULL
  Statement& bind(int i, std::string_view v);
  Statement& bind(int i, const char* v) { return bind(i, std::string_view(v)); }
  Statement& bind(int i, const std::string& v) { return bind(i, std::string_view(v)); }
  Statement& bind_null(int i);
  template <class T>
  Statement& bind(int i, const std::optional<T>& v) { return v ? bind(i, *v) : bind_null(i); }

  bool step();  // true: a row
  void run();   // to the end, then ready to be bound again
  void reset();

  bool is_null(int c) const;
  int64_t integer(int c) const;
  double real(int c) const;
  std::string text(int c) const;
  std::optional<double> optional_real(int c) const;
  int columns() const;
  std::string column_name(int c) const;
  sqlite3_stmt* handle() const { return stmt_; }

 private:
  [[noreturn]] void fail() const;
  const Database& db_;
  sqlite3_stmt* stmt_ = nullptr;
};

/// BEGIN IMMEDIATE ... COMMIT; rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace beamline::db
