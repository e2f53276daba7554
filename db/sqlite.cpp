#include "db/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

namespace beamline::db {
namespace {
namespace fs = std::filesystem;

constexpr size_t shown_sql = 200;  // characters of a statement that an error shows
constexpr const char* memory_path = ":memory:";

Fault fault_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Fault::Busy;
    case SQLITE_READONLY:
    case SQLITE_PERM: return Fault::ReadOnly;
    case SQLITE_NOTADB: return Fault::NotADatabase;
    case SQLITE_CORRUPT: return Fault::Damaged;
    case SQLITE_CONSTRAINT: return Fault::Constraint;
    default: return Fault::Other;
  }
}

[[noreturn]] void fail(sqlite3* db, const std::string& file, std::string_view sql) {
  const int code = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
  std::string text = db ? sqlite3_errmsg(db) : sqlite3_errstr(SQLITE_NOMEM);
  const Fault fault = fault_of(code);
  if (fault == Fault::NotADatabase) text = "it is not a SQLite database, or its header is damaged";
  if (fault == Fault::Damaged) text = "the file is damaged: " + text;
  if (fault == Fault::Busy) text += ": another process holds it";
  if (fault == Fault::ReadOnly) text += ": the file or its directory is read-only";
  throw DbError(fault, file, text, std::string(sql.substr(0, shown_sql)));
}

std::string file_of(sqlite3* db) {
  const char* name = sqlite3_db_filename(db, "main");
  return name && *name ? name : memory_path;
}

fs::path directory_of(const std::string& path) {
  const fs::path dir = fs::path(path).parent_path();
  return dir.empty() ? fs::path(".") : dir;
}

// The log's index is shared memory, which two hosts do not share. Magic numbers of statfs(2).
bool on_network(const std::string& path) {
  constexpr std::array<uint32_t, 13> remote = {
      0x6969,     /* nfs */ 0x517b,      /* smb */ 0xff534d42,    /* cifs */ 0xfe534d42, /* smb2 */
      0x65735546, /* fuse */ 0x01021997, /* 9p */ 0x0bd00bd0,     /* lustre */
      0x47504653, /* gpfs */ 0x19830326, /* beegfs */ 0x00c36400, /* ceph */
      0x5346414f, /* afs */ 0x73757245,  /* coda */ 0x786f4256,   /* vboxsf */
  };
  struct statfs s {};
  if (statfs(directory_of(path).c_str(), &s) != 0) return false;
  return std::find(remote.begin(), remote.end(), static_cast<uint32_t>(s.f_type)) != remote.end();
}

// SQLite reads "file:..." as a URI; ours are plain paths.
std::string plain(const std::string& path) {
  return path.rfind("file:", 0) == 0 ? "./" + path : path;
}
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool safe = std::isalnum(static_cast<unsigned char>(c)) ||
                      std::string_view("/._-").find(c) != std::string_view::npos;
    uri += safe ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

// Neither the log nor its index can be made or shared here; told by the codes below.
bool no_shared_memory(const Database& db) {
  const int code = sqlite3_errcode(db.handle()) & 0xff;
  return code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_IOERR ||
         code == SQLITE_PROTOCOL;
}

void check_place(const std::string& path, bool writer) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) throw DbError(Fault::Other, path, "it is a directory");
  const bool there = fs::exists(path, ec);
  if (!writer && !there) throw DbError(Fault::Missing, path, "no such file");
  if (!writer) return;
  const fs::path dir = directory_of(path);
  fs::create_directories(dir, ec);
  if (ec) throw DbError(Fault::ReadOnly, path, "cannot create its directory: " + ec.message());
  const auto writable = [](const fs::path& p) {
    return faccessat(AT_FDCWD, p.c_str(), W_OK, AT_EACCESS) == 0;
  };
  if (there && !writable(path)) throw DbError(Fault::ReadOnly, path, "the file is read-only");
  if (!writable(dir))
    throw DbError(Fault::ReadOnly, path, "its directory is read-only, a journal is kept there");
}

}  // namespace

DbError::DbError(Fault fault, std::string file, std::string message, std::string statement)
    : std::runtime_error(fmt::format("database {}: {}{}", file, message,
                                     statement.empty() ? "" : fmt::format(" ({})", statement))),
      fault_(fault),
      file_(std::move(file)),
      message_(std::move(message)),
      statement_(std::move(statement)) {}

void Database::Closer::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Database::Database(const std::string& path, Access access, const OpenOptions& options)
    : path_(path), options_(options) {
  if (path.empty()) throw DbError(Fault::Missing, "''", "the path is empty");
  const bool writer = access == Access::ReadWrite;
  if (path != memory_path) check_place(path, writer);
  try {
    open(plain(path), writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
    probe();
  } catch (const DbError&) {
    if (!no_shared_memory(*this)) throw;
    if (writer) {  // alone, SQLite keeps the log's index in its own memory
      execute("PRAGMA locking_mode=EXCLUSIVE");
    } else {
      std::error_code ec;
      if (const auto log = fs::file_size(path + "-wal", ec); !ec && log > 0)
        throw DbError(Fault::ReadOnly, path,
                      "its write-ahead log cannot be read in a read-only directory; "
                      "copy the database and its -wal file to another one");
      open(immutable_uri(path), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
      notes_.push_back("read as immutable: its directory is read-only");
    }
    probe();
  }
}

void Database::open(const std::string& name, int flags) {
  sqlite3* raw = nullptr;
  const char* vfs = options_.vfs.empty() ? nullptr : options_.vfs.c_str();
  const int code = sqlite3_open_v2(name.c_str(), &raw, flags, vfs);
  db_.reset(raw);
  if (code != SQLITE_OK) fail(raw, path_, "open");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, options_.busy_ms);
  execute("PRAGMA foreign_keys=ON; PRAGMA cell_size_check=ON; PRAGMA trusted_schema=OFF");
}

void Database::probe() const { Statement(*this, "SELECT count(*) FROM sqlite_master").step(); }

std::string Database::switch_journal(const char* mode) const {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(options_.busy_ms);
  for (;;) {  // SQLite does not always call its busy handler for this pragma
    try {
      Statement s(*this, fmt::format("PRAGMA journal_mode={}", mode));
      return s.step() ? s.text(0) : "";
    } catch (const DbError& e) {
      if (e.fault() != Fault::Busy || Clock::now() > deadline) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Database::choose_journal() {
  if (path_ == memory_path) return;
  const auto pragma = [&](const char* name) {
    Statement s(*this, fmt::format("PRAGMA {}", name));
    return s.step() ? s.text(0) : "";
  };
  const bool alone = pragma("locking_mode") == "exclusive";
  const bool remote = on_network(path_);
  const bool want_log = options_.wal && !alone && !remote;
  std::string mode = pragma("journal_mode");
  if ((mode == "wal") != want_log) mode = switch_journal(want_log ? "WAL" : "DELETE");
  if (alone) {
    execute("PRAGMA locking_mode=NORMAL");
    probe();  // the lock is given back by the next access
  }
  // With a log, a lost last transaction is the worst that a power cut does; without, a damaged
  // file.
  execute(mode == "wal" ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL");
  if (options_.wal && mode != "wal")
    notes_.push_back(fmt::format("{}: rollback journal instead of a write-ahead log",
                                 remote ? "on a network file system" : "no shared memory here"));
}

void Database::execute(const std::string& sql) const {
  if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(handle(), path_, sql);
}
int64_t Database::last_id() const { return sqlite3_last_insert_rowid(handle()); }
int Database::changes() const { return sqlite3_changes(handle()); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(handle()) == 0; }

void Statement::Finalizer::operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }

Statement::Statement(const Database& db, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  stmt_.reset(raw);
  if (code != SQLITE_OK) fail(db.handle(), db.path(), sql);
}

void Statement::require(bool ok) const {
  if (ok) return;
  sqlite3* db = sqlite3_db_handle(handle());
  fail(db, file_of(db), sqlite3_sql(handle()));
}
Statement& Statement::bind(int i, int64_t v) {
  require(sqlite3_bind_int64(handle(), i, v) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind(int i, double v) {
  if (!std::isfinite(v)) return bind_null(i);
  require(sqlite3_bind_double(handle(), i, v) == SQLITE_OK);
  return *this;
}
Statement& Statement::bind(int i, std::string_view v) {
  const char* data = v.data() ? v.data() : "";  // a null pointer would be NULL
  require(sqlite3_bind_text64(handle(), i, data, v.size(), SQLITE_TRANSIENT, SQLITE_UTF8) ==
          SQLITE_OK);
  return *this;
}
Statement& Statement::bind_null(int i) {
  require(sqlite3_bind_null(handle(), i) == SQLITE_OK);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle());
  require(code == SQLITE_ROW || code == SQLITE_DONE);
  return code == SQLITE_ROW;
}
void Statement::run() {
  while (step()) {
  }
  reset();
}
void Statement::reset() {
  sqlite3_reset(handle());
  sqlite3_clear_bindings(handle());
}

int Statement::columns() const { return sqlite3_column_count(handle()); }
std::string Statement::column_name(int c) const {
  const char* name = sqlite3_column_name(handle(), c);
  return name ? name : "";
}
Statement::Type Statement::type(int c) const {
  switch (sqlite3_column_type(handle(), c)) {
    case SQLITE_NULL: return Type::Null;
    case SQLITE_INTEGER: return Type::Integer;
    case SQLITE_FLOAT: return Type::Real;
    case SQLITE_BLOB: return Type::Blob;
    default: return Type::Text;
  }
}
int64_t Statement::integer(int c) const { return sqlite3_column_int64(handle(), c); }
double Statement::real(int c) const { return sqlite3_column_double(handle(), c); }
std::string Statement::text(int c) const {
  const void* data =
      type(c) == Type::Blob ? sqlite3_column_blob(handle(), c) : sqlite3_column_text(handle(), c);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(handle(), c));
  return data ? std::string(static_cast<const char*>(data), size) : "";
}
std::optional<int64_t> Statement::optional_integer(int c) const {
  return is_null(c) ? std::nullopt : std::optional(integer(c));
}
std::optional<double> Statement::optional_real(int c) const {
  return is_null(c) ? std::nullopt : std::optional(real(c));
}
std::optional<std::string> Statement::optional_text(int c) const {
  return is_null(c) ? std::nullopt : std::optional(text(c));
}

Transaction::Transaction(const Database& db) : db_(db), nested_(db.in_transaction()) {
  db_.execute(nested_ ? "SAVEPOINT nested" : "BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
  // SQLite has already rolled back by itself after some errors (a full disk).
  if (!open_ || !db_.in_transaction()) return;
  const char* undo = nested_ ? "ROLLBACK TO nested; RELEASE nested" : "ROLLBACK";
  sqlite3_exec(db_.handle(), undo, nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  db_.execute(nested_ ? "RELEASE nested" : "COMMIT");
  open_ = false;
}

}  // namespace beamline::db
