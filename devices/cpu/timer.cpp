#include "devices/cpu/timer.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace beamline {
namespace {

bool tsc_is_invariant() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || (d & (1u << 8)) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) && (d & (1u << 27)) != 0;  // rdtscp
#else
  return false;
#endif
}

#if defined(__x86_64__)
struct Pair {
  uint64_t ticks, ns;
};

// Both clocks at one moment: of several tries the one whose bracket is tightest.
Pair read_both() {
  Pair best = {0, 0};
  uint64_t narrowest = UINT64_MAX;
  unsigned aux = 0;
  for (int i = 0; i < 50; i++) {
    const uint64_t before = __rdtscp(&aux);
    const uint64_t ns = Timer::clock_ns();
    const uint64_t after = __rdtscp(&aux);
    if (after - before < narrowest) {
      narrowest = after - before;
      best = {before + (after - before) / 2, ns};
    }
  }
  return best;
}
#endif

}  // namespace

Timer::Timer() : tsc_(tsc_is_invariant()) {
#if defined(__x86_64__)
  if (tsc_) {
    const Pair first = read_both();
    while (clock_ns() - first.ns < 20'000'000) {
    }
    const Pair last = read_both();
    if (last.ticks > first.ticks) {
      ns_per_tick_ =
          static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
    } else {
      tsc_ = false;  // a counter that stands still is no clock
    }
  }
#endif
  std::array<uint64_t, 1001> empty;
  for (uint64_t& e : empty) {
    const uint64_t start = now();
    e = now() - start;
  }
  std::nth_element(empty.begin(), empty.begin() + 500, empty.end());
  overhead_ns_ = ns(empty[500]);
}

}  // namespace beamline
