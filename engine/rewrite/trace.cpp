#include "engine/rewrite/trace.h"

#include <fmt/format.h>

namespace beamline {

void TextTrace::rewrote(const Rule& rule, UOp before, UOp after) {
  if (rewrites_++ >= max_lines_) return;
  std::string_view file = rule.where.file_name();
  file = file.substr(file.find_last_of('/') + 1);
  pending_.push_back(fmt::format("  {} {}:{} #{} {} -> #{} {}\n", rule.name, file,
                                 rule.where.line(), before.id(), op_name(before.op()), after.id(),
                                 op_name(after.op())));
}

void TextTrace::pass(std::string_view name, UOp graph, double ns) {
  text_ += fmt::format("{}: {} nodes, {:.0f} us", name, toposort(graph).size(), ns / 1000);
  text_ += pending_.empty() ? "\n" : fmt::format(", {} rewrites\n", pending_.size());
  for (const std::string& line : pending_) text_ += line;
  pending_.clear();
}

std::string TextTrace::text() const {
  std::string out = text_;
  for (const std::string& line : pending_) out += line;
  if (rewrites_ > max_lines_)
    out += fmt::format("  ... {} more rewrites\n", rewrites_ - max_lines_);
  return out;
}

}  // namespace beamline
