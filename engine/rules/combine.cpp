// Canonical sums, products and chains of associative ops (Y3-Y9, Y11, Y12, Y23-Y27, Y32, Y33, S9),
// so that equal sums are equal nodes: like terms merged, structural order, left associated, one
// constant, last.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/ir/derive.h"
#include "engine/rules/divmod.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

// The terms of a left-associated sum, the last first; what is in them is not looked at. The rules
// below meet every sum of a kernel again and again, nearly always to find nothing: what a sum holds
// is seen without building anything.
struct SumView {
  static constexpr size_t most = 12;
  std::array<UOp, most> terms;
  size_t count = 0;
  bool whole = true;     // all of them are here
  bool endless = false;  // more terms than a Linear takes

  explicit SumView(UOp u) {
    UOp at = u;
    for (; at.op() == Op::ADD && at.dtype() == u.dtype() && count + 1 < most; at = at.src(0))
      terms[count++] = at.src(1);
    whole = at.op() != Op::ADD || at.dtype() != u.dtype();
    terms[count++] = at;
    size_t length = count;
    for (; at.op() == Op::ADD && length <= Linear::max_terms; at = at.src(0)) length++;
    endless = length > Linear::max_terms;
  }
  static UOp base(UOp t) { return t.op() == Op::MUL && t.src(1).is_const() ? t.src(0) : t; }
  bool has_base(Op op) const {
    if (!whole) return !endless;
    for (size_t i = 0; i < count; i++)
      if (base(terms[i]).op() == op) return true;
    return false;
  }
  /// The sum is what canonical_sum would build of it. No is no answer.
  bool is_canonical(DType t) const {
    if (!whole) return false;
    const bool constant = terms[0].is_const();
    if (constant && (terms[0].dtype() != t || terms[0].ival() == 0)) return false;
    for (size_t i = constant; i < count; i++) {
      const UOp x = terms[i], b = base(x);
      if (x.is_const() || x.dtype() != t || b.dtype() != t || b.is_const()) return false;
      if (b.op() == Op::ADD || b.op() == Op::SUB || b.op() == Op::NEG) return false;
      if (!(b == x)) {
        const UOp k = x.src(1);
        if (k.dtype() != t || k.ival() == 0 || k.ival() == 1 || wrap_to(t, k.ival()) != k.ival() ||
            (b.op() == Op::MUL && b.src(1).is_const()))
          return false;
      }
      for (size_t j = constant; j < i; j++)
        if (base(terms[j]) == b) return false;
      if (i > constant && compare_structure(x, terms[i - 1]) > 0) return false;
    }
    return count > constant;
  }
};

UOp canonical_sum(UOp u) {
  if (u.op() == Op::ADD)
    if (const SumView sum(u); sum.endless || sum.is_canonical(u.dtype())) return {};
  const auto l = linear(u);
  return l ? build(*l, u.dtype()) : UOp{};
}

// (base % d) * m + (base // d) * (d * m) -> base * m, inside a longer sum.
UOp recombine_sum(UOp u) {
  if (u.dtype() != DType::WeakInt || !SumView(u).has_base(Op::FLOORMOD)) return {};
  const auto l = linear(u);
  if (!l) return {};
  for (const Term& t : l->terms)
    if (t.base.op() == Op::FLOORMOD)
      if (auto r = recombine(*l, t)) return build(*r, u.dtype());
  return {};
}

// x//c + (x+1)//c + ... + (x+c-1)//c = x (Hermite), for any constants with those remainders: what
// is left of an unrolled loop over quotients.
UOp unrolled_quotients(UOp u) {
  constexpr int64_t most = 16;
  if (u.dtype() != DType::WeakInt || !SumView(u).has_base(Op::FLOORDIV)) return {};
  const auto l = linear(u);
  if (!l) return {};
  struct Quotient {
    UOp rest;  // the numerator without its constant
    int64_t constant, divisor, coef;
    UOp base;
  };
  std::vector<Quotient> all;
  for (const Term& t : l->terms) {
    if (t.base.op() != Op::FLOORDIV || !t.base.src(1).is_const()) continue;
    const int64_t c = t.base.src(1).ival();
    auto n = linear(t.base.src(0));
    if (c < 2 || c > most || !n) continue;
    const int64_t k = std::exchange(n->constant, 0);
    all.push_back({build(*n, u.dtype()), k, c, t.coef, t.base});
  }
  for (const Quotient& first : all) {
    Linear out = *l;
    uint32_t remainders = 0;
    Wide whole = 0;
    bool ok = true;
    for (const Quotient& q : all) {
      if (!(q.rest == first.rest) || q.divisor != first.divisor || q.coef != first.coef) continue;
      const int64_t r = floor_mod(q.constant, q.divisor);
      if (remainders >> r & 1) continue;
      remainders |= 1u << r;
      whole += floor_div(q.constant, q.divisor);
      ok &= q.coef != INT64_MIN && out.add_term(q.base, -q.coef);
    }
    if (remainders != (1u << first.divisor) - 1 || !ok) continue;
    if (out.add(first.rest, first.coef, u.dtype()) && narrow(whole * first.coef) &&
        out.add_constant(whole * first.coef))
      return build(out, u.dtype());
  }
  return {};
}

// t*[c] + f*[!c] in a sum becomes one WHERE when the branches do not add up to more work.
UOp merge_selections(UOp u) {
  if (!SumView(u).has_base(Op::WHERE)) return {};
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
  const auto is_link = [&](UOp x) { return x.op() == op && x.dtype() == u.dtype(); };
  const auto is_bit = [](UOp x) {
    const UOp b = x.op() == Op::MUL && x.src(1).is_const() ? x.src(0) : x;
    return b.op() == Op::CAST && b.src(0).dtype() == DType::Bool;
  };
  const UOp x = u.src(0), y = u.src(1);  // two operands of a commutative op are in order
  if (!is_link(x) && !is_link(y) && !(x == y) && !x.is_const() && !(is_bit(x) && is_bit(y)) &&
      (!y.is_const() || (y.dtype() == u.dtype() && wrap_to(u.dtype(), y.ival()) == y.ival())))
    return {};
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
    law("sum",            node(Op::ADD, xi, y).ints().as("u"),       [](U u, X, Y)         { return canonical_sum(u); }),
    law("div-mod-whole",  node(Op::ADD, xi, y).dtype(DType::WeakInt).as("u"), [](U u, X, Y)         { return recombine_sum(u); }),
    law("div-unrolled",   node(Op::ADD, xi, y).dtype(DType::WeakInt).as("u"), [](U u, X, Y)         { return unrolled_quotients(u); }),
    law("where-sum",      node(Op::ADD, xi, y).ints().as("u"),       [](U u, X, Y)         { return merge_selections(u); }),
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
