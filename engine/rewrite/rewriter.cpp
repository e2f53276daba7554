#include "engine/rewrite/rewriter.h"

#include <deque>

#include <fmt/format.h>

#include "engine/ir/node_map.h"

namespace beamline {
namespace {

class Rewriter {
 public:
  Rewriter(const MatcherBase& rules, void* ctx, const RewriteOptions& o)
      : rules_(rules), ctx_(ctx), o_(o) {}

  UOp run(UOp root) {
    // The number of original nodes bounds the work: exceeding the limit per node on average is a
    // loop.
    const size_t budget = static_cast<size_t>(o_.limit) * (toposort(root).size() + 1);
    push(root);
    while (!stack_.empty()) {
      const Entry e = stack_.back();
      stack_.pop_back();
      if (e.stage == 0)
        enter(e);
      else if (e.stage == 1)
        leave(e);
      else
        finish(e);
      if (applied_ > budget) throw RewriteLoop(loop_text());
    }
    // A replacement that contains what it replaces waits for itself.
    const UOp result = settled(root);
    if (!result) throw RewriteLoop(loop_text());
    return result;
  }

 private:
  struct Entry {
    UOp original;
    int stage;
    UOp current;
  };

  void push(UOp u) {
    if (results_.insert(u.node(), UOp())) stack_.push_back({u, 0, u});
  }
  // What became of u; null while that is open.
  UOp settled(UOp u) {
    const UOp* r = results_.find(u.node());
    return r ? *r : UOp();
  }
  UOp apply(UOp u) {
    const Rule* fired = nullptr;
    const UOp r = rules_.rewrite(u, ctx_, o_.trace, &fired);
    if (r) {
      applied_++;
      last_.push_back(fired);
      if (last_.size() > 8) last_.pop_front();
    }
    return r;
  }
  void enter(const Entry& e) {
    UOp cur = e.current;
    if (o_.bottom_up) {
      std::unordered_map<UOp, bool, UOpHash> seen;
      for (UOp r = apply(cur); r; r = apply(cur)) {
        if (!seen.emplace(r, true).second) throw RewriteLoop(loop_text());
        cur = r;
        if (o_.walk) break;
      }
    }
    stack_.push_back({e.original, 1, cur});
    for (size_t i = cur.nsrc(); i-- > 0;) push(cur.src(i));
  }
  void leave(const Entry& e) {
    src_.clear();
    bool changed = false;
    for (size_t i = 0; i < e.current.nsrc(); i++) {
      const UOp s = settled(e.current.src(i));
      if (!s) {  // still open below: come back when it is done
        waiting_[e.current.src(i)].push_back(e);
        return;
      }
      src_.push_back(s);
      changed |= !(s == e.current.src(i));
    }
    const UOp rebuilt = changed ? rebuild(e.current, src_) : e.current;
    UOp r = o_.bottom_up ? (changed && !o_.walk ? rebuilt : UOp{}) : apply(rebuilt);
    if (!r && changed) r = rebuilt;
    if (!r || r == e.original || o_.walk || (o_.bottom_up && !changed))
      return settle(e.original, r ? r : e.current);
    if (r == rebuilt && !o_.bottom_up) return settle(e.original, r);  // no rule matched
    stack_.push_back({e.original, 2, r});
    push(r);
  }
  void finish(const Entry& e) {
    if (const UOp r = settled(e.current))
      settle(e.original, r);
    else
      waiting_[e.current].push_back(e);
  }
  void settle(UOp u, UOp result) {
    *results_.find(u.node()) = result;
    if (waiting_.empty()) return;
    const auto it = waiting_.find(u);
    if (it == waiting_.end()) return;
    const std::vector<Entry> woken = std::move(it->second);
    waiting_.erase(it);
    for (const Entry& w : woken) stack_.push_back(w);
  }
  std::string loop_text() const {
    std::string s = "rewriting does not end; last rules:";
    for (const Rule* r : last_)
      s += fmt::format(" {} ({}:{})", r->name, r->where.file_name(), r->where.line());
    return s;
  }

  const MatcherBase& rules_;
  void* ctx_;
  const RewriteOptions& o_;
  std::vector<Entry> stack_;
  std::vector<UOp> src_;
  NodeMap<UOp> results_;  // null: queued, not settled
  std::unordered_map<UOp, std::vector<Entry>, UOpHash> waiting_;
  std::deque<const Rule*> last_;
  size_t applied_ = 0;
};

}  // namespace

UOp graph_rewrite(UOp root, const MatcherBase& rules, void* ctx, const RewriteOptions& options) {
  return Rewriter(rules, ctx, options).run(root);
}

UOp substitute(UOp root, const Substitution& map) {
  NodeMap<UOp> done;
  for (const auto& [from, to] : map) done.insert(from.node(), to);
  std::vector<UOp> src;
  for (UOp u : toposort(root)) {
    if (done.find(u.node())) continue;
    src.clear();
    bool changed = false;
    for (size_t i = 0; i < u.nsrc(); i++) {
      src.push_back(*done.find(u.src(i).node()));
      changed |= !(src.back() == u.src(i));
    }
    done.insert(u.node(), changed ? rebuild(u, src) : u);
  }
  return *done.find(root.node());
}

}  // namespace beamline
