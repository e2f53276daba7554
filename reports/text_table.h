// A table for a terminal or a log: aligned columns, two blanks between, no trailing blanks.
#pragma once
#include <string>
#include <vector>

namespace beamline::reports {

class TextTable {
 public:
  enum class Align { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Left;
  };

  explicit TextTable(std::vector<Column> columns);
  /// One text a column; missing ones are empty.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Characters that a UTF-8 text takes on a terminal, wide ones and marks left aside.
size_t text_width(const std::string& utf8);

}  // namespace beamline::reports
