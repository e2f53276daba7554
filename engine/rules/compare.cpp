// Comparisons of whole numbers (Y29-Y31, Y34-Y36). One comparison, positive leading coefficients,
// common terms cancelled, constants on the right, or on the left where only one side has terms.
#include <algorithm>
#include <limits>

#include "engine/ir/derive.h"
#include "engine/rules/facts.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

std::optional<Linear> difference(UOp a, UOp b) {
  Linear l;
  if (!l.add(a, 1, DType::WeakInt) || !l.add(b, -1, DType::WeakInt)) return std::nullopt;
  return l;
}
Wide ceil_div(Wide a, Wide b) { return -wide_floor_div(-a, b); }

// Sum of terms < limit, or limit < sum: terms that only fill up the step g of the others go.
std::optional<Linear> drop_small(const Linear& sum, bool upper, int64_t limit) {
  std::vector<int64_t> steps;
  for (const Term& t : sum.terms)
    if (t.coef != std::numeric_limits<int64_t>::min())
      steps.push_back(t.coef < 0 ? -t.coef : t.coef);
  std::ranges::sort(steps, std::greater<>());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  int64_t all = 0;
  for (const Term& t : sum.terms) all = gcd(all, t.coef);
  if (all > 1) steps.insert(steps.begin(), all);
  for (int64_t g : steps) {
    if (g <= 1) continue;
    Linear kept;
    std::vector<Term> small;
    for (const Term& t : sum.terms)
      t.coef % g == 0 ? kept.terms.push_back({t.base, t.coef / g}) : small.push_back(t);
    const auto r = bounds(small, 0);
    if (!r || kept.terms.empty()) continue;
    // g*X + r < c  <=>  X < ceil((c-r)/g);  c < g*X + r  <=>  floor((c-r)/g) < X
    const Wide c = limit;
    const Wide a = upper ? ceil_div(c - r->lo, g) : wide_floor_div(c - r->lo, g);
    const Wide b = upper ? ceil_div(c - r->hi, g) : wide_floor_div(c - r->hi, g);
    if (a != b || !narrow(a)) continue;
    kept.constant = static_cast<int64_t>(a);  // the new limit
    return kept;
  }
  return std::nullopt;
}

UOp less(UOp u) {
  const UOp x = u.src(0), y = u.src(1);
  auto d = difference(x, y);
  if (!d) return {};
  const auto limit = narrow(-Wide(d->constant));
  if (!limit) return {};
  Linear left, right;
  for (const Term& t : d->terms) {
    const auto minus = narrow(-Wide(t.coef));
    if (!minus) return {};
    t.coef > 0 ? left.terms.push_back(t) : right.terms.push_back({t.base, *minus});
  }
  if (!left.terms.empty() && !right.terms.empty()) {  // left < right + limit
    if (auto kept = drop_small(*d, true, *limit)) {
      Linear a, b;
      for (const Term& t : kept->terms)
        t.coef > 0 ? a.terms.push_back(t) : b.terms.push_back({t.base, -t.coef});
      if (b.terms.empty()) a.constant = 0;
      b.constant = kept->constant;
      return build(a, DType::WeakInt) < build(b, DType::WeakInt);
    }
    right.constant = *limit;
    return build(left, DType::WeakInt) < build(right, DType::WeakInt);
  }
  const bool upper = right.terms.empty();
  Linear& sum = upper ? left : right;
  if (sum.terms.empty()) return bool_const(0 < *limit);
  // sum < limit, or -limit < sum
  auto bound = upper ? limit : narrow(-Wide(*limit));
  if (!bound) return {};
  while (auto kept = drop_small(sum, upper, *bound)) {
    bound = kept->constant;
    kept->constant = 0;
    sum = *kept;
  }
  if (sum.terms.size() == 1 && sum.terms[0].coef == 1) {
    const UOp q = sum.terms[0].base;
    if (q.op() == Op::FLOORDIV && q.src(1).is_const() &&
        q.src(1).ival() > 0) {  // x//c < k <=> x < k*c
      const Wide c = q.src(1).ival();
      const auto k = narrow(upper ? Wide(*bound) * c : (Wide(*bound) + 1) * c - 1);
      if (k) return upper ? q.src(0) < iconst(*k) : iconst(*k) < q.src(0);
    }
  }
  // 0 < a*x + b*y of non-negative x, y: some of them is positive
  const bool simplex = !upper && *bound == 0 && std::ranges::all_of(sum.terms, [](const Term& t) {
    return t.base.vmin() >= 0;
  });
  if (simplex)
    for (Term& t : sum.terms) t.coef = 1;
  const UOp s = build(sum, DType::WeakInt), k = iconst(*bound);
  return upper ? s < k : k < s;
}

UOp equal(UOp u) {
  auto d = difference(u.src(0), u.src(1));
  if (!d) return {};
  int64_t g = 0;
  for (const Term& t : d->terms) g = gcd(g, t.coef);
  const bool same = u.op() == Op::CMPEQ;
  if (d->terms.empty()) return bool_const((d->constant == 0) == same);
  if (d->constant % g != 0) return bool_const(!same);
  // The structurally first term is positive, whichever side it came from.
  std::ranges::sort(
      d->terms, [](const Term& a, const Term& b) { return compare_structure(a.base, b.base) < 0; });
  const int64_t sign = d->terms[0].coef < 0 ? -1 : 1;
  Linear left, right;
  for (const Term& t : d->terms) {
    const auto k = narrow(Wide(t.coef / g) * sign), minus = narrow(-Wide(t.coef / g) * sign);
    if (!k || !minus) return {};
    *k > 0 ? left.terms.push_back({t.base, *k}) : right.terms.push_back({t.base, *minus});
  }
  const auto k = narrow(-Wide(d->constant / g) * sign);
  if (!k) return {};
  right.constant = *k;
  return alu(u.op(), {build(left, DType::WeakInt), build(right, DType::WeakInt)});
}

// !(x < k) -> k-1 < x and !(k < x) -> x < k+1: one comparison instead of two operations.
UOp not_less(UOp x, UOp y) {
  if (x.dtype() != DType::WeakInt || y.dtype() != DType::WeakInt) return {};
  if (y.is_const()) {
    const auto k = narrow(Wide(y.ival()) - 1);
    return k ? iconst(*k) < x : UOp{};
  }
  const auto k = x.is_const() ? narrow(Wide(x.ival()) + 1) : std::nullopt;
  return k ? y < iconst(*k) : UOp{};
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("less",      ordered(xw < y).as("u"),                   [](U u, X, Y y_)    { return y_.dtype() == DType::WeakInt ? less(u) : UOp{}; }),
    law("equal",     node(Op::CMPNE | Op::CMPEQ, xw, y).as("u"), [](U u, X, Y y_)   { return y_.dtype() == DType::WeakInt ? equal(u) : UOp{}; }),
    law("join-bounds", node(Op::AND | Op::OR, b, y).as("u"),     [](U u, B, Y)       { return join_bounds(u); }),
    law("not-less",  negated(x < y),                            [](X x_, Y y_)      { return not_less(x_, y_); }),
};
// clang-format on

}  // namespace

const Rules<>& compare_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
