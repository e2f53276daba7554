#include "engine/rules/linear.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/rules/rules_internal.h"

namespace beamline {

std::optional<int64_t> narrow(Wide v) {
  if (v < std::numeric_limits<int64_t>::min() || v > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return static_cast<int64_t>(v);
}
Wide wide_floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
int64_t gcd(int64_t a, int64_t b) {
  if (a == std::numeric_limits<int64_t>::min() || b == std::numeric_limits<int64_t>::min())
    return 1;
  return std::gcd(a, b);
}
bool is_bounded(UOp u) {
  return u.vmin() != std::numeric_limits<int64_t>::min() &&
         u.vmax() != std::numeric_limits<int64_t>::max();
}

bool Linear::add_constant(Wide v) {
  const auto s = narrow(Wide(constant) + v);
  if (s) constant = *s;
  return s.has_value();
}
bool Linear::add_term(UOp base, int64_t coef) {
  if (coef == 0) return true;
  const auto it = std::ranges::find(terms, base, &Term::base);
  if (it == terms.end()) {
    terms.push_back({base, coef});
    return terms.size() <= max_terms;
  }
  const auto s = narrow(Wide(it->coef) + coef);
  if (!s) return false;
  it->coef = *s;
  if (*s == 0) terms.erase(it);
  return true;
}
bool Linear::add(const Linear& o, int64_t coef) {
  for (const Term& t : o.terms) {
    const auto k = narrow(Wide(t.coef) * coef);
    if (!k || !add_term(t.base, *k)) return false;
  }
  const Wide k = Wide(o.constant) * coef;
  return narrow(k) && add_constant(k);
}
bool Linear::add(UOp root, int64_t factor, DType dtype) {
  std::vector<Term> stack{{root, factor}};
  size_t visited = 0;
  while (!stack.empty()) {
    const auto [u, coef] = stack.back();
    stack.pop_back();
    if (++visited > 4 * max_terms) return false;
    if (u.is_const() && !u.is_invalid() && !is_float(u.dtype())) {
      const Wide k = Wide(u.ival()) * coef;
      if (!narrow(k) || !add_constant(k)) return false;
      continue;
    }
    const bool same = u.dtype() == dtype;
    if (same && u.op() == Op::ADD) {
      stack.push_back({u.src(1), coef});
      stack.push_back({u.src(0), coef});
      continue;
    }
    if (same && u.op() == Op::SUB) {
      const auto k = narrow(-Wide(coef));
      if (!k) return false;
      stack.push_back({u.src(1), *k});
      stack.push_back({u.src(0), coef});
      continue;
    }
    const bool scaled =
        same && u.op() == Op::MUL && u.src(1).is_const() && is_int(u.src(1).dtype());
    if (scaled || (same && u.op() == Op::NEG)) {
      const auto k = narrow(Wide(coef) * (scaled ? u.src(1).ival() : -1));
      if (!k) return false;
      if (*k != 0) stack.push_back({u.src(0), *k});
      continue;
    }
    if (!add_term(same ? u : as_type(u, dtype), coef)) return false;
  }
  return true;
}

std::optional<Linear> linear(UOp u) {
  Linear l;
  if (!is_int(u.dtype()) || !l.add(u, 1, u.dtype())) return std::nullopt;
  return l;
}

bool is_exact(UOp root) {
  if (root.dtype() == DType::WeakInt) return true;
  std::vector<UOp> stack{root};
  for (size_t visited = 0; !stack.empty(); visited++) {
    const UOp u = stack.back();
    stack.pop_back();
    if (u.is_const() && (u.ival() < 0 || u.ival() > dtype_max(root.dtype()))) return false;
    if (u.vmin() < 0 || visited > 2 * Linear::max_terms) return false;
    if ((u.op() == Op::CAST && u.src(0).vmin() < 0) || u.op() == Op::SUB || u.op() == Op::NEG)
      return false;
    if (u.op() != Op::ADD && u.op() != Op::MUL) continue;
    const Wide a = u.src(0).vmax(), b = u.src(1).vmax();
    if (!is_bounded(u.src(0)) || !is_bounded(u.src(1)) || u.src(0).vmin() < 0 ||
        u.src(1).vmin() < 0)
      return false;
    if ((u.op() == Op::ADD ? a + b : a * b) > dtype_max(u.dtype())) return false;
    stack.push_back(u.src(0));
    stack.push_back(u.src(1));
  }
  return true;
}

UOp build(const Linear& l, DType dtype) {
  std::vector<UOp> nodes;
  for (const Term& t : l.terms) {
    const int64_t k = wrap_to(dtype, t.coef);
    if (k != 0) nodes.push_back(k == 1 ? t.base : t.base * iconst(k, dtype));
  }
  std::ranges::sort(nodes, [](UOp a, UOp b) { return compare_structure(a, b) < 0; });
  const int64_t k = wrap_to(dtype, l.constant);
  if (nodes.empty()) return iconst(k, dtype);
  UOp sum = nodes[0];
  for (size_t i = 1; i < nodes.size(); i++) sum = sum + nodes[i];
  return k == 0 ? sum : sum + iconst(k, dtype);
}

std::optional<Interval> bounds(const std::vector<Term>& terms, Wide constant) {
  Interval r{constant, constant};
  for (const auto& [base, coef] : terms) {
    if (!is_bounded(base)) return std::nullopt;
    const Wide a = Wide(base.vmin()) * coef, b = Wide(base.vmax()) * coef;
    r.lo += std::min(a, b), r.hi += std::max(a, b);
  }
  return r;
}

}  // namespace beamline
