// Traces: which rule rewrote what, when and in how long, pass by pass. TextTrace is one line a
// rewrite:
//   fold-add folding.cpp:41 #11 ADD -> #15 CONST 320 ns
// RecordedTrace keeps all of it for viewers, without a UOp: it may outlive the arena. Not thread
// safe.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/rewrite/rule.h"

namespace beamline {

/// While it lives, the rewrites of this thread that were given no trace go to this one; those that
/// a rule does on the way, to try something, do not.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace) : before_(current_) { current_ = trace; }
  ~TraceScope() { current_ = before_; }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  static Trace* current() { return current_; }

 private:
  Trace* before_;
  static inline thread_local Trace* current_ = nullptr;
};

/// Attempts by rule; a trace that counts derives from it.
class RuleCounts {
 public:
  RuleCount& of(const Rule& rule);
  /// A table of the rules that were tried, those that took longest first.
  std::string text() const;
  const std::vector<std::pair<const Rule*, RuleCount>>& list() const { return list_; }

 private:
  std::vector<std::pair<const Rule*, RuleCount>> list_;  // in the order of their first attempt
  std::unordered_map<const Rule*, size_t> index_;
};

/// Collects lines; `max_lines` bounds the memory, what is beyond is counted.
class TextTrace : public Trace {
 public:
  explicit TextTrace(size_t max_lines = 100000) : max_lines_(max_lines) {}
  void rewrote(const Rule& rule, UOp before, UOp after, double ns) override;

  /// Ends a section, such as a pass: what it left behind and the ns it took.
  void pass(std::string_view name, UOp graph, double ns);

  std::string text() const;
  size_t rewrites() const { return rewrites_; }

 private:
  size_t max_lines_, rewrites_ = 0;
  std::vector<std::string> pending_;  // of the pass that is running
  std::string text_;
};

struct TracedNode {
  uint32_t id = 0;
  std::string op, dtype, arg;  // arg as in the UOp text
  std::vector<uint32_t> src;   // ids
};
struct TracedRewrite {
  std::string rule, file;  // the file's name without folders
  uint32_t line = 0;
  uint32_t before = 0, after = 0;
  double ns = 0;
};
struct TracedPass {
  std::string name;
  uint32_t root_before = 0, root_after = 0;
  double ns = 0;
  size_t nodes = 0;  // of the graph after it
  std::vector<TracedRewrite> rewrites;
};

class RecordedTrace : public Trace {
 public:
  /// `start` is the graph that the first pass gets; beyond `max_rewrites` they are only counted.
  explicit RecordedTrace(UOp start, size_t max_rewrites = 20000);
  void rewrote(const Rule& rule, UOp before, UOp after, double ns) override;
  RuleCount* count(const Rule& rule) override { return &counts_.of(rule); }
  /// Ends a pass, as TextTrace::pass.
  void pass(std::string_view name, UOp graph, double ns);

  const std::vector<TracedPass>& passes() const { return passes_; }
  /// Every node that a root or a rewrite names, with all below it; each once.
  const std::vector<TracedNode>& nodes() const { return nodes_; }
  size_t left_out() const { return left_out_; }
  const RuleCounts& counts() const { return counts_; }

 private:
  uint32_t record(UOp root);

  size_t max_rewrites_, recorded_ = 0, left_out_ = 0;
  TracedPass running_;
  std::vector<TracedPass> passes_;
  std::vector<TracedNode> nodes_;
  std::vector<bool> known_;  // by id
  RuleCounts counts_;
};

}  // namespace beamline
