// Functions of real numbers written by hand, with the polynomials and the reductions that the
// engine uses (engine/lower, engine/tensor/math.cpp), chosen for this machine's vectors.
#pragma once
#include <cstdint>
#include <string>

namespace beamline::bench {

enum class HandFunction { Sin, Cos, Exp2, Log2, Exp, Log, Tanh, Erf };

/// out[i] = f(in[i]) of n floats, n a multiple of 32.
using HandMathKernel = void (*)(float* out, const float* in, int64_t n);

struct HandMathVariant {
  std::string name;  // "AVX-512"
  HandMathKernel run = nullptr;
};
/// The best for this machine; `run` is null without AVX2.
HandMathVariant hand_math(HandFunction f);

// One file each, whose functions are compiled for those vectors.
HandMathKernel hand_math_avx2(HandFunction f);
HandMathKernel hand_math_avx512(HandFunction f);

}  // namespace beamline::bench
