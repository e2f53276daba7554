// The meaning of scalar expressions: what an expression of PARAM variables, RANGEs and constants is
// worth at an assignment of values. Plain and slow; the rules are compared with it. weakint is a
// mathematical integer (checked in 128 bits), other integers wrap to their width, floats are
// rounded to their type after every step. A division by zero, a shift out of range, a result beyond
// 128 bits, or an op without scalar meaning has no value; a WHERE needs only the branch it takes,
// and `false & x`, `true | x` do not need x. The poison constant is a value of its own.
#pragma once
#include <optional>
#include <unordered_map>

#include "engine/ir/uop.h"

namespace beamline {

struct ScalarValue {
  enum class Kind : uint8_t { Whole, Real, Poison };
  Kind kind = Kind::Whole;
  __int128 whole = 0;  // integers and bools
  double real = 0;     // floats

  /// Equal for every purpose of a kernel: NaN equals NaN, 0.0 equals -0.0.
  friend bool operator==(const ScalarValue& a, const ScalarValue& b) {
    if (a.kind != b.kind) return false;
    if (a.kind != Kind::Real) return a.whole == b.whole;
    return a.real == b.real || (a.real != a.real && b.real != b.real);
  }
};

/// Values of leaves (or of any node: an assigned node is not looked into).
using Assignment = std::unordered_map<UOp, ScalarValue, UOpHash>;

/// Memoised over the graph, iterative. Nothing where the expression has no value, or a leaf none.
std::optional<ScalarValue> evaluate(UOp root, const Assignment& values);

inline ScalarValue whole(__int128 v) { return {ScalarValue::Kind::Whole, v, 0}; }
inline ScalarValue real(double v) { return {ScalarValue::Kind::Real, 0, v}; }

}  // namespace beamline
