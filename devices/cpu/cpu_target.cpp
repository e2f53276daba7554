#include "devices/cpu/cpu_target.h"

#include <algorithm>

namespace beamline {

Target cpu_target(const CpuModel& model, const CpuTopology& topology, int threads) {
  Target t;
  t.name = "cpu";
  t.cpu = "native";
  // Registers 16..31 and masks on narrow vectors come with VL only.
  const bool avx512 = model.has("avx512f") && model.has("avx512vl");
  t.vector_bytes = avx512 ? 64 : model.has("avx") ? 32 : 16;
  t.vector_registers = avx512 ? 32 : 16;
#if defined(__x86_64__)
  t.instructions = "sse2";  // every one of them
#endif
  for (const char* i : {"fma", "f16c", "avx2", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16"})
    if (model.has(i)) t.instructions += (t.instructions.empty() ? "" : " ") + std::string(i);
  t.masked_tails = avx512 || model.has("avx2");
  const int pus = std::max<int>(1, static_cast<int>(topology.pus.size()));
  t.threads = threads > 0 ? std::min(threads, pus) : pus;
  // More threads than the quota would only wait for each other.
  if (threads == 0 && topology.quota_cpus > 0) {
    t.threads = std::clamp(static_cast<int>(topology.quota_cpus), 1, t.threads);
  }
  return t;
}

}  // namespace beamline
