#include "engine/rewrite/rewriter.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/rewrite/trace.h"

namespace beamline {
namespace {

class Rewriter {
 public:
  Rewriter(const MatcherBase& rules, void* ctx, const RewriteOptions& o)
      : rules_(rules), ctx_(ctx), o_(o), trace_(o.trace ? o.trace : TraceScope::current()) {}

  UOp run(UOp root) {
    const TraceScope own(nullptr);
    newest_original_ = root.id();
    push(root, 0);
    while (!stack_.empty()) {
      Entry e = stack_.back();
      stack_.pop_back();
      if (e.stage == 0) {
        if (open(e)) enter(e);
      } else if (e.stage == 1) {
        leave(e);
      } else {
        finish(e);
      }
    }
    // A replacement that contains what it replaces waits for itself.
    const UOp result = settled(root);
    if (!result) throw RewriteLoop(loop_text(root));
    return result;
  }

 private:
  struct Entry {
    UOp original;
    uint8_t stage;
    uint32_t origin;  // index of the node of the original graph that this comes from
    UOp current;
  };

  // Ids are in the order of creation: what is newer than the root was made by a rule, and belongs
  // to the original that the rule rewrote.
  void push(UOp u, uint32_t origin) {
    if (!results_.find(u.node())) stack_.push_back({u, 0, origin, u});
  }
  // The node is visited now, in depth-first order: what is waited for later is above it.
  bool open(Entry& e) {
    if (!results_.insert(e.original.node(), UOp())) return false;
    if (e.original.id() <= newest_original_) {
      e.origin = static_cast<uint32_t>(rewrites_.size());
      rewrites_.push_back(0);
    }
    return true;
  }
  // What became of u; null while that is open.
  UOp settled(UOp u) {
    const UOp* r = results_.find(u.node());
    return r ? *r : UOp();
  }
  UOp apply(UOp u, uint32_t origin) {
    const Rule* fired = nullptr;
    const Provenance::Of from(u);
    const UOp r = rules_.rewrite(u, ctx_, trace_, &fired);
    if (r) {
      last_[applied_++ % last_.size()] = fired;
      if (++rewrites_[origin] > o_.limit) throw RewriteLoop(loop_text(u));
    }
    return r;
  }
  bool is_callee(UOp u, size_t i) const {
    return i == 0 && !o_.enter_calls && (u.op() == Op::FUNCTION || u.op() == Op::CALL);
  }
  void enter(const Entry& e) {
    UOp cur = e.current;
    if (o_.bottom_up) {
      std::unordered_map<UOp, bool, UOpHash> seen;
      for (UOp r = apply(cur, e.origin); r; r = apply(cur, e.origin)) {
        if (!seen.emplace(r, true).second) throw RewriteLoop(loop_text(r));
        cur = r;
        if (o_.walk) break;
      }
    }
    stack_.push_back({e.original, 1, e.origin, cur});
    for (size_t i = cur.nsrc(); i-- > 0;)
      if (!is_callee(cur, i)) push(cur.src(i), e.origin);
  }
  void leave(const Entry& e) {
    src_.clear();
    bool changed = false;
    for (size_t i = 0; i < e.current.nsrc(); i++) {
      const UOp s = is_callee(e.current, i) ? e.current.src(i) : settled(e.current.src(i));
      if (!s) {  // still open below: come back when it is done
        waiting_[e.current.src(i)].push_back(e);
        return;
      }
      src_.push_back(s);
      changed |= !(s == e.current.src(i));
    }
    const UOp rebuilt = changed ? rebuild(e.current, src_) : e.current;
    UOp r = o_.bottom_up ? (changed && !o_.walk ? rebuilt : UOp{}) : apply(rebuilt, e.origin);
    if (!r && changed) r = rebuilt;
    if (!r || r == e.original || o_.walk || (o_.bottom_up && !changed))
      return settle(e.original, r ? r : e.current);
    if (r == rebuilt && !o_.bottom_up) return settle(e.original, r);  // no rule matched
    stack_.push_back({e.original, 2, e.origin, r});
    push(r, e.origin);
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
  std::string loop_text(UOp at) const {
    std::string s = fmt::format("rewriting does not end at {} #{}: {} rewrites, the last rules:",
                                op_name(at.op()), at.id(), applied_);
    for (size_t i = applied_ - std::min(applied_, last_.size()); i < applied_; i++) {
      const Rule* r = last_[i % last_.size()];
      s += fmt::format(" {} ({}:{})", r->name, r->where.file_name(), r->where.line());
    }
    return s;
  }

  const MatcherBase& rules_;
  void* ctx_;
  const RewriteOptions& o_;
  Trace* trace_;
  std::vector<Entry> stack_;
  std::vector<UOp> src_;
  NodeMap<UOp> results_;  // null: open, not settled
  std::unordered_map<UOp, std::vector<Entry>, UOpHash> waiting_;
  uint32_t newest_original_ = 0;
  std::vector<int32_t> rewrites_;      // by origin
  std::array<const Rule*, 8> last_{};  // a ring
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
