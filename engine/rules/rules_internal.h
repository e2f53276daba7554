// What the rule families share: how a rule is declared, and the list of the families.
#pragma once
#include "engine/rewrite/rule.h"

namespace beamline {

/// A rule whose two sides have equal value, dtype and shape; the matcher refuses a result that has
/// not.
template <class F>
consteval auto law(std::string_view name, Pat p, F f,
                   std::source_location where = std::source_location::current()) {
  auto r = rule(name, p, f, where);
  r.law = true;
  return r;
}

/// Laws of floats that hold up to rounding, and those that hold where nothing is NaN or infinite.
template <class F>
consteval auto rounding(std::string_view name, Pat p, F f,
                        std::source_location where = std::source_location::current()) {
  auto r = law(name, p, f, where);
  r.kind = RuleClass::Rounds;
  return r;
}
template <class F>
consteval auto relaxed(std::string_view name, Pat p, F f,
                       std::source_location where = std::source_location::current()) {
  auto r = law(name, p, f, where);
  r.kind = RuleClass::Relaxed;
  return r;
}

namespace pat {
using C = Cap<"c">;
using T = Cap<"t">;
using F = Cap<"f">;
using U = Cap<"u">;
using V = Cap<"v">;
using W = Cap<"w">;
using K = Cap<"k">;
inline constexpr Pat c = any("c").bools(), t = any("t"), f = any("f"), v = any("v");
inline constexpr Pat k = cst("k"), truth = Pat(1).bools(), untruth = Pat(0).bools();
constexpr Pat select(const Pat& cond, const Pat& yes, const Pat& no) {
  return node(Op::WHERE, cond, yes, no);
}
constexpr Pat negated(const Pat& p) { return node(Op::CMPNE, p, Pat(1).bools()); }
inline constexpr Pat poison = cst().dtype(DType::Invalid);
}  // namespace pat

/// u as a value of dtype t: constants are converted, other nodes get a CAST.
UOp as_type(UOp u, DType t);
/// The constant an elementwise op on constants gives, or null.
UOp fold_constants(UOp u);
/// x is a gate: WHERE(valid, index, invalid).
inline bool is_gate(UOp x) {
  return x.op() == Op::WHERE && x.src(2).is_invalid() && !x.src(1).is_invalid();
}
inline bool is_not(UOp u) {
  return u.op() == Op::CMPNE && u.src(1).is_const(1) && u.src(1).dtype() == DType::Bool;
}
/// The opposite of b, without stacking negations.
inline UOp negation(UOp b) { return is_not(b) ? b.src(0) : logical_not(b); }

// Families, in the order the tables use them.
const Rules<>& folding_rules();
const Rules<>& identity_rules();
const Rules<>& where_rules();
const Rules<>& movement_rules();
const Rules<>& power_rules();
const Rules<>& cast_rules();
const Rules<>& combine_rules();
const Rules<>& bounds_rules();
const Rules<>& compare_rules();
const Rules<>& divmod_rules();
const Rules<>& where_bound_rules();
const Rules<>& distribute_rules();
const Rules<>& implied_rules();
const Rules<>& valid_rules();
const Rules<>& reduce_rules();
const Rules<>& control_rules();
const Rules<>& power_expansion_rules();
const Rules<>& cast_where_rules();
const Rules<>& relaxed_rules();

}  // namespace beamline
