#include "engine/rules/facts.h"

#include <algorithm>

#include "engine/rules/linear.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {

bool is_weak_const(UOp u) { return u.is_const() && u.dtype() == DType::WeakInt; }

// The bound that `c == value` states, if it states one.
std::optional<Fact> bound_of(UOp c, bool value) {
  if (is_not(c)) return bound_of(c.src(0), !value);
  if (c.op() == Op::CMPLT && is_weak_const(c.src(1)) &&
      c.src(0).dtype() == DType::WeakInt) {  // x < k, or k <= x
    const int64_t k = c.src(1).ival();
    if (!value) return Fact{c.src(0), k, INT64_MAX};
    if (k != INT64_MIN) return Fact{c.src(0), INT64_MIN, k - 1};
  } else if (c.op() == Op::CMPLT && is_weak_const(c.src(0)) &&
             c.src(1).dtype() == DType::WeakInt) {  // k < x, or x <= k
    const int64_t k = c.src(0).ival();
    if (!value) return Fact{c.src(1), INT64_MIN, k};
    if (k != INT64_MAX) return Fact{c.src(1), k + 1, INT64_MAX};
  } else if ((c.op() == Op::CMPEQ || c.op() == Op::CMPNE) && is_weak_const(c.src(1)) &&
             c.src(0).dtype() == DType::WeakInt && (c.op() == Op::CMPEQ) == value) {
    return Fact{c.src(0), c.src(1).ival(), c.src(1).ival()};
  }
  return std::nullopt;
}

// The condition that states a fact.
UOp condition_of(const Fact& f) {
  if (f.is_single()) return alu(Op::CMPEQ, {f.x, iconst(f.lo)});
  UOp r;
  if (f.lo > f.x.vmin() && f.lo != INT64_MIN) r = iconst(f.lo - 1) < f.x;
  if (f.hi < f.x.vmax() && f.hi != INT64_MAX) {
    const UOp upper = f.x < iconst(f.hi + 1);
    r = r ? r & upper : upper;
  }
  return r ? r : bool_const(true);
}

}  // namespace

std::vector<UOp> chain_items(UOp u, Op op) {
  std::vector<UOp> stack{u}, items;
  while (!stack.empty() && items.size() < 32) {
    const UOp v = stack.back();
    stack.pop_back();
    if (v.op() == op && v.dtype() == DType::Bool) {
      stack.push_back(v.src(1));
      stack.push_back(v.src(0));
    } else {
      items.push_back(v);
    }
  }
  return items;
}

std::vector<Fact> facts_of(const std::vector<UOp>& conditions, bool value) {
  std::vector<Fact> facts;
  for (UOp c : conditions) {
    const auto f = bound_of(c, value);
    if (!f) continue;
    const auto it = std::ranges::find(facts, f->x, &Fact::x);
    if (it == facts.end())
      facts.push_back({f->x, std::max(f->lo, f->x.vmin()), std::min(f->hi, f->x.vmax())});
    else
      it->lo = std::max(it->lo, f->lo), it->hi = std::min(it->hi, f->hi);
  }
  return facts;
}

UOp join_bounds(UOp u) {
  const bool conjunction = u.op() == Op::AND;  // a | b is !(!a & !b)
  const std::vector<UOp> items = chain_items(u, u.op());
  if (items.size() >= 32) return {};
  std::vector<UOp> others;
  std::vector<std::pair<UOp, size_t>> stated;  // by expression: how many conditions
  for (UOp c : items) {
    const auto f = bound_of(c, conjunction);
    if (!f) {
      others.push_back(c);
      continue;
    }
    const auto it = std::ranges::find(stated, f->x, &std::pair<UOp, size_t>::first);
    if (it == stated.end())
      stated.emplace_back(f->x, 1);
    else
      it->second++;
  }
  if (std::ranges::none_of(stated, [](const auto& s) { return s.second > 1; })) return {};
  std::vector<UOp> result = others;
  for (const Fact& f : facts_of(items, conjunction)) {
    if (f.lo > f.hi) return bool_const(!conjunction);
    const UOp c = condition_of(f);
    for (UOp part : chain_items(c, Op::AND)) result.push_back(conjunction ? part : negation(part));
  }
  if (result.size() >= items.size()) {
    // As many conditions as before: nothing was joined.
    if (std::ranges::all_of(items, [&](UOp c) {
          const auto f = bound_of(c, conjunction);
          return !f || std::ranges::any_of(result, [&](UOp r) {
            const auto g = bound_of(r, conjunction);
            return g && g->x == f->x && g->lo == f->lo && g->hi == f->hi;
          });
        }))
      return {};
  }
  UOp r = result[0];
  for (size_t i = 1; i < result.size(); i++) r = alu(u.op(), {r, result[i]});
  return r;
}

}  // namespace beamline
