// Instances of a rule's pattern: its nodes with random expressions in place of the captures. The
// fuzz test evaluates them, the proofs give them to a solver.
#pragma once
#include <algorithm>
#include <map>
#include <set>

#include "engine/rewrite/rule.h"
#include "tests/engine/expressions.h"

namespace beamline::testing {

/// Types of which the parts of an instance are, most of them.
inline constexpr DType base_types[] = {DType::WeakInt, DType::WeakInt, DType::WeakInt, DType::I32,
                                       DType::U8,      DType::Bool,    DType::F32,     DType::U32,
                                       DType::F64,     DType::I64};

// Rules about memory, control and loops have no scalar value; control_rules_test.cpp states what
// they do.
inline const std::set<std::string_view> rules_without_value = {
    "invalid-store",    "load-gate",       "invalid-load",
    "store-load",       "store-invalid",   "end-constant",
    "end-nothing",      "after-nothing",   "group-one",
    "flatten",          "reduce-factor",   "reduce-unused",
    "fold-stack-1",     "fold-stack-2",    "fold-stack-3",
    "fold-stack-right", "reshape-reshape", "reshape-same",
    "permute-permute",  "permute-same",    "stack-of-parts",
    "stack-part",       "index-index",     "index-vector",
    "uniform-stacks",   "after-effects",   "store-kept",
    "store-kept-else",  "store-kept-load", "store-kept-load-else",
    "store-gate"};

inline bool well_typed(Op op, DType dtype, std::span<const UOp> src) {
  const auto whole_type = [](DType t) { return is_int(t) || t == DType::Bool; };
  const size_t arity = ops::ternary.has(op) ? 3 : ops::binary.has(op) ? 2 : 1;
  if (ops::elementwise.has(op) && src.size() != arity) return false;
  DType joined = DType::Void;
  for (UOp s : src) joined = join(joined, s.dtype());
  if (op == Op::WHERE) return src[0].dtype() == DType::Bool || src[0].is_invalid();
  if (ops::shifts.has(op))
    return is_int(src[0].dtype()) && (is_int(src[1].dtype()) || src[1].is_invalid());
  const OpSet wholes = Op::XOR | Op::AND | Op::OR;
  const OpSet divisions = Op::FLOORDIV | Op::FLOORMOD | Op::CDIV | Op::CMOD;
  const OpSet reals =
      Op::EXP2 | Op::LOG2 | Op::SIN | Op::SQRT | Op::RECIPROCAL | Op::FDIV | Op::POW;
  if (wholes.has(op)) return whole_type(joined) || joined == DType::Invalid;
  if (divisions.has(op)) return is_int(joined) || joined == DType::Invalid;
  if (reals.has(op)) return is_float(joined) || joined == DType::Invalid;
  if (op == Op::NEG || op == Op::SUB || op == Op::TRUNC) return joined != DType::Bool;
  if (op == Op::THREEFRY) return false;
  if (op == Op::BITCAST)
    return src[0].is_invalid() ||
           (dtype_bytes(dtype) == dtype_bytes(src[0].dtype()) && !is_weak(dtype) &&
            !is_weak(src[0].dtype()) && dtype != DType::Bool && src[0].dtype() != DType::Bool);
  if (op == Op::RANGE) return src[0].dtype() == DType::WeakInt;
  return true;
}

// Fills a pattern. Null where the choice made no well-typed node.
class Filler {
 public:
  /// Leaves of the pattern become expressions of at most `depth` levels.
  Filler(Expressions& e, const Pat& p, DType base, int depth = 3)
      : e_(e), p_(p), base_(base), depth_(depth) {}
  UOp next() {
    const Step& s = p_.steps[at_++];
    std::vector<UOp> src;
    bool ok = true;
    for (uint8_t i = 0; i < s.nsrc; i++) {
      src.push_back(next());
      ok &= static_cast<bool>(src.back());
    }
    if (!ok) return {};
    if (!s.capture.empty())
      if (const auto it = bound_.find(s.capture); it != bound_.end()) return it->second;
    const UOp u = fill(s, std::move(src));
    if (u && !s.capture.empty()) bound_[s.capture] = u;
    return u;
  }

 private:
  DType type_of(const Step& s) {
    static constexpr DType wholes[] = {DType::WeakInt, DType::WeakInt, DType::I32,
                                       DType::U8,      DType::I64,     DType::U32};
    static constexpr DType mixed[] = {DType::WeakInt, DType::I32, DType::Bool, DType::F32,
                                      DType::WeakFloat};
    switch (s.type) {
      case TypeClass::Int: return is_int(base_) ? base_ : wholes[e_.below(std::size(wholes))];
      case TypeClass::Float: return is_float(base_) ? base_ : DType::F32;
      case TypeClass::Bool: return DType::Bool;
      case TypeClass::Exact: return s.exact;
      case TypeClass::Any: return e_.below(6) == 0 ? mixed[e_.below(std::size(mixed))] : base_;
    }
    return base_;
  }
  UOp fill(const Step& s, std::vector<UOp> src) {
    const DType t = type_of(s);
    if (t == DType::Invalid) return invalid();
    if (s.has_value) {
      if (is_float(t)) return fconst(static_cast<double>(s.value), t);
      const int64_t v = wrap_to(t, s.value);
      return iconst(v == s.value ? v : wrap_to(t, v), t);
    }
    if (s.ops == OpSet(Op::CONST)) return e_.constant(t);
    if (s.any_src && s.ops == ops::all)
      return e_.of(t, static_cast<int>(e_.below(static_cast<uint64_t>(depth_) + 1)));
    if (s.nsrc == 0)
      return e_.of(t,
                   std::max(1, depth_ - 1));  // "any node of these ops": most expressions are one
    if (s.commute && e_.coin()) std::swap(src[0], src[1]);
    Op op = Op::NOOP;
    do op = static_cast<Op>(e_.below(op_count));
    while (!s.ops.has(op));
    if (ops::ternary.has(op) && src.size() != 3) return {};
    DType dtype = derive_dtype(op, src, t);
    if (op == Op::CAST || op == Op::BITCAST) dtype = cast_target(s, op, src[0].dtype());
    if (op == Op::RANGE) dtype = DType::WeakInt;
    if (!well_typed(op, dtype, src)) return {};
    if (s.type == TypeClass::Int && !is_int(dtype)) return {};
    const int64_t val = op == Op::RANGE ? static_cast<int64_t>(AxisType::LOOP) : 0;
    return make(op, dtype, src, val);
  }
  DType cast_target(const Step& s, Op op, DType from) {
    static constexpr DType all[] = {DType::Bool, DType::I8,     DType::U8,  DType::I32,
                                    DType::U32,  DType::I64,    DType::F32, DType::F64,
                                    DType::F16,  DType::WeakInt};
    if (s.type == TypeClass::Bool) return DType::Bool;
    if (s.type == TypeClass::Exact) return s.exact;
    if (op == Op::BITCAST && e_.coin()) return from;
    DType t = all[e_.below(std::size(all))];
    while (s.type == TypeClass::Int && !is_int(t)) t = all[e_.below(std::size(all))];
    return t;
  }

  Expressions& e_;
  const Pat& p_;
  DType base_;
  int depth_;
  uint8_t at_ = 0;
  std::map<std::string_view, UOp> bound_;
};

}  // namespace beamline::testing
