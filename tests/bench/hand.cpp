#include "tests/bench/hand.h"

#include "devices/cpu/topology.h"

namespace beamline::bench {

std::vector<HandVariant> hand_variants(HandOp op) {
  const CpuModel model = read_cpu_model();
  const bool wide = model.has("avx512vl"), some = model.has("avx2");
  std::vector<HandVariant> out;
  if (!wide && !some) return out;
  for (const bool streaming : {false, true})
    if (const HandKernel k = wide ? hand_avx512(op, streaming) : hand_avx2(op, streaming))
      out.push_back(
          {std::string(wide ? "AVX-512" : "AVX2") + (streaming ? ", streaming stores" : ""), k});
  return out;
}

}  // namespace beamline::bench
