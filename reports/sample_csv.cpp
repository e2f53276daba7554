#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "reports/sample_table.h"

namespace beamline::reports {
namespace {

using Error = std::string;

struct Row {
  size_t line = 0;  // from 1
  std::vector<std::string> cells;
};

// Splits one line; quotes as in RFC 4180, but no line break inside a cell.
std::variant<std::vector<std::string>, Error> split(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  if (quoted) return Error("a quote is not closed");
  for (std::string& cell : cells) {
    const size_t from = cell.find_first_not_of(" \t"), to = cell.find_last_not_of(" \t");
    cell = from == std::string::npos ? "" : cell.substr(from, to - from + 1);
  }
  return cells;
}

std::variant<std::vector<Row>, Error> read_rows(const std::string& text) {
  std::vector<Row> rows;
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view s(text.data() + at, end - at);
    at = end + 1;
    ++line;
    if (line == 1 && s.starts_with("\xEF\xBB\xBF")) s.remove_prefix(3);
    if (s.ends_with('\r')) s.remove_suffix(1);
    if (s.find_first_not_of(" \t") == std::string_view::npos || s.starts_with('#')) continue;
    auto cells = split(s);
    if (auto* e = std::get_if<Error>(&cells)) return fmt::format("line {}: {}", line, *e);
    rows.push_back({line, std::get<0>(std::move(cells))});
  }
  return rows;
}

std::optional<double> number(const std::string& text) {
  double v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  const bool whole = end == text.data() + text.size() && !text.empty();
  return whole && error == std::errc() ? std::optional(v) : std::nullopt;
}

class Table {
 public:
  explicit Table(std::vector<Row> rows) : header_(std::move(rows[0])), rows_(std::move(rows)) {
    rows_.erase(rows_.begin());
  }

  std::optional<Error> check() const {
    for (size_t c = 0; c < header_.cells.size(); ++c) {
      if (header_.cells[c].empty())
        return fmt::format("line {}: column {} has no name", header_.line, c + 1);
      if (std::ranges::count(header_.cells, header_.cells[c]) > 1)
        return fmt::format("line {}: column '{}' occurs twice", header_.line, header_.cells[c]);
    }
    if (rows_.empty()) return Error("there is no row below the header");
    for (const Row& r : rows_)
      if (r.cells.size() != header_.cells.size())
        return fmt::format("line {}: {} fields, the header has {}", r.line, r.cells.size(),
                           header_.cells.size());
    return {};
  }

  std::variant<size_t, Error> column(const std::string& name, const char* what) const {
    auto it = std::ranges::find(header_.cells, name);
    if (it != header_.cells.end()) return static_cast<size_t>(it - header_.cells.begin());
    std::string all;
    for (const std::string& c : header_.cells) all += (all.empty() ? "" : ", ") + c;
    return fmt::format("{}: there is no column '{}'; columns are {}", what, name, all);
  }

  // Where a value is no number.
  std::vector<size_t> text_columns() const {
    std::vector<size_t> list;
    for (size_t c = 0; c < header_.cells.size(); ++c)
      if (std::ranges::any_of(
              rows_, [&](const Row& r) { return !r.cells[c].empty() && !number(r.cells[c]); }))
        list.push_back(c);
    return list;
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::string& name(size_t c) const { return header_.cells[c]; }

 private:
  Row header_;
  std::vector<Row> rows_;
};

struct Session {
  double ref = std::numeric_limits<double>::quiet_NaN(), new_ = ref;  // fastest; NaN: none yet
};

std::variant<double, Error> time_of(const Table& t, const Row& row, size_t column) {
  const std::string& text = row.cells[column];
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto v = number(text);
  if (!v)
    return fmt::format("line {}, column '{}': '{}' is not a number of nanoseconds", row.line,
                       t.name(column), text);
  return std::isfinite(*v) && *v > 0 ? *v : std::numeric_limits<double>::quiet_NaN();
}

std::variant<int64_t, Error> integer_of(const Table& t, const Row& row, size_t column) {
  const std::string& text = row.cells[column];
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    return fmt::format("line {}, column '{}': '{}' is not an integer", row.line, t.name(column),
                       text);
  return v;
}

void keep_fastest(double& best, double ns) {
  if (!(best <= ns)) best = std::isnan(ns) ? best : ns;
}

}  // namespace

std::variant<SampleTable, std::string> read_samples_csv(const std::string& text,
                                                        const SampleColumns& columns) {
  auto read = read_rows(text);
  if (auto* e = std::get_if<Error>(&read)) return *e;
  if (std::get<0>(read).empty()) return Error("there is no header");
  const Table table(std::get<0>(std::move(read)));
  if (auto e = table.check()) return *e;

  size_t session = 0, ref = 0, new_ = 0;
  for (auto [to, name, what] :
       {std::tuple<size_t&, std::string, const char*>{session, "session", "session"},
        {ref, columns.ref, "--ref"},
        {new_, columns.new_, "--new"}}) {
    auto c = table.column(name, what);
    if (auto* e = std::get_if<Error>(&c)) return *e;
    to = std::get<size_t>(c);
  }
  if (ref == new_) return fmt::format("--ref and --new are both '{}'", columns.ref);
  std::vector<size_t> by;
  for (const std::string& name : columns.by) {
    auto c = table.column(name, "--by");
    if (auto* e = std::get_if<Error>(&c)) return *e;
    by.push_back(std::get<size_t>(c));
  }
  if (columns.by.empty())
    for (size_t c : table.text_columns())
      if (c != session && c != ref && c != new_ && table.name(c) != "sweep") by.push_back(c);
  auto sweep = table.column("sweep", "");

  SampleTable out;
  std::map<std::string, size_t> places;
  std::vector<std::map<int64_t, Session>> sessions;
  for (const Row& row : table.rows()) {
    std::string group;
    for (size_t c : by) group += (c == by[0] ? "" : ", ") + row.cells[c];
    auto number_of = integer_of(table, row, session);
    if (auto* e = std::get_if<Error>(&number_of)) return *e;
    if (const auto* c = std::get_if<size_t>(&sweep))
      if (auto s = integer_of(table, row, *c); std::holds_alternative<Error>(s))
        return std::get<Error>(s);
    auto a = time_of(table, row, ref), b = time_of(table, row, new_);
    for (auto* t : {&a, &b})
      if (auto* e = std::get_if<Error>(t)) return *e;
    auto [place, fresh] = places.try_emplace(group, out.groups.size());
    if (fresh) {
      out.groups.push_back({group, {}});
      sessions.emplace_back();
    }
    Session& s = sessions[place->second][std::get<int64_t>(number_of)];
    keep_fastest(s.ref, std::get<double>(a));
    keep_fastest(s.new_, std::get<double>(b));
  }
  for (size_t g = 0; g < out.groups.size(); ++g)
    for (const auto& [n, s] : sessions[g])
      out.groups[g].log_ratios.push_back(std::log(s.new_) - std::log(s.ref));
  return out;
}

}  // namespace beamline::reports
