// SQLite in RAII. Whatever the library reports becomes a DbError that names file and statement.
//
// Ownership: a Database owns its connection, a Statement its prepared statement; a Statement must
// not outlive its Database. Thread safety: one Database is used by one thread at a time; any number
// of processes may share the file. A connection must not be carried over a fork().
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace beamline::db {

enum class Access { ReadWrite, ReadOnly };

struct OpenOptions {
  bool wal = true;       // false: rollback journal
  int busy_ms = 30000;   // how long to wait for another process
  std::string vfs = {};  // SQLite's file layer; "" = its default
};

class Database {
 public:
  /// Opens `path` (":memory:" too) and changes nothing in it. A writer creates missing directories
  /// and the file. A reader of a read-only directory reads the file as immutable if it has no log.
  Database(const std::string& path, Access access, const OpenOptions& options = {});

  /// For writers: a write-ahead log, or a rollback journal where processes cannot share memory
  /// (network file systems; then notes() says so). Call once it is known whose file it is.
  void choose_journal();

  void execute(const std::string& sql) const;
  int64_t last_id() const;
  int changes() const;
  bool in_transaction() const;
  const std::string& path() const { return path_; }
  const std::vector<std::string>& notes() const { return notes_; }  // for the user, one line each
  sqlite3* handle() const { return db_.get(); }

 private:
  struct Closer {
    void operator()(sqlite3* db) const;
  };
  void open(const std::string& name, int flags);
  void probe() const;
  std::string switch_journal(const char* mode) const;

  std::string path_;
  OpenOptions options_;
  std::vector<std::string> notes_;
  std::unique_ptr<sqlite3, Closer> db_;
};

/// One prepared statement. Parameters are numbered from 1, columns from 0.
class Statement {
 public:
  Statement(const Database& db, std::string_view sql);

  Statement& bind(int i, int64_t v);
  Statement& bind(int i, int v) { return bind(i, static_cast<int64_t>(v)); }
  Statement& bind(int i, bool v) { return bind(i, static_cast<int64_t>(v)); }
  Statement& bind(int i, double v);  // NaN and infinities are stored as NULL
  Statement& bind(int i, std::string_view v);
  Statement& bind(int i, const char* v) { return bind(i, std::string_view(v)); }
  Statement& bind(int i, const std::string& v) { return bind(i, std::string_view(v)); }
  Statement& bind_null(int i);
  template <class T>
  Statement& bind(int i, const std::optional<T>& v) {
    return v ? bind(i, *v) : bind_null(i);
  }

  bool step();   // true: a row
  void run();    // to the end, then ready to be bound again
  void reset();  // forgets the bound values too

  enum class Type { Null, Integer, Real, Text, Blob };
  int columns() const;
  std::string column_name(int c) const;
  Type type(int c) const;
  bool is_null(int c) const { return type(c) == Type::Null; }
  int64_t integer(int c) const;
  double real(int c) const;
  std::string text(int c) const;  // a blob's bytes too; "" for NULL
  std::optional<int64_t> optional_integer(int c) const;
  std::optional<double> optional_real(int c) const;
  std::optional<std::string> optional_text(int c) const;
  sqlite3_stmt* handle() const { return stmt_.get(); }

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* stmt) const;
  };
  void require(bool ok) const;  // throws the connection's error

  std::unique_ptr<sqlite3_stmt, Finalizer> stmt_;
};

/// BEGIN IMMEDIATE ... COMMIT, or a savepoint inside another one. Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(const Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  const Database& db_;
  bool nested_, open_ = true;
};

}  // namespace beamline::db
