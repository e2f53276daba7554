// Reductions that need no loop (load collapse, engine.md 5.1 pass 3). A sum over r of a value where
// conditions on r hold is
//   - the value times how many r there are, if only bounds on r are asked and the value does not
//     depend on r: counting (arange), run-time lengths, elements of a window;
//   - the value at r = e, if `r == e` is asked: gathers and one-hot sums become indexed loads.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

/// The kernel (or expression) with such sums replaced, simplified. Values are kept; the result of
/// collapsing twice is that of collapsing once.
UOp collapse_reductions(UOp root);

}  // namespace beamline
