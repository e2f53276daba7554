// A row type lists its columns once, in `each_column(row, f)` with f(name, field[,
// Column::OrNull]); names, parameters and reading follow from that list, in its order.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "db/sqlite.h"

namespace beamline::db::row {

enum class Column { Value, OrNull };  // OrNull: an empty text is stored as NULL

template <class Row>
std::string names() {
  std::string out;
  Row row;
  each_column(row, [&](const char* name, auto&, Column = Column::Value) {
    out += out.empty() ? name : std::string(", ") + name;
  });
  return out;
}

template <class T>
void bind_field(Statement& s, int i, const T& v, Column) {
  s.bind(i, v);
}
inline void bind_field(Statement& s, int i, const std::string& v, Column kind) {
  kind == Column::OrNull&& v.empty() ? s.bind_null(i) : s.bind(i, v);
}
template <class Row>
Statement& bind(Statement& s, const Row& row) {
  int i = 0;
  each_column(row, [&](const char*, const auto& v, Column kind = Column::Value) {
    bind_field(s, ++i, v, kind);
  });
  return s;
}

/// INSERT of all columns; `conflict` = the key columns of an upsert that sets all the others.
template <class Row>
std::string insert_sql(const char* table, const char* conflict = nullptr) {
  std::string marks, sets;
  Row row;
  each_column(row, [&](const char* name, auto&, Column = Column::Value) {
    marks += marks.empty() ? "?" : ", ?";
    sets += fmt::format("{}{}=excluded.{}", sets.empty() ? "" : ", ", name, name);
  });
  std::string sql = fmt::format("INSERT INTO {} ({}) VALUES ({})", table, names<Row>(), marks);
  if (conflict) sql += fmt::format(" ON CONFLICT ({}) DO UPDATE SET {}", conflict, sets);
  return sql;
}

using Type = Statement::Type;
inline bool read_field(const Statement& s, int c, std::string& v, Column kind) {
  v = s.text(c);
  return s.type(c) == Type::Text || (kind == Column::OrNull && s.is_null(c));
}
inline bool read_field(const Statement& s, int c, double& v, Column) {
  v = s.real(c);
  return s.type(c) == Type::Real;
}
inline bool read_field(const Statement& s, int c, std::optional<double>& v, Column) {
  v = s.optional_real(c);
  return s.is_null(c) || s.type(c) == Type::Real;
}
inline bool read_field(const Statement& s, int c, int64_t& v, Column) {
  v = s.integer(c);
  return s.type(c) == Type::Integer;
}
inline bool read_field(const Statement& s, int c, bool& v, Column) {
  v = s.integer(c) != 0;
  return s.type(c) == Type::Integer;
}
/// Reads the current row from column 0 on. The name of the first unreadable column, or null.
template <class Row>
const char* read(const Statement& s, Row& row) {
  int c = 0;
  const char* bad = nullptr;
  each_column(row, [&](const char* name, auto& v, Column kind = Column::Value) {
    if (!read_field(s, c++, v, kind) && !bad) bad = name;
  });
  return bad;
}

}  // namespace beamline::db::row
