// The buffers of one kernel in the runner: shared by all contestants, restored and poisoned before
// a check, compared after it. Single threaded.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/cpu/memory.h"
#include "devices/cpu/sampler.h"
#include "engine/ir/dtype.h"
#include "harness/messages.h"

namespace beamline {

/// Read-only bytes: a mapped file, or owned.
class Contents {
 public:
  /// Throws std::runtime_error when a file cannot be mapped or its size is not `bytes`.
  Contents(const Data& data, size_t bytes, const std::string& what);
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents();
  const void* data() const { return data_; }

 private:
  std::string owned_;
  void* mapped_ = nullptr;
  size_t bytes_ = 0;
  const void* data_ = nullptr;
};

class RunnerBuffers {
 public:
  /// Throws std::runtime_error on an unknown type or role, or contents that do not fit.
  explicit RunnerBuffers(const SetupRequest& request);

  std::span<void* const> pointers() const { return pointers_; }
  Spans spans() const;

  /// Inputs as they were, outputs poisoned (the pattern alternates) or zeroed, canaries whole.
  void reset(bool poison_outputs);
  /// Compares everything after one call; also finds writes to inputs and beyond the ends.
  CheckReply check(double mistrust_above) const;
  /// Non-empty: an input or a canary that was written, and where.
  std::string trespass() const;

  std::vector<std::string> outputs() const;
  nlohmann::json facts() const;

 private:
  struct Slot {
    std::string role;
    DType dtype, expected_dtype;
    int64_t elements;
    double rtol, rms = 0;
    bool zero_ok;
    GuardedBuffer memory;
    std::unique_ptr<Contents> init, expected;
    bool written() const { return role != "in"; }
  };
  std::vector<Slot> slots_;
  std::vector<void*> pointers_;
  bool has_inputs_ = false;
  int turn_ = 0;
};

}  // namespace beamline
