#include <chrono>

#include <fmt/format.h>

#include "engine/rewrite/rule.h"

namespace beamline {
namespace {

// Where a match stands; and, for an explanation, where the attempt that came farthest ended.
struct Cursor {
  const Step* step;
  uint32_t mask;  // one bit a commutative node: operands swapped
  int total;
  int seen = 0;
  const Step* failed = nullptr;
  const Node* at = nullptr;
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
bool node_fits(const Step& s, const Node* n) {
  return s.ops.has(n->op) && type_fits(s, n->dtype) && (!s.has_value || UOp(n).is_const(s.value));
}
bool arity_fits(const Step& s, const Node* n) {
  return s.tail ? n->nsrc >= s.nsrc : n->nsrc == s.nsrc;
}
bool fail(Cursor& c, const Step& s, const Node* n) {
  c.failed = &s, c.at = n;
  return false;
}

// Recursion is bounded by the pattern's size, never by the graph's depth.
bool match(Cursor& c, const Node* n, Bindings& b) {
  const Step& s = *c.step++;
  if (!node_fits(s, n)) return fail(c, s, n);
  if (s.slot >= 0) {
    const Node*& at = b.slot[static_cast<size_t>(s.slot)];
    if (at && at != n) return fail(c, s, n);
    at = n;
  }
  if (s.any_src) return true;
  if (!arity_fits(s, n)) return fail(c, s, n);
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

// Tries one rule in every order of operands. `matched` tells whether the pattern fitted at all,
// `farthest` receives the attempt that came farthest.
UOp attempt(const Rule& r, UOp u, void* ctx, bool* matched = nullptr, Cursor* farthest = nullptr) {
  for (uint32_t mask = 0, end = 1u << r.swaps; mask < end;) {
    Bindings b;
    Cursor cur{r.pat.steps.data(), mask, r.swaps};
    if (match(cur, u.node(), b)) {
      if (matched) *matched = true;
      UOp v = r.fn(ctx, b, r.at);
      if (v && r.law) v = conform(u, v);
      if (v && !(v == u)) return v;
    } else if (farthest && (!farthest->failed || cur.failed > farthest->failed)) {
      *farthest = cur;
    }
    // Orders that differ only where nothing was looked at are skipped.
    mask = (mask | ((1u << (r.swaps - cur.seen)) - 1)) + 1;
  }
  return {};
}

std::string ops_text(OpSet ops) {
  if (ops == ops::all) return "any op";
  std::string s;
  int n = 0;
  for (size_t i = 0; i < op_count; i++)
    if (ops.has(static_cast<Op>(i)) && n++ < 6)
      s += (s.empty() ? "" : " or ") + std::string(op_names[i]);
  return n > 6 ? s + " or ..." : s;
}
std::string type_text(const Step& s) {
  switch (s.type) {
    case TypeClass::Any: return "";
    case TypeClass::Int: return " of integers";
    case TypeClass::Float: return " of floats";
    case TypeClass::Bool: return " of bools";
    case TypeClass::Exact: return fmt::format(" of {}", dtype_name(s.exact));
  }
  return "";
}
std::string node_text(const Node* n) {
  return fmt::format("{} #{} of {}", op_name(n->op), n->id, dtype_name(n->dtype));
}
std::string failure_text(const Step& s, const Node* n) {
  if (!s.ops.has(n->op) || !type_fits(s, n->dtype))
    return fmt::format("expected {}{}, found {}", ops_text(s.ops), type_text(s), node_text(n));
  if (s.has_value && !UOp(n).is_const(s.value))
    return fmt::format("expected the constant {}, found {}", s.value, node_text(n));
  if (!s.any_src && !arity_fits(s, n))
    return fmt::format("expected {}{} operands, {} has {}", s.tail ? "at least " : "", s.nsrc,
                       node_text(n), n->nsrc);
  return fmt::format("'{}' is another node already, found {}", s.capture, node_text(n));
}

}  // namespace

MatcherBase::MatcherBase(const std::vector<const Rule*>& rules) : all_(rules) {
  for (const Rule* r : rules) {
    const Step& root = r->pat.steps[0];
    std::array<bool, type_groups> fits{};
    for (size_t t = 0; t < dtype_count; t++)
      fits[type_group(static_cast<DType>(t))] |= type_fits(root, static_cast<DType>(t));
    for (size_t o = 0; o < bucket_.size(); o++)
      for (size_t g = 0; g < type_groups; g++)
        if (root.ops.has(static_cast<Op>(o)) && fits[g]) bucket_[o][g].push_back({r->need, r});
  }
}

UOp MatcherBase::rewrite(UOp u, void* ctx, Trace* trace, const Rule** fired) const {
  if (trace) return traced(u, ctx, *trace, fired);
  const OpSet have = u.src_ops();
  for (const Entry& e : bucket(u)) {
    if (!e.need.subset_of(have)) continue;
    if (const UOp v = attempt(*e.rule, u, ctx)) {
      if (fired) *fired = e.rule;
      return v;
    }
  }
  return {};
}

UOp MatcherBase::traced(UOp u, void* ctx, Trace& trace, const Rule** fired) const {
  using Clock = std::chrono::steady_clock;
  const OpSet have = u.src_ops();
  auto start = Clock::now();
  for (const Entry& e : bucket(u)) {
    if (!e.need.subset_of(have)) continue;
    RuleCount* count = trace.count(*e.rule);
    if (count) start = Clock::now();
    bool matched = false;
    const UOp v = attempt(*e.rule, u, ctx, &matched);
    const std::chrono::duration<double, std::nano> took =
        v || count ? Clock::now() - start : Clock::duration{};
    if (count) {
      count->tried++, count->matched += matched, count->applied += static_cast<bool>(v);
      count->ns += took.count();
    }
    if (!v) continue;
    trace.rewrote(*e.rule, u, v, took.count());
    if (fired) *fired = e.rule;
    return v;
  }
  return {};
}

std::string explain(const Rule& rule, UOp u, void* ctx) {
  const Step& root = rule.pat.steps[0];
  if (!root.ops.has(u.op())) return failure_text(root, u.node());
  if (!rule.need.subset_of(u.src_ops())) {
    OpSet missing;
    for (size_t i = 0; i < op_count; i++)
      if (const auto op = static_cast<Op>(i); rule.need.has(op) && !u.src_ops().has(op))
        missing = missing | OpSet(op);
    return fmt::format("no operand of {} is {}", node_text(u.node()), ops_text(missing));
  }
  bool matched = false;
  Cursor farthest{};
  if (attempt(rule, u, ctx, &matched, &farthest)) return "";
  if (matched) return "the pattern fits, the rule declines";
  return failure_text(*farthest.failed, farthest.at);
}

}  // namespace beamline
