// Where the temporaries of a program lie: those that are never alive together share memory, in one
// arena (engine.md section 4, "Memory planner"). A pure function of sizes and lifetimes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace beamline {

/// A buffer is alive from the kernel that first touches it to the last one that does, both
/// included: what a kernel writes never lies on what it reads.
struct Lifetime {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
};
struct MemoryPlan {
  std::vector<int64_t> offsets;  // multiples of 256
  int64_t bytes = 0;             // of the arena
};

/// In order of time, each buffer into the smallest hole that holds it. O(n log n).
MemoryPlan plan_memory(std::span<const Lifetime> buffers);

}  // namespace beamline
