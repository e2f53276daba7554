// Integer expressions as sums: constant + coef_0 * base_0 + coef_1 * base_1 + ...
// Bases are distinct nodes that are no sums themselves. 64-bit overflow of a coefficient is no
// result.
#pragma once
#include <optional>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

using Wide = __int128;

struct Term {
  UOp base;
  int64_t coef = 1;
};
struct Interval {
  Wide lo = 0, hi = 0;
};
struct Linear {
  static constexpr size_t max_terms = 64;
  std::vector<Term> terms;
  int64_t constant = 0;

  /// Adds coef * u, taking sums and multiples apart; false on overflow or too many terms.
  bool add(UOp u, int64_t coef, DType dtype);
  bool add(const Linear& o, int64_t coef);
  bool add_term(UOp base, int64_t coef);
  bool add_constant(Wide v);
};

/// u as a sum; operands of another type are converted to u's. Nothing on overflow.
std::optional<Linear> linear(UOp u);
/// True when no sum or product on the way to the bases can wrap: always for weakint; for other
/// integers when all of it is known to be non-negative and to fit.
bool is_exact(UOp u);
/// The canonical node of a sum: terms in structural order, left associated, the constant last.
UOp build(const Linear& l, DType dtype);
/// Bounds of the terms plus `constant`, or nothing if a base is unbounded.
std::optional<Interval> bounds(const std::vector<Term>& terms, Wide constant);
/// Known bounds of an integer node; 64-bit limits mean "unbounded".
bool is_bounded(UOp u);

int64_t gcd(int64_t a, int64_t b);
Wide wide_floor_div(Wide a, Wide b);
std::optional<int64_t> narrow(Wide v);

}  // namespace beamline
