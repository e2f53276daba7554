// The tiers, put together from the families. Order is priority.
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {

const Rules<>& symbolic_simple() {
  static const Rules<> r = invalid_rules() + folding_rules() + identity_rules() + where_rules() +
                           cast_rules() + movement_rules() + power_rules();
  return r;
}
const Rules<>& symbolic() {
  static const Rules<> r = symbolic_simple() + bounds_rules() + combine_rules() + compare_rules() +
                           divmod_rules() + where_bound_rules();
  return r;
}
const Rules<>& sym() {
  static const Rules<> r = symbolic() + distribute_rules() + valid_rules() + cast_where_rules() +
                           power_expansion_rules() + reduce_rules() + control_rules();
  return r;
}
const Rules<>& relaxed() {
  static const Rules<> r = sym() + relaxed_rules();
  return r;
}

const Matcher<>& symbolic_simple_matcher() {
  static const Matcher<> m(symbolic_simple());
  return m;
}
const Matcher<>& symbolic_matcher() {
  static const Matcher<> m(symbolic());
  return m;
}
const Matcher<>& sym_matcher() {
  static const Matcher<> m(sym());
  return m;
}

const Matcher<>& relaxed_matcher() {
  static const Matcher<> m(relaxed());
  return m;
}

UOp simplify(UOp root, const MatcherBase& rules, Trace* trace) {
  RewriteOptions o;
  o.trace = trace;
  return graph_rewrite(root, rules, nullptr, o);
}

}  // namespace beamline
