// Canonical sums, products and chains of associative ops (Y3-Y9, Y11, Y12, Y23-Y27, Y32, Y33, S9),
// so that equal sums are equal nodes: like terms merged, structural order, left associated, one
// constant, last.
#include <algorithm>

#include "engine/ir/derive.h"
#include "engine/rules/divmod.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

UOp canonical_sum(UOp u) {
  const auto l = linear(u);
  return l ? build(*l, u.dtype()) : UOp{};
}

// (base % d) * m + (base // d) * (d * m) -> base * m, inside a longer sum.
UOp recombine_sum(UOp u) {
  if (u.dtype() != DType::WeakInt) return {};
  const auto l = linear(u);
  if (!l) return {};
  for (const Term& t : l->terms)
    if (t.base.op() == Op::FLOORMOD)
      if (auto r = recombine(*l, t)) return build(*r, u.dtype());
  return {};
}

// t*[c] + f*[!c] in a sum becomes one WHERE when the branches do not add up to more work.
UOp merge_selections(UOp u) {
  const auto l = linear(u);
  if (!l) return {};
  for (size_t i = 0; i < l->terms.size(); i++)
    for (size_t j = i + 1; j < l->terms.size(); j++) {
      const UOp a = l->terms[i].base, b = l->terms[j].base;
      if (a.op() != Op::WHERE || b.op() != Op::WHERE || !(a.src(0) == b.src(0))) continue;
      const bool yes = a.src(1).is_const() && b.src(1).is_const(),
                 no = a.src(2).is_const() && b.src(2).is_const();
      const bool crossed = (a.src(2).is_const(0) && b.src(1).is_const(0)) ||
                           (a.src(1).is_const(0) && b.src(2).is_const(0));
      if (!yes && !no && !crossed) continue;
      if (is_gate(a) || is_gate(b)) continue;
      Linear t, f, rest = *l;
      const int64_t ka = l->terms[i].coef, kb = l->terms[j].coef;
      if (!t.add(a.src(1), ka, u.dtype()) || !t.add(b.src(1), kb, u.dtype())) continue;
      if (!f.add(a.src(2), ka, u.dtype()) || !f.add(b.src(2), kb, u.dtype())) continue;
      rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(j));
      rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(i));
      const UOp merged = where(a.src(0), build(t, u.dtype()), build(f, u.dtype()));
      return rest.add_term(merged, 1) ? build(rest, u.dtype()) : UOp{};
    }
  return {};
}

// Bools used as integers: one op on bools and one cast. max(-a, -b) is -(a & b).
void join_bools(Op op, DType t, std::vector<UOp>& items) {
  if (t == DType::Bool) return;
  const auto is_bool = [](UOp x) { return x.op() == Op::CAST && x.src(0).dtype() == DType::Bool; };
  const auto is_minus = [&](UOp x) {
    return x.op() == Op::MUL && x.src(1).is_const(-1) && is_bool(x.src(0));
  };
  const auto join = [&](auto is_item, Op on_bools, bool minus) {
    if (std::ranges::count_if(items, is_item) < 2) return;
    UOp all;
    for (UOp x : items) {
      if (!is_item(x)) continue;
      const UOp bit = minus ? x.src(0).src(0) : x.src(0);
      all = all ? alu(on_bools, {all, bit}) : bit;
    }
    std::erase_if(items, is_item);
    items.push_back(minus ? cast(all, t) * iconst(-1, t) : cast(all, t));
  };
  join(is_bool, op == Op::MUL ? Op::AND : op == Op::MAX ? Op::OR : op, /*minus=*/false);
  if (op == Op::MAX && t == DType::WeakInt) join(is_minus, Op::AND, /*minus=*/true);
}

// A chain of one associative op: operands flattened, constants folded, repeats dropped where
// idempotent.
UOp canonical_chain(UOp u) {
  constexpr size_t limit = 32;
  const Op op = u.op();
  const bool idempotent = ops::idempotent.has(op);
  std::vector<UOp> stack{u}, items;
  std::optional<int64_t> constant;
  while (!stack.empty()) {
    const UOp v = stack.back();
    stack.pop_back();
    if (v.op() == op && v.dtype() == u.dtype()) {
      stack.push_back(v.src(1));
      stack.push_back(v.src(0));
    } else if (v.is_const()) {
      const int64_t k = wrap_to(u.dtype(), v.ival());
      constant = constant ? fold_int(op, *constant, k) : k;
      if (!constant || v.dtype() != u.dtype() ||
          (u.dtype() == DType::U64 && (k < 0 || *constant < 0)))
        return {};
      constant = wrap_to(u.dtype(), *constant);
    } else if (const auto it = std::ranges::find(items, v);
               it == items.end() || !(idempotent || op == Op::XOR)) {
      items.push_back(v);
    } else if (op == Op::XOR) {
      items.erase(it);
    }
    if (items.size() + stack.size() > limit) return {};
  }
  join_bools(op, u.dtype(), items);
  std::ranges::sort(items, [](UOp a, UOp b) { return compare_structure(a, b) < 0; });
  if (constant) items.push_back(iconst(*constant, u.dtype()));
  if (items.empty()) return const_like(u, 0);
  UOp r = items[0];
  for (size_t i = 1; i < items.size(); i++) r = make(op, u.dtype(), {r, items[i]});
  return r;
}
bool is_whole(UOp u) { return is_int(u.dtype()) || u.dtype() == DType::Bool; }

constexpr OpSet chains = Op::MUL | Op::AND | Op::OR | Op::XOR | Op::MAX;
using KC = Cap<"k">;

// clang-format off
constexpr RuleOf<void> table[] = {
    law("sum",            node(Op::ADD, xi, y).as("u"),              [](U u, X, Y)         { return canonical_sum(u); }),
    law("div-mod-whole",  node(Op::ADD, xi, y).as("u"),              [](U u, X, Y)         { return recombine_sum(u); }),
    law("where-sum",      node(Op::ADD, xi, y).as("u"),              [](U u, X, Y)         { return merge_selections(u); }),
    law("chain",          node(chains, x, y).as("u"),                [](U u, X, Y)         { return is_whole(u) ? canonical_chain(u) : UOp{}; }),
    law("mul-sum",        ((xw + c0) * c1).as("u"),                  [](U u, X, C0, C1)    { return canonical_sum(u); }),
    law("max-max-float",  node(Op::MAX, node(Op::MAX, x.floats(), c0.floats()), c1.floats()), [](X x_, C0 a, C1 b) -> UOp {
      const UOp m = fold_constants(maximum(a, b));
      return a.fval() == a.fval() && b.fval() == b.fval() ? maximum(x_, m) : UOp{}; }),
};
constexpr RuleOf<void> distribute[] = {
    law("distribute",     ((xw + y) * k).as("u"),                    [](U u, X, Y, KC)     { return canonical_sum(u); }),
};
// clang-format on

}  // namespace

const Rules<>& combine_rules() {
  static const Rules<> r(table);
  return r;
}
const Rules<>& distribute_rules() {
  static const Rules<> r(distribute);
  return r;
}

}  // namespace beamline
