#include "reports/text_table.h"

#include <algorithm>

namespace beamline::reports {

size_t text_width(const std::string& utf8) {
  return static_cast<size_t>(std::ranges::count_if(
      utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(text_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], text_width(row[c]));
  }
  std::string out;
  auto line = [&](auto cell) {
    std::string text;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& s = cell(c);
      std::string pad(widths[c] - text_width(s), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].align == Align::Right ? pad + s : s + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) line([&](size_t c) -> const std::string& { return row[c]; });
  return out;
}

}  // namespace beamline::reports
