#include "harness/commands/ir_trace_text.h"

#include <fmt/format.h>

namespace beamline::cli {

TraceNodes::TraceNodes(const RecordedTrace& trace) {
  for (const TracedNode& n : trace.nodes()) by_id_.emplace(n.id, &n);
}

// The depth bounds the recursion and, with few operands, the length.
std::string TraceNodes::expression(uint32_t id, int depth) const {
  constexpr size_t most_operands = 6;
  const TracedNode& n = *by_id_.at(id);
  if (n.op == "CONST")
    return n.arg.starts_with("value=") ? n.arg.substr(6) : n.dtype;  // the poison has no value
  std::string s = n.op;
  if (!n.arg.empty()) s += "[" + n.arg + "]";
  if (n.src.empty()) return s;
  if (depth == 0) return fmt::format("{}#{}", s, id);
  s += "(";
  for (size_t i = 0; i < n.src.size(); i++) {
    if (i == most_operands) {
      s += fmt::format(", ... {} more", n.src.size() - i);
      break;
    }
    s += (i > 0 ? ", " : "") + expression(n.src[i], depth - 1);
  }
  return s + ")";
}

std::string rewrite_line(const TraceNodes& nodes, const TracedRewrite& r, size_t columns) {
  std::string s =
      fmt::format("{} {}:{} {:.0f} ns  #{} {} -> #{} {}", r.rule, r.file, r.line, r.ns, r.before,
                  nodes.expression(r.before, 2), r.after, nodes.expression(r.after, 2));
  if (columns > 0 && s.size() > columns) s.replace(columns - 1, std::string::npos, "~");
  return s;
}

std::string pass_line(const TracedPass& pass) {
  std::string s = fmt::format("{}: {} nodes, {:.0f} us", pass.name, pass.nodes, pass.ns / 1000);
  if (!pass.rewrites.empty()) s += fmt::format(", {} rewrites", pass.rewrites.size());
  if (pass.root_before == pass.root_after) s += " (unchanged)";
  return s;
}

std::string trace_text(const RecordedTrace& trace) {
  const TraceNodes nodes(trace);
  std::string out;
  for (const TracedPass& pass : trace.passes()) {
    out += pass_line(pass) + "\n";
    for (const TracedRewrite& r : pass.rewrites) out += "  " + rewrite_line(nodes, r) + "\n";
  }
  if (trace.left_out() > 0) out += fmt::format("... {} more rewrites\n", trace.left_out());
  return out;
}

}  // namespace beamline::cli
