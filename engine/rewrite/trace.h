// A trace as text: which rule rewrote what, in order. One line a rewrite:
//   fold-add folding.cpp:41 #11 ADD -> #15 CONST
#pragma once
#include <string>
#include <vector>

#include "engine/rewrite/rule.h"

namespace beamline {

/// Collects lines; `max_lines` bounds the memory, what is beyond is counted. Not thread safe.
class TextTrace : public Trace {
 public:
  explicit TextTrace(size_t max_lines = 100000) : max_lines_(max_lines) {}
  void rewrote(const Rule& rule, UOp before, UOp after) override;

  /// Ends a section, such as a pass: what it left behind and the ns it took.
  void pass(std::string_view name, UOp graph, double ns);

  std::string text() const;
  size_t rewrites() const { return rewrites_; }

 private:
  size_t max_lines_, rewrites_ = 0;
  std::vector<std::string> pending_;  // of the pass that is running
  std::string text_;
};

}  // namespace beamline
