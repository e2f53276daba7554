// A recorded trace as lines: its nodes as short expressions.
#pragma once
#include <string>
#include <unordered_map>

#include "engine/rewrite/trace.h"

namespace beamline::cli {

/// Finds the nodes of a trace, which must outlive it.
class TraceNodes {
 public:
  explicit TraceNodes(const RecordedTrace& trace);
  /// ADD(MUL(RANGE[id=0,type=LOOP], 4), ...): constants as their values, what is deeper than
  /// `depth` as the number of its node.
  std::string expression(uint32_t id, int depth = 3) const;

 private:
  std::unordered_map<uint32_t, const TracedNode*> by_id_;
};

/// One line: rule, place, ns, before and after; at most `columns` wide where that is not 0.
std::string rewrite_line(const TraceNodes& nodes, const TracedRewrite& r, size_t columns = 0);
/// One line: name, nodes, us, rewrites.
std::string pass_line(const TracedPass& pass);
/// All of it, as it is printed where no one steps through it.
std::string trace_text(const RecordedTrace& trace);

}  // namespace beamline::cli
