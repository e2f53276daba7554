// Floor division and modulo of sums (engine.md D1-D3j): a list of strategies, the first that
// answers wins.
#pragma once
#include <optional>

#include "engine/rules/linear.h"

namespace beamline {

/// A simpler form of a FLOORDIV or FLOORMOD node, or null.
UOp fold_divmod(UOp u);

/// In sum l, `mod` is a term (base % d) * m. If the matching quotient is there too, the sum with
/// both replaced by base * m (S9); the partial form gives (base % (d*e)) * m.
std::optional<Linear> recombine(const Linear& l, const Term& mod);

}  // namespace beamline
