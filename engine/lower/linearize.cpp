// A tree of loops. Every node stands in the innermost loop it depends on; a loop is one item of the
// loop around it. Items of one loop are ordered by their dependencies, in the order of the graph.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/lower/passes.h"

namespace beamline {
namespace {

// END(x, r1, r2) -> END(END(x, r2), r1): one loop each.
UOp split_ends(UOp sink) {
  NodeMap<UOp> done;
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

// Nodes are numbered by their place in the graph's order; `none` is the top level.
class Linearizer {
 public:
  explicit Linearizer(UOp sink) : order_(toposort(sink)) {
    const size_t n = order_.size();
    for (size_t i = 0; i < n; i++) place_.insert(order_[i].node(), static_cast<int>(i));
    end_of_.assign(n, none);
    for (size_t i = 0; i < n; i++)
      if (order_[i].op() == Op::END) end_of_[at(order_[i].src(1))] = static_cast<int>(i);
    for (size_t i = 0; i < n; i++) CHECK(order_[i].op() != Op::RANGE || end_of_[i] != none);
    // ENDs of outer loops come later. A loop need not depend on all that are around it.
    depth_.assign(n, 0);
    for (size_t i = n; i-- > 0;) {
      if (order_[i].op() != Op::END) continue;
      int deepest = 0;
      for (const Node* r : order_[i].ranges()) deepest = std::max(deepest, depth_[at(UOp(r))]);
      depth_[at(order_[i].src(1))] = deepest + 1;
    }
    // A loop is its RANGE; the loop around it is the innermost one still open after its END.
    around_.resize(n);
    bodies_.resize(n + 1);
    for (size_t i = 0; i < n; i++) {
      around_[i] = home(order_[order_[i].op() == Op::RANGE ? at_(end_of_[i]) : i]);
      body(around_[i]).push_back(static_cast<int>(i));
    }
    needs_.resize(n);
    seen_.assign(n, none - 1);
    done_.assign(n, false);
  }

  std::vector<UOp> run() {
    emit(none);
    CHECK(out_.size() == order_.size());
    return std::move(out_);
  }

 private:
  static constexpr int none = -1;
  static size_t at_(int i) { return static_cast<size_t>(i); }
  size_t at(UOp u) { return at_(*place_.find(u.node())); }
  std::vector<int>& body(int loop) { return bodies_[at_(loop + 1)]; }

  // The innermost loop a node depends on.
  int home(UOp u) {
    int best = none;
    for (const Node* r : u.ranges())
      if (const size_t i = at(UOp(r)); best == none || depth_[i] > depth_[at_(best)])
        best = static_cast<int>(i);
    return best;
  }
  // The item of `loop` that contains i: i itself, or the child loop's RANGE; none when outside.
  int item(int i, int loop) const {
    while (around_[at_(i)] != loop) {
      i = around_[at_(i)];
      if (i == none) return none;
    }
    return i;
  }

  // The additions of one step of a loop onto an accumulator, first to last; empty: what is stored
  // is something else.
  std::vector<int> chain_of(UOp store) {
    const UOp memory = memory_of(store.src(0));
    std::vector<int> chain;
    if (memory.op() != Op::BUFFER || memory.addrspace() != AddrSpace::Reg) return chain;
    const auto so_far = [&](UOp v) { return v.op() == Op::LOAD && memory_of(v.src(0)) == memory; };
    UOp v = store.src(1);
    for (const Op op = v.op(); v.op() == op && ops::reduce.has(op);) {
      chain.push_back(static_cast<int>(at(v)));
      const bool first = so_far(v.src(0)) || (v.src(0).op() == op && !so_far(v.src(1)));
      v = v.src(first ? 0 : 1);
    }
    if (!so_far(v)) chain.clear();
    std::ranges::reverse(chain);
    return chain;
  }
  // What the product that an addition adds reads from memory: two loads, each of them maybe one
  // element for all lanes.
  using Reads = std::array<int, 2>;
  Reads reads_of(int addition, int loop) {
    Reads out{none, none};
    for (UOp product : order_[at_(addition)].srcs())
      for (size_t k = 0; product.op() == Op::MUL && k < 2; k++) {
        UOp u = product.src(k);
        while (u.op() == Op::CAST || u.op() == Op::STACK) u = u.src(0);
        const auto i = static_cast<int>(at(u));
        if (u.op() == Op::LOAD && around_[at_(i)] == loop) out[k] = i;
      }
    return out;
  }
  // The most that is held at a time of what several of them read.
  static int held(const std::vector<int>& additions, const std::map<int, Reads>& reads) {
    std::map<int, std::pair<size_t, size_t>> uses;  // first and last
    for (size_t k = 0; k < additions.size(); k++)
      for (int r : reads.at(additions[k]))
        if (r != none) uses.try_emplace(r, k, k).first->second.second = k;
    std::vector<int> change(additions.size() + 1, 0);
    for (const auto& [r, use] : uses)
      if (use.first != use.second) change[use.first]++, change[use.second + 1]--;
    int now = 0, most = 0;
    for (int c : change) most = std::max(most, now += c);
    return most;
  }
  // The same additions, those together that read one element for all lanes; of one accumulator they
  // stay in their order.
  std::vector<int> by_element(const std::vector<std::vector<int>>& chains,
                              const std::vector<int>& additions,
                              const std::map<int, Reads>& reads) {
    std::vector<int> elements;
    std::map<int, std::vector<int>> readers, before;
    for (int a : additions)
      for (int r : reads.at(a))
        if (r != none && order_[at_(r)].shape().empty()) {
          if (readers[r].empty()) elements.push_back(r);
          readers[r].push_back(a);
        }
    for (const std::vector<int>& c : chains)
      for (size_t k = 1; k < c.size(); k++)
        if (reads.contains(c[k - 1])) before[c[k]].push_back(c[k - 1]);
    std::set<int> taken;
    std::vector<int> out, todo;
    const auto take = [&](int addition) {
      todo.push_back(addition);
      while (!todo.empty()) {
        const int a = todo.back();
        const std::vector<int>& first = before[a];
        const auto open = std::ranges::find_if(first, [&](int b) { return !taken.contains(b); });
        if (open != first.end()) {
          todo.push_back(*open);
          continue;
        }
        todo.pop_back();
        if (taken.insert(a).second) out.push_back(a);
      }
    };
    for (int e : elements)
      for (int a : readers.at(e)) take(a);
    for (int a : additions) take(a);
    return out;
  }
  // The order in which a loop's items are asked for: accumulators take their steps together, so
  // that what a step reads is held for that step alone; or what reads one element, where less is
  // held then; then as they come.
  std::vector<int> asked(int loop) {
    std::vector<std::vector<int>> chains;
    size_t longest = 0;
    for (int i : body(loop))
      if (order_[at_(i)].op() == Op::STORE) {
        chains.push_back(chain_of(order_[at_(i)]));
        longest = std::max(longest, chains.back().size());
      }
    std::vector<int> out;
    for (size_t step = 0; longest > 1 && step < longest; step++)
      for (const std::vector<int>& c : chains)
        if (step < c.size() && around_[at_(c[step])] == loop) out.push_back(c[step]);
    std::map<int, Reads> reads;
    for (int a : out) reads.emplace(a, reads_of(a, loop));
    std::vector<int> other = by_element(chains, out, reads);
    if (held(other, reads) < held(out, reads)) out = std::move(other);
    out.insert(out.end(), body(loop).begin(), body(loop).end());
    return out;
  }

  void emit(int loop) {
    // What an item waits for inside this loop: for a child loop, whatever its nodes use from here.
    std::vector<int> todo = body(loop);
    while (!todo.empty()) {
      const int i = todo.back();
      todo.pop_back();
      if (seen_[at_(i)] == loop) continue;
      seen_[at_(i)] = loop;
      const UOp u = order_[at_(i)];
      const int in = item(i, loop);
      for (size_t k = 0; k < u.nsrc(); k++)
        if (const int d = item(static_cast<int>(at(u.src(k))), loop); d != none && d != in)
          needs_[at_(in)].push_back(d);
      if (u.op() == Op::RANGE) {
        todo.insert(todo.end(), body(i).begin(), body(i).end());
        todo.push_back(end_of_[at_(i)]);
      }
    }
    std::vector<std::pair<int, bool>> stack;
    for (int first : asked(loop)) {
      if (order_[at_(first)].op() == Op::END) continue;  // emitted with its loop
      stack.emplace_back(first, false);
      while (!stack.empty()) {
        const auto [n, ready] = stack.back();
        stack.pop_back();
        // Who waits for an END waits for the loop.
        const UOp u = order_[at_(n)];
        const int x = u.op() == Op::END ? static_cast<int>(at(u.src(1))) : n;
        if (done_[at_(x)]) continue;
        if (ready) {
          put(x);
          continue;
        }
        stack.emplace_back(x, true);
        std::vector<int>& deps = needs_[at_(x)];
        const int end = end_of_[at_(x)];
        if (end != none) deps.insert(deps.end(), needs_[at_(end)].begin(), needs_[at_(end)].end());
        std::ranges::sort(deps, std::greater<>());
        for (int d : deps)
          if (d != x && d != end) stack.emplace_back(d, false);
        deps.clear();
      }
    }
    for (int i : body(loop)) needs_[at_(i)].clear();
  }
  void put(int x) {
    done_[at_(x)] = true;
    out_.push_back(order_[at_(x)]);
    if (order_[at_(x)].op() != Op::RANGE) return;
    emit(x);
    out_.push_back(order_[at_(end_of_[at_(x)])]);
  }

  std::vector<UOp> order_, out_;
  NodeMap<int> place_;
  std::vector<int> end_of_;  // of a RANGE: its END
  std::vector<int> depth_;   // of a RANGE: how many loops are around it, itself included
  std::vector<int> around_;  // the loop whose item a node is
  std::vector<std::vector<int>> bodies_, needs_;
  std::vector<int> seen_;  // the last loop that collected from a node
  std::vector<bool> done_;
};

}  // namespace

std::vector<UOp> linearize(UOp sink) { return Linearizer(split_ends(sink)).run(); }

}  // namespace beamline
