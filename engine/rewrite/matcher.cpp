#include "engine/rewrite/rule.h"

namespace beamline {
namespace {

struct Cursor {
  const Step* step;
  uint32_t mask;  // one bit a commutative node: operands swapped
  int total;
  int seen = 0;
};

bool type_fits(const Step& s, DType t) {
  switch (s.type) {
    case TypeClass::Any: return true;
    case TypeClass::Int: return is_int(t);
    case TypeClass::Float: return is_float(t);
    case TypeClass::Bool: return t == DType::Bool;
    case TypeClass::Exact: return t == s.exact;
  }
  return false;
}

// Recursion is bounded by the pattern's size, never by the graph's depth.
bool match(Cursor& c, const Node* n, Bindings& b) {
  const Step& s = *c.step++;
  if (!s.ops.has(n->op) || !type_fits(s, n->dtype) || (s.has_value && !UOp(n).is_const(s.value)))
    return false;
  if (s.slot >= 0) {
    const Node*& at = b.slot[static_cast<size_t>(s.slot)];
    if (at && at != n) return false;
    at = n;
  }
  if (s.any_src) return true;
  if (s.tail ? n->nsrc < s.nsrc : n->nsrc != s.nsrc) return false;
  if (s.commute) {
    const bool swap = c.mask >> (c.total - 1 - c.seen++) & 1;
    return match(c, n->src[swap], b) && match(c, n->src[!swap], b);
  }
  for (uint16_t i = 0; i < s.nsrc; i++)
    if (!match(c, n->src[i], b)) return false;
  return true;
}

// What a law may put in u's place: v, as u's dtype. Null when the shape would change. Poison fits
// any scalar.
UOp conform(UOp u, UOp v) {
  if (v.is_invalid()) return u.shape().empty() ? v : UOp{};
  if (u.has_shape() != v.has_shape() || !std::ranges::equal(u.shape(), v.shape())) return {};
  if (u.dtype() == v.dtype() || u.dtype() == DType::Invalid) return v;
  if (!v.is_const() || is_float(v.dtype()) || u.dtype() == DType::Void) return cast(v, u.dtype());
  return is_float(u.dtype()) ? fconst(v.number(), u.dtype()) : iconst(v.ival(), u.dtype());
}

}  // namespace

MatcherBase::MatcherBase(const std::vector<const Rule*>& rules) : all_(rules) {
  for (const Rule* r : rules)
    for (size_t o = 0; o < bucket_.size(); o++)
      if (r->pat.steps[0].ops.has(static_cast<Op>(o))) bucket_[o].push_back(r);
}

UOp MatcherBase::rewrite(UOp u, void* ctx, Trace* trace, const Rule** fired) const {
  for (const Rule* r : bucket_[static_cast<size_t>(u.op())]) {
    if (!r->need.subset_of(u.src_ops())) continue;
    for (uint32_t mask = 0, end = 1u << r->swaps; mask < end;) {
      Bindings b;
      Cursor cur{r->pat.steps.data(), mask, r->swaps};
      if (match(cur, u.node(), b)) {
        UOp v = r->fn(ctx, b, r->at);
        if (v && r->law) v = conform(u, v);
        if (v && !(v == u)) {
          if (trace) trace->rewrote(*r, u, v);
          if (fired) *fired = r;
          return v;
        }
      }
      mask = (mask | ((1u << (r->swaps - cur.seen)) - 1)) +
             1;  // orders that differ only where nothing was looked at
    }
  }
  return {};
}

}  // namespace beamline
