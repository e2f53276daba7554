// How far the machine code of the functions of real numbers is from their exact values, in units of
// the last place of f32. What devices_test samples and tests/bench/ulp exhausts.
#pragma once
#include <cstdint>
#include <span>

#include "devices/cpu/blob.h"
#include "engine/ir/target.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {

enum class Symmetry : uint8_t { None, Odd, Even };

struct Transcendental {
  const char* name;
  UOp (TensorOps::*build)(UOp);
  double (*exact)(double);  // to far less than a unit of f32
  Symmetry symmetry;
  double bound;  // of the error, in units; README has the measured maxima
};
std::span<const Transcendental> transcendentals();

/// |got - exact| in units of the last place of f32 at `exact`; 0 for NaN in place, infinite for NaN
/// in one of them only. Infinity counts as 2^128.
double ulps(float got, double exact);

/// f of `count` floats as machine code for a CPU: entry({out, in}). With the heuristic's opts.
CodeBlob code_of(const Transcendental& f, int64_t count, const Target& target);

struct UlpError {
  double ulps = 0;
  float at = 0;
  void add(const UlpError& e) {
    if (e.ulps > ulps) *this = e;
  }
};
/// The greatest error over the numbers with these bits, and those with the sign turned: bits first,
/// first + step, ... below end, all at most 2^31. `count` is that of code_of. Thread safe.
UlpError greatest_error(const Transcendental& f, const CodeBlob& code, int64_t count,
                        uint64_t first, uint64_t end, uint64_t step);
/// The same over numbers where such functions go wrong.
UlpError greatest_error_at_edges(const Transcendental& f, const CodeBlob& code, int64_t count);

}  // namespace beamline
