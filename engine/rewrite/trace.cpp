#include "engine/rewrite/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/ir/print.h"

namespace beamline {
namespace {

std::string_view file_of(const Rule& rule) {
  const std::string_view file = rule.where.file_name();
  return file.substr(file.find_last_of('/') + 1);
}

}  // namespace

RuleCount& RuleCounts::of(const Rule& rule) {
  const auto [it, fresh] = index_.emplace(&rule, list_.size());
  if (fresh) list_.emplace_back(&rule, RuleCount{});
  return list_[it->second].second;
}
std::string RuleCounts::text() const {
  auto sorted = list_;
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  std::string out = fmt::format("{:<24} {:>9} {:>9} {:>9} {:>11} {:>8}\n", "rule", "tried",
                                "matched", "applied", "us", "ns/try");
  for (const auto& [rule, c] : sorted)
    out += fmt::format("{:<24} {:>9} {:>9} {:>9} {:>11.1f} {:>8.0f}\n", rule->name, c.tried,
                       c.matched, c.applied, c.ns / 1000, c.ns / static_cast<double>(c.tried));
  return out;
}

void TextTrace::rewrote(const Rule& rule, UOp before, UOp after, double ns) {
  if (rewrites_++ >= max_lines_) return;
  pending_.push_back(fmt::format("  {} {}:{} #{} {} -> #{} {} {:.0f} ns\n", rule.name,
                                 file_of(rule), rule.where.line(), before.id(),
                                 op_name(before.op()), after.id(), op_name(after.op()), ns));
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

RecordedTrace::RecordedTrace(UOp start, size_t max_rewrites) : max_rewrites_(max_rewrites) {
  running_.root_before = record(start);
}

void RecordedTrace::rewrote(const Rule& rule, UOp before, UOp after, double ns) {
  if (recorded_ == max_rewrites_) {
    left_out_++;
    return;
  }
  recorded_++;
  running_.rewrites.push_back({std::string(rule.name), std::string(file_of(rule)),
                               rule.where.line(), record(before), record(after), ns});
}

void RecordedTrace::pass(std::string_view name, UOp graph, double ns) {
  running_.name = name, running_.ns = ns;
  running_.root_after = record(graph);
  running_.nodes = toposort(graph).size();
  passes_.push_back(std::move(running_));
  running_ = {};
  running_.root_before = graph.id();
}

uint32_t RecordedTrace::record(UOp root) {
  std::vector<UOp> stack{root};
  while (!stack.empty()) {
    const UOp u = stack.back();
    stack.pop_back();
    if (u.id() >= known_.size()) known_.resize(u.id() + 1024);
    if (known_[u.id()]) continue;  // and with it all below
    known_[u.id()] = true;
    TracedNode n{u.id(),
                 std::string(op_name(u.op())),
                 std::string(dtype_name(u.dtype())),
                 print_argument(u),
                 {}};
    for (size_t i = 0; i < u.nsrc(); i++) {
      n.src.push_back(u.src(i).id());
      stack.push_back(u.src(i));
    }
    nodes_.push_back(std::move(n));
  }
  return root.id();
}

}  // namespace beamline
