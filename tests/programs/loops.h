// Random programs of one or two kernels each whose loops are worth splitting: products, sums,
// windows and copies of odd and even sizes, in many types.
#pragma once
#include <cstdint>

#include "tests/programs/program.h"

namespace beamline::fuzz {

Program random_loops(uint64_t seed);

/// Sums of products of small types only.
Program random_products(uint64_t seed);

/// Two of them side by side, as two results that do not depend on each other.
Program random_pairs(uint64_t seed);

}  // namespace beamline::fuzz
