// All kernels of a workload compiled in this process, run one after another on shared buffers.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/kernel_lab.h"

namespace beamline::bench {

/// Gives a closure the signature of a kernel; the buffers a caller passes are ignored. There are as
/// many closures at a time as `call_slots`; a slot is free again when it is bound again.
constexpr size_t call_slots = 16;
KernelFn bind_call(size_t slot, std::function<void(int64_t core_id)> call);

class NetworkRun {
 public:
  /// `opts`: one text a kernel. The buffers must outlive the run. Throws std::runtime_error with
  /// the reason of a refusal.
  NetworkRun(const Network& network, const std::vector<std::string>& opts, const Target& target,
             const Buffers& buffers);
  /// Most that a kernel uses. All core ids below it must call at the same time.
  int threads() const { return threads_; }
  void call(int64_t core_id);
  std::string opts_text() const;  // of the kernels, " | " between them

 private:
  struct Step {
    Program program;
    LaidOperands laid;
    std::vector<void*> pointers;
  };
  void meet();  // all core ids, after each kernel

  std::vector<Step> steps_;
  int threads_ = 1;
  std::atomic<int> arrived_{0}, generation_{0};
};

}  // namespace beamline::bench
