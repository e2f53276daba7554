// The programs that a device is probed with: anchors, no workload of anybody. LLVM IR of an entry
// `probe` with the signature of all kernels; buffer 0 is memory of at least the footprint.
#pragma once
#include <cstdint>
#include <string>

#include "engine/ir/target.h"

namespace beamline {

struct ProbeKernel {
  std::string ir;
  double flops = 0, bytes = 0;  // of one call, over all threads
  int threads = 1;
};

/// Independent chains of multiply-adds in registers: what no kernel can exceed. `dtype`: f32 or
/// f64.
ProbeKernel fma_probe(const Target& target, DType dtype, int threads);
/// Sums the footprint, each thread its share, as often as makes a few MB.
ProbeKernel read_probe(const Target& target, int64_t footprint, int threads);
/// a[i] = b[i] + s * c[i]; the three arrays together are the footprint.
ProbeKernel triad_probe(const Target& target, int64_t footprint, int threads);

}  // namespace beamline
