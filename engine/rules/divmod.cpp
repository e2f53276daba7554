#include "engine/rules/divmod.h"

#include <algorithm>

#include "engine/ir/derive.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

// One division by a positive constant. `x` is the numerator as a sum.
struct Division {
  bool quotient;  // FLOORDIV or FLOORMOD
  Linear x;
  int64_t c;
  DType dtype;
};
struct Parts {
  Linear quotient, remainder;
};
using Result = std::optional<Linear>;

std::optional<int64_t> period(const Interval& i, int64_t c) {
  const Wide lo = wide_floor_div(i.lo, c), hi = wide_floor_div(i.hi, c);
  return lo == hi ? narrow(lo) : std::nullopt;
}

// x = c*q + r with r in [0, c): found by choosing for every term the remainder of its coefficient,
// or that minus c, so that what remains stays in one period of c.
std::optional<Parts> by_congruence(const Linear& x, int64_t c) {
  const size_t n = x.terms.size();
  const auto attempt = [&](auto choose) -> std::optional<Parts> {
    Parts p;
    for (size_t i = 0; i < n; i++) {
      const int64_t r = choose(i);
      const auto q = narrow((Wide(x.terms[i].coef) - r) / c);
      if (!q) return std::nullopt;
      if (r != 0) p.remainder.terms.push_back({x.terms[i].base, r});
      if (*q != 0) p.quotient.terms.push_back({x.terms[i].base, *q});
    }
    const auto b = bounds(p.remainder.terms, x.constant);
    const auto k = b ? period(*b, c) : std::nullopt;
    if (!k || !p.quotient.add_constant(*k)) return std::nullopt;
    const auto rest = narrow(Wide(x.constant) - Wide(*k) * c);
    if (!rest) return std::nullopt;
    p.remainder.constant = *rest;
    return p;
  };
  const auto low = [&](size_t i) { return floor_mod(x.terms[i].coef, c); };
  if (auto p = attempt([&](size_t i) { return x.terms[i].coef; })) return p;
  if (n <= 4) {
    for (unsigned mask = 0; mask < 1u << n; mask++)
      if (auto p = attempt(
              [&](size_t i) { return low(i) == 0 || !(mask >> i & 1) ? low(i) : low(i) - c; }))
        return p;
    return std::nullopt;
  }
  if (auto p = attempt(low)) return p;
  return attempt([&](size_t i) { return low(i) * 2 > c ? low(i) - c : low(i); });
}

UOp divide(const Linear& x, int64_t c, DType t) {
  return c == 1 ? build(x, t) : build(x, t) / iconst(c, t);
}
UOp modulo(const Linear& x, int64_t c, DType t) {
  return c == 1 ? iconst(0, t) : build(x, t) % iconst(c, t);
}

Result lone_nested(const Division& d) {
  if (d.x.terms.size() != 1 || d.x.terms[0].coef != 1) return std::nullopt;
  const UOp base = d.x.terms[0].base;
  if (base.nsrc() != 2 || !base.src(1).is_const() || base.dtype() != d.dtype) return std::nullopt;
  const int64_t inner = base.src(1).ival();
  if (inner <= 0) return std::nullopt;
  Linear out;
  if (base.op() == Op::FLOORDIV && d.quotient &&
      is_exact(base.src(0))) {  // (z//a + k)//c = (z + k*a)//(a*c)
    const auto whole = narrow(Wide(inner) * d.c), shift = narrow(Wide(d.x.constant) * inner);
    Linear z;
    if (!whole || !shift || !z.add(base.src(0), 1, d.dtype) || !z.add_constant(*shift))
      return std::nullopt;
    if (d.dtype != DType::WeakInt && std::max(*whole, z.constant) > dtype_max(d.dtype))
      return std::nullopt;
    out.add_term(divide(z, *whole, d.dtype), 1);
    return out;
  }
  if (base.op() == Op::FLOORMOD && d.quotient && d.x.constant == 0 &&
      inner % d.c == 0) {  // (z%(k*c))//c = (z//c)%k
    const UOp q = base.src(0) / iconst(d.c, d.dtype);
    out.add_term(q % iconst(inner / d.c, d.dtype), 1);
    return out;
  }
  return std::nullopt;
}

// Terms whose coefficient c divides leave the quotient; the constant keeps its remainder.
Result extract_multiples(const Division& d) {
  Linear out, rest;
  for (const Term& t : d.x.terms) {
    const bool multiple = t.coef % d.c == 0;
    if (!(multiple ? out.add_term(t.base, t.coef / d.c) : rest.add_term(t.base, t.coef)))
      return std::nullopt;
  }
  rest.constant = floor_mod(d.x.constant, d.c);
  out.constant = floor_div(d.x.constant, d.c);
  if (out.terms.empty() && out.constant == 0) return std::nullopt;
  if (!d.quotient) return Linear{{{modulo(rest, d.c, d.dtype), 1}}, 0};
  return out.add_term(divide(rest, d.c, d.dtype), 1) ? Result(out) : std::nullopt;
}

// Inside % c: coefficients modulo c, inner % of a multiple of c dropped, multiples of c vanish.
Result reduce_modulo(const Division& d) {
  if (d.quotient) return std::nullopt;
  Linear out;
  bool changed = false;
  for (const Term& t : d.x.terms) {
    const int64_t k = t.coef < 0 ? -static_cast<int64_t>(-Wide(t.coef) % d.c) : t.coef % d.c;
    const bool inner = t.base.op() == Op::FLOORMOD && t.base.src(1).is_const() &&
                       t.base.src(1).ival() != 0 && Wide(k) * t.base.src(1).ival() % d.c == 0 &&
                       is_exact(t.base.src(0));
    const bool known = t.base.op() == Op::PARAM && t.base.addrspace() == AddrSpace::Alu &&
                       Wide(k) * t.base.param().multiple_of % d.c == 0;
    changed |= k != t.coef || inner || known;
    if (known) continue;
    if (!(inner ? out.add(t.base.src(0), k, d.dtype) : out.add_term(t.base, k)))
      return std::nullopt;
  }
  if (!out.add_constant(d.x.constant)) return std::nullopt;
  changed |= out.constant != floor_mod(out.constant, d.c);
  out.constant = floor_mod(out.constant, d.c);
  if (!changed) return std::nullopt;
  return Linear{{{modulo(out, d.c, d.dtype), 1}}, 0};
}

Result congruent(const Division& d) {
  auto p = by_congruence(d.x, d.c);
  if (!p) return std::nullopt;
  return d.quotient ? p->quotient : p->remainder;
}

Result common_factor(const Division& d) {
  int64_t g = d.c;
  for (const Term& t : d.x.terms) g = gcd(g, t.coef);
  if (g <= 1) return std::nullopt;
  Linear out;
  for (const Term& t : d.x.terms) out.terms.push_back({t.base, t.coef / g});
  out.constant = floor_div(d.x.constant, g);
  if (d.quotient) return Linear{{{divide(out, d.c / g, d.dtype), 1}}, 0};
  return Linear{{{modulo(out, d.c / g, d.dtype), g}}, floor_mod(d.x.constant, g)};
}

// x = f*u + v: divide v by f first when its quotient is no division, then the rest by c/f.
Result nest(const Division& d) {
  std::vector<int64_t> factors;
  for (const Term& t : d.x.terms)
    if (const int64_t f = gcd(t.coef, d.c);
        f > 1 && f < d.c && std::ranges::find(factors, f) == factors.end())
      factors.push_back(f);
  std::ranges::sort(factors, std::greater<>());
  for (int64_t f : factors) {
    Linear u, v;
    for (const Term& t : d.x.terms)
      t.coef % f == 0 ? u.terms.push_back({t.base, t.coef / f}) : v.terms.push_back(t);
    v.constant = d.x.constant;
    const auto p = by_congruence(v, f);
    if (!p || !u.add(p->quotient, 1)) continue;
    if (d.quotient) return Linear{{{divide(u, d.c / f, d.dtype), 1}}, 0};
    Linear out = p->remainder;
    if (out.add_term(modulo(u, d.c / f, d.dtype), f)) return out;
  }
  return std::nullopt;
}

using Strategy = Result (*)(const Division&);
constexpr Strategy strategies[] = {congruent,         lone_nested,   reduce_modulo,
                                   extract_multiples, common_factor, nest};

// The factors of a term's base, products taken apart.
std::vector<UOp> factors_of(UOp u) {
  std::vector<UOp> stack{u}, out;
  while (!stack.empty() && out.size() < 16) {
    const UOp v = stack.back();
    stack.pop_back();
    if (v.op() == Op::MUL && v.dtype() == u.dtype()) {
      stack.push_back(v.src(1));
      stack.push_back(v.src(0));
    } else {
      out.push_back(v);
    }
  }
  return out;
}
UOp product(const std::vector<UOp>& factors, DType t) {
  if (factors.empty()) return iconst(1, t);
  UOp p = factors[0];
  for (size_t i = 1; i < factors.size(); i++) p = p * factors[i];
  return p;
}
bool remove_all(std::vector<UOp>& from, const std::vector<UOp>& what) {
  for (UOp w : what) {
    const auto it = std::ranges::find(from, w);
    if (it == from.end()) return false;
    from.erase(it);
  }
  return true;
}

// A variable denominator: (d*x + y)//d = x + y//d, and what all terms share with d cancels.
UOp fold_symbolic(UOp u) {
  const auto num = linear(u.src(0)), den = linear(u.src(1));
  const DType t = u.dtype();
  if (!num || !den || den->terms.size() != 1 || den->constant != 0 || den->terms[0].coef == 0)
    return {};
  const int64_t k = den->terms[0].coef;
  const std::vector<UOp> whole = factors_of(den->terms[0].base);
  Linear out, rest;
  rest.constant = num->constant;
  for (const Term& term : num->terms) {
    std::vector<UOp> f = factors_of(term.base);
    const bool multiple = term.coef % k == 0 && remove_all(f, whole);
    if (!(multiple ? out.add(product(f, t), term.coef / k, t)
                   : rest.add_term(term.base, term.coef)))
      return {};
  }
  if (!out.terms.empty() || out.constant != 0) {
    if (u.op() == Op::FLOORMOD) return build(rest, t) % u.src(1);
    return out.add_term(build(rest, t) / u.src(1), 1) ? build(out, t) : UOp{};
  }
  // What numerator and denominator share.
  if (num->constant != 0 || num->terms.empty()) return {};
  std::vector<UOp> common = whole;
  int64_t g = k < 0 ? 1 : k;
  for (const Term& term : num->terms) {
    std::vector<UOp> left = factors_of(term.base), kept;
    for (UOp f : common)
      if (const auto it = std::ranges::find(left, f); it != left.end())
        left.erase(it), kept.push_back(f);
    common = kept;
    g = gcd(g, term.coef);
  }
  if (common.empty() && g == 1) return {};
  const auto without = [&](const Linear& l) -> std::optional<Linear> {
    Linear r;
    for (const Term& term : l.terms) {
      std::vector<UOp> f = factors_of(term.base);
      if (!remove_all(f, common) || !r.add(product(f, t), term.coef / g, t)) return std::nullopt;
    }
    return r;
  };
  const auto a = without(*num), b = without(*den);
  if (!a || !b) return {};
  const UOp r = alu(u.op(), {build(*a, t), build(*b, t)});
  return u.op() == Op::FLOORDIV ? r : r * product(common, t) * iconst(g, t);
}

bool congruent_modulo(UOp a, UOp b, int64_t d, DType t) {
  Linear diff;
  if (!diff.add(a, 1, t) || !diff.add(b, -1, t)) return false;
  return diff.constant % d == 0 &&
         std::ranges::all_of(diff.terms, [&](const Term& x) { return x.coef % d == 0; });
}

// The result of a fold on integers that wrap: neither the sum nor a numerator made for it may.
bool stays_exact(const Linear& l, UOp sum) {
  if (!is_exact(sum)) return false;
  return std::ranges::all_of(l.terms, [](const Term& t) {
    return (t.base.op() != Op::FLOORDIV && t.base.op() != Op::FLOORMOD) || is_exact(t.base.src(0));
  });
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("div", node(Op::FLOORDIV, xi, y).as("u"), [](U u, X, Y) { return fold_divmod(u); }),
    law("mod", node(Op::FLOORMOD, xi, y).as("u"), [](U u, X, Y) { return fold_divmod(u); }),
};
// clang-format on

}  // namespace

UOp fold_divmod(UOp u) {
  const UOp x = u.src(0), y = u.src(1);
  const DType t = u.dtype();
  if (x.dtype() != t || y.dtype() != t || !is_exact(x)) return {};
  if (!y.is_const()) return t == DType::WeakInt ? fold_symbolic(u) : UOp{};
  const int64_t c = y.ival();
  if (c == 0) return {};
  const auto l = linear(x);
  if (!l) return {};
  if (c < 0) {  // x // -c = -x // c, x % -c = -(-x % c)
    Linear minus;
    const auto positive = narrow(-Wide(c));
    if (t != DType::WeakInt || !positive || !minus.add(*l, -1)) return {};
    return u.op() == Op::FLOORDIV ? divide(minus, *positive, t)
                                  : modulo(minus, *positive, t) * iconst(-1, t);
  }
  const Division d{u.op() == Op::FLOORDIV, *l, c, t};
  for (Strategy s : strategies)
    if (const auto r = s(d)) {
      const UOp v = build(*r, t);
      if (!(v == u) && (t == DType::WeakInt || stays_exact(*r, v))) return v;
    }
  return {};
}

std::optional<Linear> recombine(const Linear& l, const Term& mod) {
  const UOp base = mod.base.src(0), divisor = mod.base.src(1);
  const DType t = mod.base.dtype();
  if (!divisor.is_const() || divisor.ival() <= 0) return std::nullopt;
  const int64_t d = divisor.ival();
  const auto scale = narrow(Wide(mod.coef) * d);
  if (!scale) return std::nullopt;
  const auto with = [&](const Linear& removed, UOp added) -> std::optional<Linear> {
    Linear r = l;
    if (!r.add_term(mod.base, -mod.coef) || !r.add(removed, -*scale) || !r.add(added, mod.coef, t))
      return std::nullopt;
    return r;
  };
  // The quotient as the rules write it: all of its terms must be in the sum.
  const UOp raw = base / divisor;
  const UOp folded = fold_divmod(raw);
  const UOp quotient = folded ? folded : raw;
  if (const auto q = linear(quotient); q && !q->terms.empty()) {
    const bool all = std::ranges::all_of(q->terms, [&](const Term& x) {
      const auto it = std::ranges::find(l.terms, x.base, &Term::base);
      return it != l.terms.end() && Wide(x.coef) * *scale == it->coef;
    });
    if (all) return with(*q, base);
  }
  for (const Term& other : l.terms) {
    if (other.coef != *scale || other.base.nsrc() != 2 || !other.base.src(1).is_const()) continue;
    const UOp inner = other.base.src(0), second = other.base.src(1);
    Linear one;
    one.terms.push_back({other.base, 1});
    if (other.base.op() == Op::FLOORDIV && second == divisor && congruent_modulo(inner, base, d, t))
      return with(one, inner);
    if (other.base.op() != Op::FLOORMOD || second.ival() <= 0) continue;
    const auto whole = narrow(Wide(d) * second.ival());
    const bool same = inner == quotient || (inner.op() == Op::FLOORDIV && inner.src(1) == divisor &&
                                            congruent_modulo(inner.src(0), base, d, t));
    if (whole && same)
      return with(one, (inner == quotient ? base : inner.src(0)) % iconst(*whole, t));
  }
  return std::nullopt;
}

const Rules<>& divmod_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
