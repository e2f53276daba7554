#include "tests/bench/hand_math.h"

#include "devices/cpu/topology.h"

namespace beamline::bench {

HandMathVariant hand_math(HandFunction f) {
  const CpuModel model = read_cpu_model();
  if (model.has("avx512vl")) return {"AVX-512", hand_math_avx512(f)};
  if (model.has("avx2")) return {"AVX2", hand_math_avx2(f)};
  return {"none", nullptr};
}

}  // namespace beamline::bench
