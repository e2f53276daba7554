// CHECK: a broken invariant of our own code. Prints the condition and its place, then aborts.
// Never for bad input (that is a value) and never for a failing world (that is an exception).
#pragma once
#include <cstdio>
#include <cstdlib>

namespace beamline::detail {
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "CHECK failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}
}  // namespace beamline::detail

#define CHECK(condition) \
  ((condition) ? void(0) : ::beamline::detail::check_failed(#condition, __FILE__, __LINE__))
