// Equality of two scalar expressions, decided by an SMT solver. Integers of type weakint are
// mathematical (division rounds down: the solver's own `div` is Euclidean), integers of a width are
// bit vectors, or integers reduced to the width where weakint is near. A division by zero has no
// value and a poison is one, as in engine/interpret/scalar.h.
#pragma once
#include <string>

#include "engine/ir/uop.h"

namespace beamline::testing {

struct Proof {
  enum class Answer { Proved, Unknown, Inexpressible, Refuted };
  Answer answer = Answer::Unknown;
  std::string text;  // why inexpressible, or the values of the leaves at which the sides differ
};

/// Whether v has u's value wherever u has one, for all values of their leaves within bounds. The
/// effort is limited by counted steps, not by time: the answer does not depend on the machine.
Proof prove_equal(UOp u, UOp v);

}  // namespace beamline::testing
