#include "engine/rangeify/prepare.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/rangeify/canonical_order.h"
#include "engine/rangeify/collapse.h"
#include "engine/rangeify/rows.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

size_t count_divisions(UOp root) {
  size_t n = 0;
  for (UOp u : toposort(root)) n += u.op() == Op::FLOORDIV || u.op() == Op::FLOORMOD;
  return n;
}

// True when merging surely adds a division: some index moves by other than n steps of inner for one
// of outer, and is a plain sum in both.
bool surely_divides(UOp kernel, UOp outer, UOp inner, int64_t n) {
  for (UOp u : toposort(kernel)) {
    if (u.dtype() == DType::WeakInt || u.op() == Op::STACK || u.op() == Op::PARAM) continue;
    for (UOp s : u.srcs()) {
      if (s.dtype() != DType::WeakInt || u.op() == Op::END || u.op() == Op::REDUCE) continue;
      if (s.op() == Op::WHERE && s.src(2).is_invalid()) s = s.src(1);
      if (!s.has_range(outer) && !s.has_range(inner)) continue;
      const auto sum = linear(s);
      if (!sum) continue;
      int64_t a = 0, b = 0;
      bool plain = true;
      for (const Term& t : sum->terms) {
        if (t.base == outer)
          a = t.coef;
        else if (t.base == inner)
          b = t.coef;
        else
          plain &= !t.base.has_range(outer) && !t.base.has_range(inner);
      }
      if (plain && static_cast<Wide>(a) != static_cast<Wide>(b) * n) return true;
    }
  }
  return false;
}

// outer and inner become one range over both, if the index math does not get worse.
UOp try_merge(UOp kernel, UOp ender, UOp outer, UOp inner, int64_t id, size_t divisions) {
  if (outer.op() != Op::RANGE || inner.op() != Op::RANGE || outer.axis_type() != inner.axis_type())
    return {};
  if (!outer.src(0).is_const() || !inner.src(0).is_const()) return {};
  for (UOp u : toposort(kernel)) {  // both are ended by the same nodes
    if (u.op() != Op::END && u.op() != Op::REDUCE) continue;
    bool a = false, b = false;
    for (size_t i = 1; i < u.nsrc(); i++) a |= u.src(i) == outer, b |= u.src(i) == inner;
    if (a != b || (a && u != ender && u.op() != ender.op())) return {};
  }
  const int64_t n = inner.src(0).ival();
  if (divisions == 0 && surely_divides(kernel, outer, inner, n)) return {};
  const UOp merged = range(outer.src(0).ival() * n, id, outer.axis_type());
  // In the ender's own range list the pair becomes the one range; elsewhere its quotient and
  // remainder.
  const UOp tag_outer = merged / iconst(n), tag_inner = merged % iconst(n);
  const UOp out = substitute(kernel, {{outer, tag_outer}, {inner, tag_inner}});
  std::unordered_map<UOp, UOp, UOpHash> done;
  for (UOp u : toposort(out)) {
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) {
      const UOp s = done.at(u.src(i));
      const bool ends = i > 0 && (u.op() == Op::END || u.op() == Op::REDUCE);
      if (ends && s == tag_inner) continue;
      src.push_back(ends && s == tag_outer ? merged : s);
    }
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  const UOp result = simplify(done.at(out));
  return count_divisions(result) <= divisions ? result : UOp{};
}

UOp merge_ranges(UOp kernel) {
  int64_t next_id = 0;
  for (UOp u : toposort(kernel))
    if (u.op() == Op::RANGE) next_id = std::max(next_id, u.range_id() + 1);
  for (bool changed = true; changed;) {
    changed = false;
    const size_t divisions = count_divisions(kernel);
    for (UOp u : toposort(kernel)) {
      if (u.op() != Op::END && u.op() != Op::REDUCE) continue;
      for (size_t i = 1; i < u.nsrc() && !changed; i++)
        for (size_t j = 1; j < u.nsrc() && !changed; j++) {
          const bool adjacent =
              u.op() == Op::END ? j == i + 1 : j != i;  // a reduction has no order
          if (!adjacent) continue;
          if (const UOp m = try_merge(kernel, u, u.src(i), u.src(j), next_id, divisions)) {
            kernel = m, next_id++, changed = true;
          }
        }
      if (changed) break;
    }
  }
  return kernel;
}

// Numbers buffers and ranges in that order; `slots` follows.
UOp numbered(UOp kernel, const std::vector<UOp>& order, std::vector<int64_t>& slots) {
  Substitution map;
  std::vector<int64_t> now;
  int64_t next_range = 0;
  for (UOp n : order) {
    if (n.op() == Op::RANGE) {
      map.emplace(n, range(n.src(0), next_range++, n.axis_type()));
      continue;
    }
    if (n.op() != Op::PARAM || n.addrspace() != AddrSpace::Global) continue;
    ParamArg a = n.param();
    now.push_back(slots.empty() ? a.slot : slots[static_cast<size_t>(a.slot)]);
    a.slot = static_cast<int64_t>(now.size()) - 1;
    a.name.clear();
    map.emplace(n, make(Op::PARAM, n.dtype(), n.srcs(), 0, intern(a)));
  }
  slots = now;
  return substitute(kernel, map);
}

// By first visit; the output's loops among themselves as they are nested.
std::vector<UOp> visit_order(UOp kernel) {
  std::vector<UOp> order = toposort(kernel);
  if (kernel.nsrc() != 1 || kernel.src(0).op() != Op::END) return order;
  const std::vector<UOp> ended = kernel.src(0).srcs();
  size_t next = 1;
  for (UOp& u : order)
    if (u.op() == Op::RANGE && std::find(ended.begin() + 1, ended.end(), u) != ended.end())
      u = ended[next++];
  return order;
}

// c, if `gate` is `r < c` and maybe more; else nothing.
std::optional<int64_t> gated_below(UOp gate, UOp r) {
  std::vector<UOp> todo{gate};
  while (!todo.empty()) {
    const UOp u = todo.back();
    todo.pop_back();
    if (u.op() == Op::AND) todo.insert(todo.end(), {u.src(0), u.src(1)});
    if (u.op() == Op::CMPLT && u.src(0) == r && u.src(1).is_const()) return u.src(1).ival();
  }
  return std::nullopt;
}

// A loop whose last steps store nothing is shortened.
UOp shorten_gated_ranges(UOp kernel) {
  const std::vector<UOp> order = toposort(kernel);
  Substitution shorter;
  for (UOp r : order) {
    if (r.op() != Op::RANGE || r.axis_type() == AxisType::REDUCE || !r.src(0).is_const()) continue;
    int64_t end = 0;
    for (UOp u : order) {
      if (u.op() != Op::STORE || !u.has_range(r)) continue;
      const UOp at = u.src(0).src(1);
      const bool gated = at.op() == Op::WHERE && at.src(2).is_invalid();
      const auto below = gated ? gated_below(at.src(0), r) : std::nullopt;
      end = std::max(end, below.value_or(r.src(0).ival()));
    }
    if (end > 0 && end < r.src(0).ival())
      shorter.emplace(r, range(end, r.range_id(), r.axis_type()));
  }
  return shorter.empty() ? kernel : simplify(substitute(kernel, shorter));
}

}  // namespace

Prepared prepare(UOp kernel) {
  // Numbers decide the order of operands, and with it that of the visit, and what merging can show
  // to cost nothing: repeat until it is stable, so that preparing twice gives the same text.
  constexpr int most_rounds = 8;
  Prepared p;
  p.ast =
      share_row_values(merge_ranges(shorten_gated_ranges(collapse_reductions(simplify(kernel)))));
  for (int round = 0; round < most_rounds; round++) {
    UOp u = simplify(numbered(p.ast, canonical_order(p.ast), p.slots));
    for (int visit = 0; visit < most_rounds; visit++) {
      const UOp next = numbered(u, visit_order(u), p.slots);
      if (next == u) break;
      u = next;
    }
    p.ast = merge_ranges(u);
    if (p.ast == u) break;
  }
  return p;
}

}  // namespace beamline
