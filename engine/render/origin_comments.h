// Comments in a source text that say which line of a workload the text after them computes. Nothing
// without a current Provenance.
#pragma once
#include <string>
#include <string_view>

#include "engine/ir/provenance.h"

namespace beamline {

class OriginComments {
 public:
  /// u gave the part of `text` from `at` on: names where u comes from, when it is another place
  /// than before.
  void note(UOp u, std::string& text, size_t at, std::string_view indent, std::string_view mark) {
    Provenance* table = Provenance::current();
    if (!table || text.size() == at) return;
    const std::string& origin = table->origin(u);
    if (origin.empty() || origin == last_) return;
    last_ = origin;
    text.insert(at, std::string(indent) + std::string(mark) + origin + "\n");
  }

 private:
  std::string last_;
};

}  // namespace beamline
