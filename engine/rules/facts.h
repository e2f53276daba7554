// Bounds that conditions state: `x < 5` says that x is at most 4.
#pragma once
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct Fact {
  UOp x;                                   // weakint
  int64_t lo = INT64_MIN, hi = INT64_MAX;  // at the limits of 64 bits: unbounded
  bool is_single() const { return lo == hi && lo != INT64_MIN && hi != INT64_MAX; }
};

/// The operands of a chain of `op`; u alone where it is none.
std::vector<UOp> chain_items(UOp u, Op op);
/// What the conditions state when all of them are `value`; one fact for an expression, joined.
/// Conditions that state no bound are left out. A fact with lo > hi is a contradiction.
std::vector<Fact> facts_of(const std::vector<UOp>& conditions, bool value);
/// A conjunction or disjunction of bools with the bounds on one expression joined, or null.
UOp join_bounds(UOp u);

}  // namespace beamline
