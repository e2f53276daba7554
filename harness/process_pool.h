// Helper processes: started, talked to, given deadlines, killed and replaced. Whatever a helper
// does (hang, crash, write garbage, end in the middle of a frame) is an outcome, a value. A helper
// lives in a process group of its own, is killed with all of it, and never outlives this process.
//
// Worker: one helper, one call after the other. Pool: several, with completions. Both belong to one
// thread and start helpers when a request first needs one.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol.h"

namespace beamline {

struct WorkerOptions {
  std::vector<std::string> command;               // path of the executable, then its arguments
  std::chrono::milliseconds start_limit{20'000};  // until it says hello
  int failed_starts = 3;                          // in a row, then it is an exception
  FrameLimits limits{};
  std::function<void(const Frame&)> on_reply{};  // sees each answer before its requester
};

struct Outcome {
  enum class Kind { Ok, Timeout, Crashed };
  Kind kind = Kind::Crashed;
  Frame reply;        // Ok only
  std::string error;  // otherwise: signal, exit code or what was garbled, and the end of its stderr
  int signal = 0;     // that ended a crashed helper by itself; 0 = none
  double elapsed_ms = 0;

  bool ok() const { return kind == Kind::Ok; }
  /// "ok", "timeout" or "crashed", as a trial's status spells it.
  const char* status() const;
};

class Worker {
 public:
  explicit Worker(WorkerOptions options);
  ~Worker();  // kills the helper
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The reply, or what became of the helper, after `deadline` at the latest. Throws
  /// std::runtime_error with command and stderr when helpers cannot be started time after time.
  Outcome call(const Frame& request, std::chrono::milliseconds deadline);

  /// Ends the helper; the next call starts another (a fresh process for each pass).
  void restart();
  /// Of the helper of now; -1 when there is none.
  pid_t pid() const;
  /// What the helper of now said when it started; null when there is none.
  const nlohmann::json& hello() const;
  /// Helpers started so far.
  int started() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Pool {
 public:
  using Done = std::function<void(Outcome)>;

  Pool(WorkerOptions options, int workers);
  ~Pool();  // kills the helpers; open requests are dropped
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Queues a request; `deadline` counts from when a helper takes it. `done` is called from run()
  /// or poll(), and may submit more.
  void submit(Frame request, std::chrono::milliseconds deadline, Done done);
  /// Until nothing is pending. Throws as Worker::call does, and what a `done` throws; the rest of
  /// the requests stays pending.
  void run();
  /// Until one request is done, nothing is pending, or `wait` is over. True if one was done.
  bool poll(std::chrono::milliseconds wait);
  /// Drops what no helper has taken yet; returns how many.
  size_t cancel_queued();

  size_t pending() const;  // queued and running
  int workers() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A deadline given in seconds.
inline std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

/// Path of a helper: beside this executable.
std::string helper_path(const std::string& name);

}  // namespace beamline
