// What a condition says about the values it guards (Y14, Z1, Z2): inside the branch where c holds,
// c is true and the bounds it states hold.
#include <algorithm>
#include <unordered_set>

#include "engine/rewrite/rewriter.h"
#include "engine/rules/facts.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
constexpr size_t search_limit = 300;
// Ops that known bounds can simplify.
constexpr OpSet bound_sensitive =
    Op::FLOORDIV | Op::FLOORMOD | Op::MAX | Op::CMPLT | Op::CMPNE | Op::CMPEQ | Op::WHERE;

struct Contents {
  bool complete = false;   // the walk saw everything and met no memory
  bool sensitive = false;  // holds an op that bounds can simplify
  size_t nodes = 0, divisions = 0;
  std::unordered_set<UOp, UOpHash> seen;
};
Contents contents(UOp root) {
  Contents c;
  std::vector<UOp> stack{root};
  while (!stack.empty()) {
    const UOp u = stack.back();
    stack.pop_back();
    if (!c.seen.insert(u).second) continue;
    if (++c.nodes > search_limit || u.op() == Op::INDEX || u.op() == Op::LOAD ||
        u.op() == Op::REDUCE)
      return c;
    c.sensitive |= bound_sensitive.has(u.op());
    c.divisions += u.op() == Op::FLOORDIV || u.op() == Op::FLOORMOD;
    if (u.op() == Op::RANGE) continue;
    for (size_t i = 0; i < u.nsrc(); i++) stack.push_back(u.src(i));
  }
  c.complete = true;
  return c;
}

// False: y is surely not in x, which is what most facts are about most expressions.
bool may_contain(UOp x, UOp y) {
  if (x.nsrc() == 0 || y.id() > x.id()) return x == y;
  return std::ranges::all_of(y.ranges(), [&](const Node* r) { return x.has_range(UOp(r)); });
}

// x with some of its contents replaced where they are values: a loop ends where it does whatever is
// known inside of it.
UOp replaced(UOp x, const Contents& in, Substitution map) {
  for (UOp u : in.seen)
    if (u.op() == Op::RANGE && !u.src(0).is_const()) map.emplace(u, u);
  return substitute(x, map);
}

// x with every fact's expression replaced by a variable of the tighter bounds, simplified, and put
// back.
UOp simplify_with(UOp x, const std::vector<Fact>& facts) {
  UOp best = x;
  for (size_t i = 0; i < facts.size(); i++) {
    const Fact& f = facts[i];
    if (f.lo > f.hi || (f.lo <= f.x.vmin() && f.hi >= f.x.vmax())) continue;
    if (!may_contain(best, f.x)) continue;
    const Contents in = contents(best);
    if (!in.complete || !in.seen.contains(f.x) || !f.x.shape().empty()) continue;
    if (!in.sensitive && !f.is_single()) continue;
    const UOp known =
        f.is_single() ? iconst(f.lo) : variable("known bounds " + std::to_string(i), f.lo, f.hi);
    const UOp s = simplify(replaced(best, in, {{f.x, known}}), symbolic_matcher());
    const UOp back =
        known.is_const() ? s : simplify(substitute(s, {{known, f.x}}), symbolic_matcher());
    const Contents after = contents(back);
    if (after.divisions < in.divisions ||
        (after.divisions == in.divisions &&
         (after.nodes < in.nodes || (f.is_single() && after.nodes == in.nodes))))
      best = back;
  }
  return best == x || contents(best).nodes <= contents(x).nodes ? best : x;
}

// c and what it is made of, replaced by their value inside x.
UOp assume(UOp x, const std::vector<UOp>& items, bool value) {
  if (std::ranges::none_of(items, [&](UOp item) {
        return x.may_hold(item) || (is_not(item) && x.may_hold(item.src(0)));
      }))
    return x;
  const Contents in = contents(x);
  if (!in.complete) return x;
  Substitution map;
  for (UOp item : items) {
    if (item.is_const() || !item.shape().empty()) continue;
    if (in.seen.contains(item)) map.emplace(item, bool_const(value));
    if (is_not(item) && in.seen.contains(item.src(0))) map.emplace(item.src(0), bool_const(!value));
  }
  return map.empty() ? x : replaced(x, in, std::move(map));
}

UOp inside_branches(UOp u, bool with_bounds) {
  const UOp c = u.src(0);
  if (c.is_const() || !c.shape().empty()) return {};
  const auto yes = chain_items(c, Op::AND), no = chain_items(c, Op::OR);
  UOp t = assume(u.src(1), yes, true),
      f = u.src(2).is_invalid() ? u.src(2) : assume(u.src(2), no, false);
  if (with_bounds && u.dtype() == DType::WeakInt) {
    t = simplify_with(t, facts_of(yes, true));
    if (!f.is_invalid()) f = simplify_with(f, facts_of(no, false));
  }
  if (t == u.src(1) && f == u.src(2)) return {};
  return make(Op::WHERE, u.dtype(), {c, t, f});
}

// Each operand of a conjunction, simplified given the others.
UOp each_given_others(UOp u) {
  if (u.dtype() != DType::Bool || !u.shape().empty()) return {};
  const Op op = u.op();
  std::vector<UOp> items = chain_items(u, op);
  if (items.size() > 8) return {};
  for (size_t i = 0; i < items.size(); i++) {
    std::vector<UOp> others = items;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const UOp s =
        simplify_with(assume(items[i], others, op == Op::AND), facts_of(others, op == Op::AND));
    if (s == items[i] || contents(s).nodes >= contents(items[i]).nodes) continue;
    UOp r = s;
    for (UOp o : others) r = alu(op, {r, o});
    return r;
  }
  return {};
}

// clang-format off
constexpr RuleOf<void> implied[] = {
    law("where-implied", select(c, t, f).as("u"),           [](U u, C, T, F) { return inside_branches(u, /*with_bounds=*/false); }),
};
constexpr RuleOf<void> bounded[] = {
    law("where-bounds",  select(c, t, f).as("u"),           [](U u, C, T, F) { return inside_branches(u, /*with_bounds=*/true); }),
    law("and-given",     node(Op::AND | Op::OR, b, y).as("u"), [](U u, B, Y) { return each_given_others(u); }),
};
// clang-format on

}  // namespace

const Rules<>& implied_rules() {
  static const Rules<> r(implied);
  return r;
}
const Rules<>& valid_rules() {
  static const Rules<> r(bounded);
  return r;
}

}  // namespace beamline
