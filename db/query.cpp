#include "db/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "db/schema.h"

namespace beamline::db {
namespace {

// Denies what sqlite3_stmt_readonly lets pass: ATTACH, BEGIN, settings, loading of code.
int only_reading(void* refused, int action, const char* name, const char* argument, const char*,
                 const char*) {
  static const std::set<std::string_view> telling = {
      "table_info",  "table_xinfo",      "table_list",    "index_list",        "index_info",
      "index_xinfo", "foreign_key_list", "database_list", "foreign_key_check", "integrity_check",
      "quick_check", "function_list",    "collation_list"};
  static const std::set<std::string_view> settings = {
      "user_version", "application_id", "journal_mode",   "page_size",      "page_count",
      "encoding",     "freelist_count", "schema_version", "compile_options"};
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (!argument || sqlite3_stricmp(argument, "load_extension") != 0) return SQLITE_OK;
      break;
    case SQLITE_PRAGMA:
      if (telling.count(name) != 0 || (settings.count(name) != 0 && !argument)) return SQLITE_OK;
      break;
    default: break;
  }
  *static_cast<bool*>(refused) = true;
  return SQLITE_DENY;
}

// While it lives, the connection can only read.
class ReadingOnly {
 public:
  explicit ReadingOnly(const Database& db) : db_(db) {
    Statement s(db_, "PRAGMA query_only");
    was_ = s.step() && s.integer(0) != 0;
    db_.execute("PRAGMA query_only=ON");
    sqlite3_set_authorizer(db_.handle(), only_reading, &refused_);
  }
  ~ReadingOnly() {
    sqlite3_set_authorizer(db_.handle(), nullptr, nullptr);
    if (!was_) sqlite3_exec(db_.handle(), "PRAGMA query_only=OFF", nullptr, nullptr, nullptr);
  }
  ReadingOnly(const ReadingOnly&) = delete;
  ReadingOnly& operator=(const ReadingOnly&) = delete;
  bool refused() const { return refused_; }

 private:
  const Database& db_;
  bool was_ = false, refused_ = false;
};

Cell cell(const Statement& s, int c) {
  switch (s.type(c)) {
    case Statement::Type::Null: return {};
    case Statement::Type::Integer: return s.integer(c);
    case Statement::Type::Real: return s.real(c);
    case Statement::Type::Text: return s.text(c);
    case Statement::Type::Blob: return Blob{s.text(c)};
  }
  return {};
}

// Whether only blanks, semicolons and comments are left.
bool nothing_left(const Database& db, std::string_view rest) {
  while (!rest.empty()) {
    sqlite3_stmt* next = nullptr;
    const char* end = nullptr;
    const int code =
        sqlite3_prepare_v2(db.handle(), rest.data(), static_cast<int>(rest.size()), &next, &end);
    sqlite3_finalize(next);
    if (code != SQLITE_OK || next) return false;
    if (end == rest.data()) return true;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  return true;
}

class Checker {
 public:
  explicit Checker(const Database& db) : db_(db) {}
  std::vector<Finding> take() { return std::move(findings_); }

  // Each row of the statement is a finding with its first column as text.
  void run(const char* check, const std::string& where, const std::string& sql) {
    size_t count = 0;
    try {
      Statement s(db_, sql);
      while (s.step())
        if (count++ < most) findings_.push_back({check, where, s.text(0)});
    } catch (const DbError& e) {
      findings_.push_back({check, where, e.message()});
    }
    if (count > most) findings_.push_back({check, where, fmt::format("and {} more", count - most)});
  }

  // Reads every value of a view and compares its storage class with the declared type.
  void values_of(const std::string& view) {
    std::string cases, id;
    try {
      Statement s(db_, fmt::format("PRAGMA table_info({})", view));
      while (s.step()) {
        const std::string name = s.text(1);
        std::string type = s.text(2);
        std::transform(type.begin(), type.end(), type.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (id.size() < 1 || name == "device_id" || name == "mode")
          id += fmt::format("{}'{}=' || quote({})", id.empty() ? "" : " || ' ' || ", name, name);
        cases +=
            fmt::format(" WHEN typeof({0}) NOT IN ('{1}', 'null') THEN '{0} holds ' || typeof({0})",
                        name, type);
        if (type == "real")
          cases +=
              fmt::format(" WHEN abs({0}) > 1.7976931348623157e308 THEN '{0} is infinite'", name);
        if (std::find(json.begin(), json.end(),
                      std::pair<std::string_view, std::string_view>(view, name)) != json.end())
          cases += fmt::format(" WHEN json_valid({0}) = 0 THEN '{0} is no JSON'", name);
      }
    } catch (const DbError& e) {
      findings_.push_back({"view", view, e.message()});
      return;
    }
    if (cases.empty()) {
      findings_.push_back({"view", view, "it is missing"});
      return;
    }
    run("row", view,
        fmt::format("SELECT {} || ': ' || bad FROM (SELECT *, CASE {} END AS bad FROM "
                    "{}) WHERE bad IS NOT NULL",
                    id, cases, view));
  }

 private:
  static constexpr size_t most = 20;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> json = {
      {{"best_opts", "tie_opts"},
       {"kernels", "shape"},
       {"workloads", "params"},
       {"devices", "facts"}}};
  const Database& db_;
  std::vector<Finding> findings_;
};

}  // namespace

std::variant<Table, std::string> query(const Database& db, std::string_view sql) {
  ReadingOnly reading(db);
  const auto reason = [&]() -> std::string {
    if (reading.refused()) return "a query only reads: the statement is not allowed";
    const int at = sqlite3_error_offset(db.handle());
    const std::string text = sqlite3_errmsg(db.handle());
    return at < 0 ? text : fmt::format("{} (at character {})", text, at + 1);
  };
  if (sql.find('\0') != std::string_view::npos) return "the statement contains a zero byte";
  sqlite3_stmt* raw = nullptr;
  const char* end = nullptr;
  if (sqlite3_prepare_v2(db.handle(), sql.data(), static_cast<int>(sql.size()), &raw, &end) !=
      SQLITE_OK)
    return reason();
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> probe(raw, sqlite3_finalize);
  if (!probe) return "expected one SQL statement";
  if (!sqlite3_stmt_readonly(raw)) return "a query only reads: the statement would write";
  const auto used = static_cast<size_t>(end - sql.data());
  if (!nothing_left(db, sql.substr(used))) return "expected one SQL statement, found more";
  if (sqlite3_bind_parameter_count(raw) != 0)
    return "the statement has a parameter without a value";

  Table t;
  Statement s(db, sql.substr(0, used));
  for (int c = 0; c < s.columns(); c++) t.columns.push_back(s.column_name(c));
  try {
    while (s.step()) {
      std::vector<Cell> row;
      for (int c = 0; c < s.columns(); c++) row.push_back(cell(s, c));
      t.rows.push_back(std::move(row));
    }
  } catch (const DbError& e) {
    if (e.fault() != Fault::Other) throw;  // of the file, not of the statement
    return e.message();
  }
  return t;
}

Info info(const Database& db) {
  Info i;
  i.path = db.path();
  i.notes = db.notes();
  const auto text = [&](const std::string& sql) {
    Statement s(db, sql);
    return s.step() ? s.text(0) : "";
  };
  i.journal_mode = text("PRAGMA journal_mode");
  i.schema_version = std::stoll(text("PRAGMA user_version"));
  for (const char* part : {"", "-wal"}) {
    std::error_code ec;
    const auto size = std::filesystem::file_size(db.path() + part, ec);
    if (!ec) i.bytes += static_cast<int64_t>(size);
  }
  for (const std::string& view : view_names()) {
    int64_t count = -1;
    try {
      count = std::stoll(text("SELECT count(*) FROM " + view));
    } catch (const DbError&) {  // check() tells why
    }
    i.rows.emplace_back(view, count);
  }
  return i;
}

std::vector<Finding> check(const Database& db) {
  Checker c(db);
  c.run("integrity", "file",
        "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'");
  c.run("foreign key", "file", R"sql(
      SELECT "table" || ' row ' || coalesce(rowid, '?') || ' refers to a missing row of ' || parent
      FROM pragma_foreign_key_check)sql");
  for (const std::string& view : view_names()) c.values_of(view);
  c.run("best", "best_opts", R"sql(
      SELECT kernel_key || ' on ' || device_id || ': ' || CASE
        WHEN verified IS NOT 1 THEN 'its result was not verified'
        WHEN coalesce(sessions, 0) < 1 THEN 'no session stands behind its time'
        WHEN best_ns IS NULL OR best_ns <= 0 THEN 'its time is no time'
        ELSE 'its kernel is missing' END
      FROM best_opts b WHERE verified IS NOT 1 OR coalesce(sessions, 0) < 1 OR best_ns IS NULL
        OR best_ns <= 0
        OR NOT EXISTS (SELECT 1 FROM kernels k WHERE k.kernel_key = b.kernel_key))sql");
  // Trials may have been pruned; those that are there must not speak against the row.
  c.run("best", "trials", R"sql(
      SELECT b.kernel_key || ' on ' || b.device_id || ': no trial of run ' || b.run_id || ' was ok'
      FROM best_opts b WHERE 0 = (SELECT max(status = 'ok') FROM trials t WHERE t.run_id = b.run_id
        AND t.kernel_key = b.kernel_key AND t.device_id = b.device_id AND t.mode = b.mode))sql");
  return c.take();
}

}  // namespace beamline::db
