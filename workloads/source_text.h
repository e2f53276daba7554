// A string of a workload file with the file position of every byte of its value: TOML strings come
// in four notations, with escapes and trimmed newlines, and a message must point into the file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "workloads/diagnostic.h"

namespace beamline::workloads {

class SourceText {
 public:
  SourceText() : at_{{1, 1}} {}
  /// Text that is not inside TOML: starts at line 1, column 1.
  explicit SourceText(std::string_view plain);
  /// The TOML string literal that starts (with its quotes) at `begin` of `file`. `value` is what
  /// the TOML parser made of it; should it differ from this reading, every position is `begin`.
  SourceText(std::string_view file, SourcePos begin, std::string_view value);

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  /// Position of byte i of text(), or of the end of the string for i == size().
  SourcePos at(size_t i) const { return at_[i < at_.size() ? i : at_.size() - 1]; }
  SourceText sub(size_t begin, size_t end) const;

 private:
  std::string text_;
  std::vector<SourcePos> at_;  // text_.size() + 1 entries
};

}  // namespace beamline::workloads
