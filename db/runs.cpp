#include "db/runs.h"

#include <fmt/format.h>

#include <charconv>

namespace beamline::db {
namespace {

constexpr std::string_view columns =
    "run_id, label, command, device_id, started_at, ended_at, status, seed, budget, "
    "engine_version, "
    "toolchain, host";

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) return {};
  return n;
}

RunInfo row_of(const Statement& s) {
  return {.run_id = s.integer(0),
          .label = s.text(1),
          .command = s.text(2),
          .device_id = s.text(3),
          .started_at = s.text(4),
          .ended_at = s.text(5),
          .status = s.text(6),
          .seed = s.integer(7),
          .budget = s.text(8),
          .engine_version = s.text(9),
          .toolchain = s.text(10),
          .host = s.text(11)};
}

}  // namespace

std::variant<RunInfo, std::string> find_run(const Database& db, std::string_view text) {
  if (auto id = whole_number(text)) {
    Statement s(db, fmt::format("SELECT {} FROM runs WHERE run_id = ?", columns));
    s.bind(1, *id);
    if (s.step()) return row_of(s);
    return fmt::format("there is no run {}", *id);
  }
  std::optional<int64_t> back;
  if (text == "last")
    back = 0;
  else if (text.starts_with("last-"))
    back = whole_number(text.substr(5));
  if (back) {
    Statement s(db,
                fmt::format("SELECT {} FROM runs ORDER BY run_id DESC LIMIT 1 OFFSET ?", columns));
    s.bind(1, *back);
    if (s.step()) return row_of(s);
    return fmt::format("there is no run '{}': the database has fewer", text);
  }
  Statement s(
      db, fmt::format("SELECT {} FROM runs WHERE label = ? ORDER BY run_id DESC LIMIT 1", columns));
  s.bind(1, text);
  if (s.step()) return row_of(s);
  return fmt::format("there is no run '{}' (expected a number, last, last-N or a label)", text);
}

}  // namespace beamline::db
