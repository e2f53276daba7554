#include "harness/cli/run_args.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "harness/cli/errors.h"

namespace beamline::cli {
namespace {

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(v) : std::nullopt;
}

// "last" is 0 back, "last-2" is 2 back.
std::optional<int64_t> steps_back(const std::string& name) {
  if (name == "last") return 0;
  if (!name.starts_with("last-")) return {};
  auto n = whole_number(name.substr(5));
  return n && *n >= 0 ? n : std::nullopt;
}

std::string known_runs(const db::Database& database) {
  std::string text;
  db::Statement s(database, "SELECT run_id, label FROM runs ORDER BY run_id DESC LIMIT 8");
  while (s.step())
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", s.integer(0),
                        s.is_null(1) ? "" : " '" + s.text(1) + "'");
  return text.empty() ? "the database has no run" : "newest runs: " + text;
}

}  // namespace

int64_t find_run(const db::Database& database, const std::string& name, const std::string& option) {
  std::optional<int64_t> found;
  if (auto back = steps_back(name)) {
    db::Statement s(database, "SELECT run_id FROM runs ORDER BY run_id DESC LIMIT 1 OFFSET ?");
    s.bind(1, *back);
    if (s.step()) found = s.integer(0);
  } else if (auto number = whole_number(name)) {
    db::Statement s(database, "SELECT run_id FROM runs WHERE run_id = ?");
    s.bind(1, *number);
    if (s.step()) found = s.integer(0);
  }
  if (!found) {
    db::Statement s(database, "SELECT max(run_id) FROM runs WHERE label = ?");
    s.bind(1, name);
    if (s.step()) found = s.optional_integer(0);
  }
  if (!found)
    throw UsageError(fmt::format("{}: there is no run '{}' (a number, last, last-N or a label; {})",
                                 option, name, known_runs(database)));
  return *found;
}

}  // namespace beamline::cli
