#include <algorithm>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

// `place` < n, and place = base + lane: where the tiles of an axis of n elements lie. Nothing
// beyond is stored.
struct Tail {
  UOp gate, place, lane;
  int64_t n = 0;
};

bool is_gate(UOp u) { return u.op() == Op::CMPLT && u.src(0).dtype() == DType::WeakInt; }

// Only one tile is cut, and the one before it is of the same thread: their elements are written by
// no other.
bool within_a_thread(const Tail& t) {
  const int64_t width = t.lane.vmax() + 1;
  return t.place.vmax() + 1 - t.n < width &&
         std::ranges::any_of(t.place.ranges(), [&](const Node* node) {
           const UOp r(node);
           return linear_stride(t.place, r) == width && r.axis_type() != AxisType::THREAD &&
                  r.vmax() > 0;
         });
}

std::optional<Tail> tail_of(UOp gate) {
  if (!is_gate(gate) || !gate.src(1).is_const()) return std::nullopt;
  Tail t{gate, gate.src(0), {}, gate.src(1).ival()};
  bool threads = false;
  for (const Node* node : t.place.ranges()) {
    const UOp r(node);
    const auto step = linear_stride(t.place, r);
    if (!step || *step < 1) return std::nullopt;
    threads |= r.axis_type() == AxisType::THREAD;
    if (r.axis_type() == AxisType::UPCAST && *step == 1 && !t.lane)
      t.lane = r;
    else if (r.axis_type() != AxisType::WEAK && r.axis_type() != AxisType::LOOP &&
             r.axis_type() != AxisType::THREAD)
      return std::nullopt;
  }
  if (!t.lane || t.lane.vmax() >= t.n || t.place.vmin() != 0) return std::nullopt;
  if (threads && !within_a_thread(t)) return std::nullopt;
  return t;
}

bool moved_by(UOp u, const Tail& t) {
  return std::ranges::any_of(t.place.ranges(), [&](const Node* r) { return u.has_range(UOp(r)); });
}

// The index moves as the place does, or not at all.
bool follows(UOp index, const Tail& t) {
  const auto by_lane = linear_stride(index, t.lane);
  return std::ranges::all_of(t.place.ranges(), [&](const Node* node) {
    const auto step = linear_stride(index, UOp(node));
    return by_lane && step && *step == *by_lane * *linear_stride(t.place, UOp(node));
  });
}

// All accesses with the last tile moved back; null: something else depends on the place.
UOp moved_back(UOp ast, const Tail& t) {
  const UOp base = substitute(t.place, {{t.lane, iconst(0)}});
  const UOp beyond = maximum(base + iconst(t.lane.vmax() + 1 - t.n), iconst(0));
  const Substitution back{{t.lane, t.lane - beyond}};
  // What is left of the gate is always open.
  ast = simplify(substitute(ast, {{t.gate, bool_const(true)}}));
  NodeMap<UOp> done;
  std::vector<UOp> stored, loaded;
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    if (u.dtype() == DType::WeakInt) {  // seen where it is used
      done.emplace(u, u);
      continue;
    }
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) {
      const UOp s = u.src(i);
      const bool moves = s.dtype() == DType::WeakInt && moved_by(s, t);
      if (moves && (u.op() == Op::INDEX || is_gate(u))) {
        if (!follows(s, t)) return {};
        src.push_back(simplify(substitute(s, back)));
      } else if (moves && u.op() != Op::END) {
        return {};
      } else {
        src.push_back(done.at(s));
      }
    }
    if (u.op() == Op::STORE && src.size() == 3 && src[2] == bool_const(true)) src.pop_back();
    if (u.op() == Op::STORE) stored.push_back(memory_of(u.src(0)));
    if (u.op() == Op::LOAD) loaded.push_back(memory_of(u.src(0)));
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  for (UOp memory : stored)
    if (std::ranges::find(loaded, memory) != loaded.end()) return {};
  return done.at(ast);
}

// What bounds all stores that move with it, and was not tried yet.
std::optional<Tail> next_tail(UOp ast, const std::vector<UOp>& tried) {
  std::vector<UOp> stores;
  std::vector<std::vector<UOp>> gates;
  for (UOp u : toposort(ast)) {
    if (u.op() != Op::STORE) continue;
    stores.push_back(u);
    gates.emplace_back();
    if (u.nsrc() == 3) conjuncts(u.src(2), gates.back());
  }
  const auto bounds_all = [&](const Tail& t) {
    for (size_t i = 0; i < stores.size(); i++)
      if (moved_by(stores[i].src(0), t) && std::ranges::find(gates[i], t.gate) == gates[i].end())
        return false;
    return true;
  };
  for (const std::vector<UOp>& gate : gates)
    for (UOp c : gate)
      if (const auto t = tail_of(c);
          t && bounds_all(*t) && std::ranges::find(tried, c) == tried.end())
        return t;
  return std::nullopt;
}

}  // namespace

UOp overlap_tails(UOp ast, const std::vector<Packing>& packings,
                  const std::vector<Skipping>& skippings) {
  std::vector<UOp> tried;
  while (const auto t = next_tail(ast, tried)) {
    tried.push_back(t->gate);
    // Elements of a copy that several loops move over are those of all tiles in a row.
    const bool shared = std::ranges::any_of(packings, [&](const Packing& p) {
      return std::ranges::any_of(p.dims, [&](const Packing::Dim& d) {
        return d.ranges.size() > 1 &&
               std::ranges::count_if(d.ranges, [&](UOp r) { return t->place.has_range(r); }) > 1;
      });
    });
    const bool skipped = std::ranges::any_of(skippings, [&](const Skipping& s) {
      return (s.begin && (moved_by(s.begin, *t) || moved_by(s.count, *t))) ||
             std::ranges::any_of(s.gates, [&](UOp g) { return moved_by(g, *t); });
    });
    if (shared || skipped) continue;
    if (const UOp moved = moved_back(ast, *t)) ast = moved;
  }
  return ast;
}

}  // namespace beamline
