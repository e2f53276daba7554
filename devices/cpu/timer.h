// A clock for sections of 20 us and more. The time stamp counter between fences where it is
// invariant, calibrated against CLOCK_MONOTONIC_RAW; that clock itself elsewhere. Thread safe after
// construction.
#pragma once
#include <cstdint>
#include <ctime>
#include <string>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace beamline {

class Timer {
 public:
  /// Takes about 20 ms: calibrates and measures its own cost.
  Timer();

  /// Ticks now. Nothing before it is still running, nothing after it has started.
  uint64_t now() const {
#if defined(__x86_64__)
    if (tsc_) {
      unsigned aux = 0;
      _mm_lfence();
      const uint64_t t = __rdtscp(&aux);
      _mm_lfence();
      return t;
    }
#endif
    return clock_ns();
  }

  double ns(uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick_; }
  /// What an empty section reads as.
  double overhead_ns() const { return overhead_ns_; }
  double ns_per_tick() const { return ns_per_tick_; }
  /// "tsc" or "clock_monotonic_raw".
  std::string kind() const { return tsc_ ? "tsc" : "clock_monotonic_raw"; }

  static uint64_t clock_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
  }

 private:
  bool tsc_ = false;
  double ns_per_tick_ = 1;
  double overhead_ns_ = 0;
};

}  // namespace beamline
