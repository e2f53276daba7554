#include "reports/json_rows.h"

#include <fmt/format.h>

namespace beamline::reports {
namespace {

using nlohmann::ordered_json;

std::string hex(const std::string& bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace

ordered_json json_cell(const db::Cell& cell) {
  if (const auto* i = std::get_if<int64_t>(&cell)) return *i;
  if (const auto* d = std::get_if<double>(&cell)) return *d;
  if (const auto* s = std::get_if<std::string>(&cell)) return *s;
  if (const auto* b = std::get_if<db::Blob>(&cell)) return hex(b->bytes);
  return nullptr;
}

std::string cell_text(const db::Cell& cell) {
  if (const auto* i = std::get_if<int64_t>(&cell)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&cell)) return fmt::format("{:.6g}", *d);
  if (const auto* s = std::get_if<std::string>(&cell)) return *s;
  if (const auto* b = std::get_if<db::Blob>(&cell)) return hex(b->bytes);
  return "-";
}

ordered_json json_rows(const db::Table& table, const std::set<std::string>& json_columns) {
  ordered_json rows = ordered_json::array();
  for (const auto& cells : table.rows) {
    ordered_json row = ordered_json::object();
    for (size_t c = 0; c < table.columns.size(); ++c) {
      ordered_json value = json_cell(cells[c]);
      if (value.is_string() && json_columns.contains(table.columns[c])) {
        ordered_json parsed = ordered_json::parse(value.get<std::string>(), nullptr, false);
        if (!parsed.is_discarded()) value = std::move(parsed);
      }
      row[table.columns[c]] = std::move(value);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace beamline::reports
