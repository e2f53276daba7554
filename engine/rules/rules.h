// The symbolic rules, as tables. Each table contains the one before it:
//   invalid_rules     the poison index moves outwards, before anything folds it away
//   symbolic_simple   identities, constant folding, WHERE
//   symbolic          + canonical sums and products, bounds, comparisons, division
//   sym               + full distribution, validity, powers, reductions and stores
//   relaxed           + what is only true of numbers, for workloads with math = "relaxed"
// Every rule keeps the value, dtype and shape of what it replaces; a result that would not is
// refused by the matcher (`Rule::law`). Integers of type weakint are mathematical: what would leave
// 64 bits makes a rule decline. Integers of a width wrap. Floats keep their NaN and Inf, but for
// rules of class Relaxed. Thread
// safety: tables and matchers are immutable; any number of threads may use them.
#pragma once
#include "engine/rewrite/rule.h"

namespace beamline {

const Rules<>& invalid_rules();
const Rules<>& symbolic_simple();
const Rules<>& symbolic();
const Rules<>& sym();
const Rules<>& relaxed();

const Matcher<>& symbolic_simple_matcher();
const Matcher<>& symbolic_matcher();
const Matcher<>& sym_matcher();
const Matcher<>& relaxed_matcher();

/// Rewrites everything below root to a fixed point.
UOp simplify(UOp root, const MatcherBase& rules = sym_matcher(), Trace* trace = nullptr);

}  // namespace beamline
