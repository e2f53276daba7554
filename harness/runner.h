// The runner's state and its answers to frames, without the process around it.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "devices/cpu/blob.h"
#include "devices/cpu/laid_operands.h"
#include "devices/cpu/launcher.h"
#include "devices/cpu/timer.h"
#include "harness/messages.h"
#include "harness/runner_buffers.h"

namespace beamline {

class Runner {
 public:
  /// Throws std::exception when the world fails (memory, files); a malformed request is an error
  /// frame.
  Frame handle(const Frame& request);

 private:
  struct Kernel {
    CodeBlob blob;
    int threads = 1;
    std::vector<LayoutCode> layouts;
    bool checked = false;  // on the buffers of now, as the last check found
  };

  Reply setup(const SetupRequest& m);
  Reply load(const LoadRequest& m);
  Reply unload(const UnloadRequest& m);
  CheckReply check(const CheckRequest& m);
  TimeReply time(const TimeRequest& m);
  RunReply run(const RunRequest& m);
  /// Empty, or why `id` cannot run now.
  std::string missing(const std::string& id) const;
  /// The kernel's buffers; what it wants laid out is.
  std::vector<void*> pointers(const Kernel& k);
  void call(const Kernel& k);

  std::unique_ptr<RunnerBuffers> buffers_;
  LaidOperands laid_;  // of these buffers
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<Timer> timer_;  // calibrated when first needed
  std::map<std::string, Kernel> kernels_;
  nlohmann::json facts_ = nlohmann::json::object();
};

}  // namespace beamline
