// The terminal viewer of a trace: passes and their rewrites, stepped through with keys.
#pragma once
#include <string>

#include "engine/rewrite/trace.h"

namespace beamline::cli {

/// What is on the screen, apart from the terminal: pure, so that it can be tested.
class TraceScreen {
 public:
  TraceScreen(const RecordedTrace& trace, std::string title);
  /// False ends the viewer. Keys: n p, right left (pass); j k, down up (rewrite); J K, page down,
  /// page up (ten); g G (first, last); q.
  bool key(const std::string& key);
  /// The lines of a screen of this size; escape sequences only where `color`.
  std::string draw(size_t rows, size_t columns, bool color) const;

  size_t pass() const { return pass_; }
  size_t rewrite() const { return rewrite_; }

 private:
  const RecordedTrace& trace_;
  std::string title_;
  size_t pass_ = 0, rewrite_ = 0;
};

/// Runs it on the terminal of stdin and stdout until it is ended.
void view_trace(const RecordedTrace& trace, const std::string& title, bool color);

}  // namespace beamline::cli
