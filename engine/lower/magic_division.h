// Integer division by constants as multiplications and shifts, for targets that ask for it
// (Target::magic_division). Exact for every dividend within the bounds that are known of it, and
// for every divisor but 0. Multipliers: H. Warren, Hacker's Delight (2nd ed.), 10-9: the least
// shift for which ceil(2^s / d) is exact up to the largest dividend. A processor's compiler does
// the same, but for all values of a type: where it knows no bounds, a narrow index costs it a wide
// product. (LLVM 19 for sm_80: 39 instructions instead of 46 for a regrouped copy, 26 instead of 32
// for a // 7 + a % 10 of i32.)
#pragma once
#include "engine/rewrite/rule.h"

namespace beamline {

/// floor and truncating quotient and remainder, each by a constant.
const Rules<>& magic_division_rules();

}  // namespace beamline
