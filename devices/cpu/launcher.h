// Calls kernels: one call per core id, on threads bound to the PUs of the device. Threads are
// started when a kernel first needs them, spin while a session runs and sleep otherwise. One caller
// at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "devices/cpu/blob.h"

namespace beamline {

class Launcher {
 public:
  /// The caller's thread runs core id 0 on pus[0] (its binding is its own affair); thread i runs on
  /// pus[i]. More core ids than PUs are dealt out in turn. REQUIRES: pus is not empty.
  explicit Launcher(std::vector<unsigned> pus);
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// Returns when all `threads` calls have returned.
  void run(KernelFn kernel, void* const* buffers, int threads);

 private:
  struct Helper;
  std::vector<unsigned> pus_;
  std::vector<std::unique_ptr<Helper>> helpers_;  // helper i runs on pus_[i + 1]
};

/// Denormals are numbers, rounding is to nearest, no exception traps: every thread that runs
/// kernels calls this first. Returns the value of MXCSR (0 where there is none).
uint32_t set_float_mode();

}  // namespace beamline
