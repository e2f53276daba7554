#include "engine/rangeify/collapse.h"

#include <algorithm>

#include "engine/ir/node_map.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/facts.h"
#include "engine/rules/linear.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

constexpr int most_rounds = 16;  // nested sums take one each

bool depends(UOp u, UOp r) { return u.has_range(r); }
bool is_negation(UOp u) {
  return u.op() == Op::CMPNE && u.src(1).is_const(1) && u.src(1).dtype() == DType::Bool;
}
bool is_count(UOp u) { return u.op() == Op::CAST && u.src(0).dtype() == DType::Bool; }  // 0 or 1
bool fits(UOp weak, DType t) { return weak.vmin() >= dtype_min(t) && weak.vmax() <= dtype_max(t); }

// An integer as index math: what a cast from weakint holds exactly, or a number, is itself.
UOp as_index(UOp u) {
  if (u.dtype() == DType::WeakInt) return u;
  if (u.is_const()) return iconst(u.ival());
  if (u.op() == Op::CAST && u.src(0).dtype() == DType::WeakInt && fits(u.src(0), u.dtype()))
    return u.src(0);
  if (u.dtype() == DType::U64) u = cast(u, DType::I64);
  return cast(u, DType::WeakInt);
}

// Integer operations on casts from index math are index math: CAST moves outwards where it holds.
UOp widened(UOp u) {
  constexpr OpSet moved = Op::ADD | Op::MUL | Op::MAX | Op::FLOORDIV | Op::FLOORMOD | Op::CMPLT |
                          Op::CMPNE | Op::CMPEQ | Op::CAST;
  if (!moved.has(u.op()) || !u.shape().empty()) return {};
  std::vector<UOp> src;
  bool casts = false;
  for (UOp s : u.srcs()) {
    if (!is_int(s.dtype()) || s.dtype() == DType::WeakInt) return {};
    const bool is_cast = s.op() == Op::CAST && s.src(0).dtype() == DType::WeakInt;
    if (!s.is_const() && !(is_cast && fits(s.src(0), s.dtype()))) return {};
    casts |= is_cast;
    src.push_back(as_index(s));
  }
  if (!casts) return {};
  if (u.op() == Op::CAST) {
    if (!is_int(u.dtype()) || !fits(src[0], u.dtype())) return {};
    return cast(src[0], u.dtype());
  }
  const UOp r = make(u.op(), derive_dtype(u.op(), src, u.dtype()), src);
  if (ops::comparison.has(u.op())) return r;
  return fits(r, u.dtype()) ? cast(r, u.dtype()) : UOp{};
}

// expr = coef * r + rest, rest without r.
struct Solved {
  int64_t coef = 0;
  UOp rest;
};
std::optional<Solved> solve(UOp difference, UOp r) {
  const auto sum = linear(difference);
  if (!sum) return std::nullopt;
  Linear rest = *sum;
  Solved s;
  std::erase_if(rest.terms, [&](const Term& t) {
    if (t.base == r) s.coef = t.coef;
    return t.base == r;
  });
  for (const Term& t : rest.terms)
    if (depends(t.base, r)) return std::nullopt;
  if (s.coef == 0) return std::nullopt;
  s.rest = build(rest, DType::WeakInt);
  return s;
}

// What the conditions say of r: lo <= r < hi, or r == at; `open` is what names r in other ways,
// `other` does not name it.
struct Facts {
  std::vector<UOp> lo, hi, open, other;
  UOp at;
};

void read_condition(UOp c, bool holds, UOp r, Facts& f) {
  const UOp stated = holds ? c : logical_not(c);
  if (!depends(c, r)) return f.other.push_back(stated);
  if (is_negation(c)) return read_condition(c.src(0), !holds, r, f);
  if (c.op() == (holds ? Op::AND : Op::OR)) {
    read_condition(c.src(0), holds, r, f);
    return read_condition(c.src(1), holds, r, f);
  }
  if (!ops::comparison.has(c.op()) || !is_int(c.src(0).dtype()) || !is_int(c.src(1).dtype()))
    return f.open.push_back(stated);
  const UOp a = as_index(c.src(0)), b = as_index(c.src(1));
  const auto s = solve(simplify(a - b), r);  // coef * r + rest, compared with 0
  if (!s) return f.open.push_back(stated);
  const UOp minus = simplify(s->rest * iconst(-1));
  if (c.op() != Op::CMPLT) {
    const bool equal = (c.op() == Op::CMPEQ) == holds;
    if (!equal || (s->coef != 1 && s->coef != -1) || f.at) return f.open.push_back(stated);
    f.at = s->coef == 1 ? minus : s->rest;
    return;
  }
  // holds: coef * r < -rest;  not: coef * r >= -rest. Divisions round so that r stays an integer.
  const int64_t k = s->coef < 0 ? -s->coef : s->coef;
  if (s->coef > 0)
    (holds ? f.hi : f.lo).push_back(simplify((minus + iconst(k - 1)) / iconst(k)));
  else  // k r > rest;  not: k r <= rest
    (holds ? f.lo : f.hi).push_back(simplify(s->rest / iconst(k) + iconst(1)));
}

// v with r replaced by e; what it reads is read only where `valid` holds.
UOp at_position(UOp v, UOp r, UOp e, UOp valid) {
  NodeMap<UOp> done;
  for (UOp u : toposort(v)) {
    if (!depends(u, r)) {
      done.insert(u.node(), u);
      continue;
    }
    if (u == r) {
      done.insert(u.node(), e);
      continue;
    }
    std::vector<UOp> src;
    for (UOp s : u.srcs()) src.push_back(*done.find(s.node()));
    if (u.op() == Op::INDEX) src[1] = where(valid, src[1], invalid());
    done.insert(u.node(), rebuild(u, src));
  }
  return *done.find(v.node());
}

UOp conjunction(const std::vector<UOp>& items) {
  UOp all;
  for (UOp c : items) all = all ? all & c : c;
  return all;
}

// The sum over r in 0..n-1 of v where c holds, or null.
UOp collapsed(UOp c, UOp v, UOp r) {
  if (!r.src(0).is_const()) return {};
  Facts f;
  read_condition(c, true, r, f);
  const UOp n = r.src(0), zero = iconst(0);
  const DType t = v.dtype();
  if (f.at) {
    for (UOp lo : f.lo) f.other.push_back(logical_not(f.at < lo));
    for (UOp hi : f.hi) f.other.push_back(f.at < hi);
    if (f.at.vmin() < 0) f.other.push_back(logical_not(f.at < zero));
    if (f.at.vmax() >= n.ival()) f.other.push_back(f.at < n);
    const UOp valid = conjunction(f.other);
    const auto at = [&](UOp u) {
      return valid ? at_position(u, r, f.at, valid) : substitute(u, {{r, f.at}});
    };
    UOp hit = valid;
    for (UOp o : f.open) hit = hit ? hit & at(o) : at(o);
    return hit ? where(hit, at(v), const_like(v, 0)) : at(v);
  }
  if (depends(v, r) || !f.open.empty()) return {};
  const auto least = [](UOp a, UOp b) {
    return maximum(a * iconst(-1), b * iconst(-1)) * iconst(-1);
  };
  UOp lo = zero, hi = n;
  for (UOp x : f.lo) lo = maximum(lo, x);
  for (UOp x : f.hi) hi = least(hi, x);
  const UOp count = simplify(maximum(hi - lo, zero));
  if (!fits(count, t == DType::Bool || is_float(t) ? DType::I32 : t)) return {};
  UOp times = v.is_const(1) ? cast(count, t) : v * cast(count, t);
  // Nothing, however often, is nothing: not NaN.
  const bool finite = !is_float(t) || (v.is_const() && v.fval() - v.fval() == 0);
  if (!finite && count.vmin() <= 0) f.other.push_back(zero < count);
  const UOp valid = conjunction(f.other);
  return valid ? where(valid, times, const_like(v, 0)) : times;
}

UOp collapse_one(UOp reduction) {
  if (reduction.reduce_op() != Op::ADD || reduction.reduce_dims() != 0 ||
      reduction.dtype() == DType::Bool)
    return {};
  const UOp body = reduction.src(0);
  UOp c, v;
  if (body.op() == Op::WHERE && body.src(2).is_const() && body.src(2).number() == 0)
    c = body.src(0), v = body.src(1);
  else if (body.op() == Op::WHERE && body.src(1).is_const() && body.src(1).number() == 0)
    c = logical_not(body.src(0)), v = body.src(2);
  else if (is_count(body))
    c = body.src(0), v = const_like(body, 1);
  else if (body.op() == Op::MUL && is_int(body.dtype()) &&
           (is_count(body.src(0)) || is_count(body.src(1)))) {
    const size_t k = is_count(body.src(0)) ? 0 : 1;
    c = body.src(k).src(0), v = body.src(1 - k);
  } else
    return {};
  for (size_t i = 1; i < reduction.nsrc(); i++) {
    const UOp r = reduction.src(i);
    if (r.op() != Op::RANGE || !depends(c, r)) continue;
    const UOp one = collapsed(simplify(c), v, r);
    if (!one) continue;
    std::vector<UOp> src = reduction.srcs();
    src[0] = one;
    src.erase(src.begin() + static_cast<std::ptrdiff_t>(i));
    return src.size() == 1 ? one : rebuild(reduction, src);
  }
  return {};
}

}  // namespace

UOp collapse_reductions(UOp root) {
  for (int round = 0; round < most_rounds; round++) {
    NodeMap<UOp> done;
    bool changed = false;
    for (UOp u : toposort(root)) {
      std::vector<UOp> src;
      bool rebuilt = false;
      for (UOp s : u.srcs()) {
        src.push_back(*done.find(s.node()));
        rebuilt |= !(src.back() == s);
      }
      UOp v = rebuilt ? rebuild(u, src) : u;
      const UOp better = v.op() == Op::REDUCE ? (rebuilt ? UOp{} : collapse_one(v)) : widened(v);
      if (better) v = better, changed = true;
      done.insert(u.node(), v);
    }
    if (!changed) break;
    root = simplify(*done.find(root.node()));
  }
  return root;
}

}  // namespace beamline
