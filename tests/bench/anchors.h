// What this machine can do at most, measured beside what is compared with it.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "devices/cpu/blob.h"
#include "devices/cpu/memory.h"
#include "engine/ir/target.h"

namespace beamline::bench {

class Anchors {
 public:
  Anchors(const Target& target, int threads);

  /// Chains of multiply-adds in registers, to race with; its floating-point operations a call.
  KernelFn fma() const { return fma_.entry(); }
  double fma_flops() const { return fma_flops_; }
  void* const* buffers() const { return pointers_; }
  /// The better of reading and of a triad over a working set of so many bytes, rounded up to a
  /// power of two; measured once for each.
  double gbps_at(double bytes);

 private:
  Target target_;
  int threads_;
  CodeBlob fma_;
  double fma_flops_ = 0;
  GuardedBuffer memory_;
  void* pointers_[1] = {};
  std::map<int64_t, double> rates_;
};

}  // namespace beamline::bench
