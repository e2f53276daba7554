// A tree of loops. Every node stands in the innermost loop it depends on; a loop is one item of the
// loop around it. Items of one loop are ordered by their dependencies, in the order of the graph.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/check.h"
#include "engine/lower/passes.h"

namespace beamline {
namespace {

// END(x, r1, r2) -> END(END(x, r2), r1): one loop each.
UOp split_ends(UOp sink) {
  std::unordered_map<UOp, UOp, UOpHash> done;
  for (UOp u : toposort(sink)) {
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    if (u.op() != Op::END || u.nsrc() == 2) {
      done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
      continue;
    }
    UOp v = src[0];
    for (size_t i = src.size(); i-- > 1;) v = make(Op::END, DType::Void, {v, src[i]});
    done.emplace(u, v);
  }
  return done.at(sink);
}

class Linearizer {
 public:
  explicit Linearizer(UOp sink) : order_(toposort(sink)) {
    for (size_t i = 0; i < order_.size(); i++) place_.emplace(order_[i], i);
    // A loop is its RANGE; the loop around it is the innermost one still open after its END.
    for (UOp u : order_)
      if (u.op() == Op::END) end_of_.emplace(u.src(1), u);
    for (const auto& u : order_)
      if (u.op() == Op::RANGE) CHECK(end_of_.contains(u));
    for (UOp u : order_) {
      const bool opens = u.op() == Op::RANGE;
      body_[home(opens ? end_of_.at(u) : u)].push_back(u);
    }
  }

  std::vector<UOp> run() {
    emit(UOp{});
    CHECK(out_.size() == order_.size());
    return std::move(out_);
  }

 private:
  static size_t depth_of(UOp r, const std::unordered_map<UOp, UOp, UOpHash>& end_of) {
    return end_of.at(r).ranges().size();
  }
  // The innermost loop a node depends on; null at the top. Loops that enclose have fewer loops
  // around them.
  UOp home(UOp u) const {
    UOp best;
    for (const Node* n : u.ranges())
      if (const UOp r(n); !best || depth_of(r, end_of_) > depth_of(best, end_of_)) best = r;
    return best;
  }
  UOp loop_of(UOp u) const { return u.op() == Op::RANGE ? home(end_of_.at(u)) : home(u); }
  // The item of `loop` that contains u: u itself, or the child loop's RANGE. Null when u is
  // outside.
  UOp item(UOp u, UOp loop) const {
    UOp at = u;
    while (true) {
      const UOp around = loop_of(at);
      if (around == loop) return at;
      if (!around) return {};
      at = around;
    }
  }

  void emit(UOp loop) {
    const auto it = body_.find(loop);
    if (it == body_.end()) return;
    std::unordered_set<UOp, UOpHash> done;
    // What an item waits for inside this loop: for a child loop, whatever its nodes use from here.
    std::unordered_map<UOp, std::vector<UOp>, UOpHash> needs;
    std::vector<UOp> todo = it->second;
    std::unordered_set<UOp, UOpHash> seen;
    while (!todo.empty()) {
      const UOp u = todo.back();
      todo.pop_back();
      if (!seen.insert(u).second) continue;
      const UOp in = item(u, loop);
      for (size_t i = 0; i < u.nsrc(); i++)
        if (const UOp d = item(u.src(i), loop); d && !(d == in)) needs[in].push_back(d);
      if (u.op() == Op::RANGE) {
        if (const auto inner = body_.find(u); inner != body_.end())
          todo.insert(todo.end(), inner->second.begin(), inner->second.end());
        todo.push_back(end_of_.at(u));
      }
    }
    for (UOp u : it->second) {
      if (u.op() == Op::END) continue;  // emitted with its loop
      std::vector<std::pair<UOp, bool>> stack{{u, false}};
      while (!stack.empty()) {
        const auto [n, ready] = stack.back();
        stack.pop_back();
        const UOp x = n.op() == Op::END ? n.src(1) : n;  // who waits for an END waits for the loop
        if (done.contains(x)) continue;
        if (ready) {
          done.insert(x);
          out_.push_back(x);
          if (x.op() == Op::RANGE) {
            emit(x);
            out_.push_back(end_of_.at(x));
          }
          continue;
        }
        stack.emplace_back(x, true);
        auto deps = needs[x];
        if (x.op() == Op::RANGE)
          for (UOp d : needs[end_of_.at(x)]) deps.push_back(d);
        std::ranges::sort(deps, std::greater<>(), [&](UOp d) { return place_.at(d); });
        for (UOp d : deps)
          if (!(d == x) && !(d == end_of_or_null(x))) stack.emplace_back(d, false);
      }
    }
  }
  UOp end_of_or_null(UOp x) const {
    const auto it = end_of_.find(x);
    return it == end_of_.end() ? UOp{} : it->second;
  }

  std::vector<UOp> order_, out_;
  std::unordered_map<UOp, size_t, UOpHash> place_;
  std::unordered_map<UOp, UOp, UOpHash> end_of_;
  std::unordered_map<UOp, std::vector<UOp>, UOpHash> body_;
};

}  // namespace

std::vector<UOp> linearize(UOp sink) { return Linearizer(split_ends(sink)).run(); }

}  // namespace beamline
