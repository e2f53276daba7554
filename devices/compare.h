// Did a kernel compute the right thing? Element by element against the reference, by the tolerance
// of a kernel: |got - ref| <= rtol * (|ref| + rms(ref)). Integers and bools are exact, NaN and Inf
// match in place. Pure functions over memory; all types that are stored.
#pragma once
#include <cstdint>
#include <string>

#include "engine/ir/dtype.h"

namespace beamline {

/// False for types this file cannot read (weak types, void).
bool comparable(DType t);
/// An output of type `got` may be compared with expected values of type `want`: the same, or f64
/// for any float.
bool comparable(DType got, DType want);

/// Root mean square of the finite elements; 0 for integers, which need none.
double rms_of(const void* data, DType t, int64_t n);

/// Fills n elements with a pattern that no kernel computes by chance: a NaN with a payload, or
/// bytes that are no bool and unlikely integers. `turn` alternates between two patterns.
void poison(void* data, DType t, int64_t n, int turn);

struct Comparison {
  bool ok = false;
  bool all_zero = false;       // every element got is zero
  bool want_all_zero = false;  // and so should it be
  int64_t bad = 0;             // elements out of tolerance
  int64_t unwritten = 0;       // of those, still poisoned
  int64_t first_bad = -1;
  double max_err = 0;     // largest |got - ref| / (|ref| + rms); at most DBL_MAX
  std::string got, want;  // of the first bad element
};

/// `turn` is that of the poison the output held before. REQUIRES: comparable(got_type, want_type).
Comparison compare_output(const void* got, DType got_type, const void* want, DType want_type,
                          int64_t n, double rtol, double rms, int turn);

}  // namespace beamline
