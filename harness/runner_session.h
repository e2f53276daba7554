// A runner process with the buffers of one kernel. What the process forgets when it dies (buffers,
// loaded and checked programs) is told to the next one before it is asked anything. Used on one
// thread. Throws std::runtime_error when the buffers cannot be set up.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/messages.h"
#include "harness/process_pool.h"
#include "search/outcome.h"

namespace beamline {

/// Compiled code as a runner loads it.
struct LoadedCode {
  std::string code;
  uint64_t entry_offset = 0;
  int threads = 1;
  std::vector<LayoutCode> layouts;
};

/// An answer, or what became of the runner.
template <class Reply>
struct Answer {
  search::Outcome outcome = search::Outcome::Ok;
  std::string error;
  Reply reply;
  double elapsed_ms = 0;
};

class RunnerSession {
 public:
  explicit RunnerSession(std::vector<unsigned> pus);

  /// From here on programs run on these; nothing is checked on them yet.
  void use_buffers(std::vector<BufferSpec> buffers);
  Answer<CheckReply> check(const std::string& id, const LoadedCode& code, double deadline_s);
  /// The programs must have passed check() on these buffers, in whatever process.
  Answer<TimeReply> time(const TimeRequest& request, double deadline_s);
  /// True when the process of now has checked the program on the buffers of now.
  bool is_checked(const std::string& id) const;
  /// Ends the process.
  void restart();

 private:
  void ready();
  Answer<Reply> load(const std::string& id, const LoadedCode& code);
  template <class Reply>
  Answer<Reply> ask(const Frame& frame, double deadline_s);

  Worker worker_;
  std::vector<unsigned> pus_;
  std::vector<BufferSpec> buffers_;
  bool buffers_sent_ = false;
  std::set<std::string> loaded_, checked_;
};

/// A status of the protocol as an outcome; what is none is a crash.
search::Outcome outcome_of(const std::string& status);

}  // namespace beamline
