#include "engine/rangeify/canonical_order.h"

#include <algorithm>

#include "engine/ir/node_map.h"

namespace beamline {
namespace {

using Colour = uint64_t;

// The finaliser of splitmix64; sums of its values are sums of random numbers.
Colour mix(Colour a, Colour b) {
  Colour x = a * 0x9e3779b97f4a7c15 + b;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
Colour mix(Colour a, std::string_view text) {
  for (unsigned char c : text) a = mix(a, c);
  return mix(a, text.size());
}

// Chains of these over whole numbers are sums of terms in any order and bracketing.
constexpr OpSet chained = Op::ADD | Op::MUL | Op::MAX | Op::AND | Op::OR | Op::XOR;
bool is_chain(UOp u) { return chained.has(u.op()) && !is_float(u.dtype()); }

// What a node is by itself: names instead of ordinals, no slot and no id.
Colour own_colour(UOp u) {
  Colour c = mix(mix(1, op_name(u.op())), dtype_name(u.dtype()));
  switch (u.op()) {
    case Op::RANGE: return mix(c, axis_type_name(u.axis_type()));
    case Op::REDUCE: return mix(mix(c, op_name(u.reduce_op())), u.reduce_dims());
    case Op::SINK: return c;  // it may hold the kernel's name
    case Op::PARAM:
    case Op::BUFFER:
      if (u.addrspace() == AddrSpace::Global) return mix(c, u.param().constant);
      break;
    default: break;
  }
  c = mix(c, static_cast<Colour>(u.node()->val));
  return u.node()->ext ? mix(c, static_cast<const InternedExtra*>(u.node()->ext)->text) : c;
}

constexpr size_t most_links = 100;  // of a chain: links that are shared could make it endless

struct Edge {
  size_t to = 0;        // an operand, by its place in the toposort
  Colour position = 0;  // one for all where operands may change places
};

class Refinement {
 public:
  explicit Refinement(UOp kernel) : nodes_(toposort(kernel)), edges_(nodes_.size()) {
    NodeMap<size_t> place;
    for (size_t i = 0; i < nodes_.size(); i++) {
      const UOp u = nodes_[i];
      place.emplace(u, i);
      colour_.push_back(own_colour(u));
      for (size_t k = 0; k < u.nsrc(); k++) {
        const size_t s = place.at(u.src(k));
        // A link of the same chain counts as what it links.
        if (is_chain(u) && nodes_[s].op() == u.op() && nodes_[s].dtype() == u.dtype() &&
            edges_[s].size() < most_links)
          edges_[i].insert(edges_[i].end(), edges_[s].begin(), edges_[s].end());
        else
          edges_[i].push_back({s, ops::commutative.has(u.op()) ? 1 : k + 2});
      }
    }
    // Links that only their chain uses are no nodes of their own.
    std::vector<bool> used(nodes_.size(), false);
    used.back() = true;
    for (size_t i = nodes_.size(); i-- > 0;)
      if (used[i])
        for (const Edge& e : edges_[i]) used[e.to] = true;
    for (size_t i = 0; i < nodes_.size(); i++)
      if (!used[i]) edges_[i].clear();
    find_loops();
  }

  std::vector<UOp> run() {
    std::vector<size_t> wanted;
    for (size_t i = 0; i < nodes_.size(); i++) {
      const UOp u = nodes_[i];
      if (u.op() == Op::RANGE || (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global))
        wanted.push_back(i);
    }
    constexpr size_t most_nodes = 4000;  // of a kernel whose ties are looked into
    for (;;) {
      refine();
      std::ranges::stable_sort(wanted, [&](size_t a, size_t b) { return before(a, b); });
      const auto tie = std::ranges::adjacent_find(wanted, {}, [&](size_t i) { return colour_[i]; });
      if (tie == wanted.end() || nodes_.size() > most_nodes) break;
      colour_[*tie] = mix(colour_[*tie], 7);
    }
    std::vector<UOp> out;
    for (size_t i : wanted) out.push_back(nodes_[i]);
    return out;
  }

 private:
  // As a reader expects it: by the output's loops that they are or vary with, outermost first; then
  // by colour.
  bool before(size_t a, size_t b) const {
    if (loops_[a] != loops_[b]) return loops_[a] < loops_[b];
    return colour_[a] < colour_[b];
  }
  void find_loops() {
    NodeMap<size_t> loop, step;  // of the output: its place from outside; of a reduction
    for (UOp u : nodes_)
      if (u.op() == Op::END)
        for (size_t k = 1; k < u.nsrc(); k++) loop.insert(u.src(k).node(), k);
    for (UOp u : nodes_)
      if (u.op() == Op::REDUCE)
        for (size_t k = 1; k < u.nsrc(); k++) step.insert(u.src(k).node(), k);
    NodeMap<std::vector<size_t>> read;  // buffer -> loops
    for (UOp u : nodes_) {
      if (u.op() != Op::INDEX) continue;
      const UOp buffer = memory_of(u);
      read.insert(buffer.node(), {});
      for (const Node* r : u.ranges())
        if (const size_t* k = loop.find(r)) read.find(buffer.node())->push_back(*k);
    }
    for (size_t i = 0; i < nodes_.size(); i++) {
      if (const size_t* k = loop.find(nodes_[i].node())) loops_[i] = {*k};
      if (const auto* all = read.find(nodes_[i].node())) loops_[i] = *all;
      std::ranges::sort(loops_[i]);
      const auto twice = std::ranges::unique(loops_[i]);
      loops_[i].erase(twice.begin(), twice.end());
      if (loops_[i].empty()) loops_[i] = {SIZE_MAX};  // after all that has loops
      if (const size_t* k = step.find(nodes_[i].node())) loops_[i].push_back(*k);
    }
  }

  // Operands' colours go into their users', then users' into their operands'.
  void refine() {
    constexpr int rounds = 2;
    std::vector<Colour> up(nodes_.size()), down(nodes_.size());
    for (int round = 0; round < rounds; round++) {
      for (size_t i = 0; i < nodes_.size(); i++) {
        Colour sum = 0;
        for (const Edge& e : edges_[i]) sum += mix(up[e.to], e.position);
        up[i] = mix(colour_[i], sum);
      }
      std::ranges::fill(down, 0);
      for (size_t i = nodes_.size(); i-- > 0;) {
        colour_[i] = mix(up[i], down[i]);
        for (const Edge& e : edges_[i]) down[e.to] += mix(colour_[i], e.position);
      }
    }
  }

  std::vector<UOp> nodes_;
  std::vector<std::vector<Edge>> edges_;
  std::vector<Colour> colour_;
  std::vector<std::vector<size_t>> loops_ = std::vector<std::vector<size_t>>(nodes_.size());
};

}  // namespace

std::vector<UOp> canonical_order(UOp kernel) { return Refinement(kernel).run(); }

}  // namespace beamline
