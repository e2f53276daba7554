#include "tests/bench/anchors.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "devices/cpu/launcher.h"
#include "devices/cpu/llvm_compiler.h"
#include "devices/cpu/sampler.h"
#include "devices/cpu/topology.h"
#include "harness/probe_kernels.h"
#include "tests/bench/kernel_lab.h"

namespace beamline::bench {
namespace {

constexpr int64_t smallest = int64_t{16} << 10, largest = int64_t{256} << 20;

CodeBlob compiled(const ProbeKernel& probe, const Target& target) {
  const auto result =
      compile_ir(probe.ir, "probe", {.cpu = target.cpu, .features = target.features});
  if (const auto* e = std::get_if<CompileError>(&result)) throw std::runtime_error(e->reason);
  const auto& blob = std::get<CompiledBlob>(result);
  auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  if (const auto* why = std::get_if<std::string>(&mapped)) throw std::runtime_error(*why);
  return std::get<CodeBlob>(std::move(mapped));
}

}  // namespace

Anchors::Anchors(const Target& target, int threads)
    : target_(target),
      threads_(threads),
      fma_(compiled(fma_probe(target, DType::F32, threads), target)),
      fma_flops_(fma_probe(target, DType::F32, threads).flops),
      memory_(static_cast<size_t>(largest), /*huge_pages=*/true),
      pointers_{memory_.data()} {}

double Anchors::gbps_at(double bytes) {
  const int64_t footprint = std::clamp(
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes))), smallest, largest);
  if (const auto at = rates_.find(footprint); at != rates_.end()) return at->second;
  const CpuTopology topology = read_topology();
  const OnFirstPu here;
  Launcher launcher(topology.pus);
  const Timer timer;
  double best = 0;
  for (const ProbeKernel& probe :
       {read_probe(target_, footprint, threads_), triad_probe(target_, footprint, threads_)}) {
    const CodeBlob blob = compiled(probe, target_);
    for (int session = 0; session < 3; session++) {
      const SessionResult r =
          run_session(timer, launcher, {{blob.entry(), threads_}}, pointers_, {}, {});
      for (double ns : r.contestants[0].ns) best = std::max(best, probe.bytes / ns);
    }
  }
  return rates_[footprint] = best;
}

}  // namespace beamline::bench
