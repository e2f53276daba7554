#include "harness/serve.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

namespace beamline {
namespace {

// With everything it has started, where the group is its own.
[[noreturn]] void end_group() {
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(0);
}

// A handler may hang for ever in code that is not ours; this thread sleeps until the parent is
// gone.
void die_with_parent() {
  std::thread([] {
    pollfd p = {helper_fd, POLLRDHUP, 0};
    while (poll(&p, 1, -1) < 0 && errno == EINTR) {
    }
    end_group();
  }).detach();
}

bool send_all(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(helper_fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

Frame answer(const FrameHandler& handler, const Frame& request) {
  try {
    return handler(request);
  } catch (const std::exception& e) {
    return error_frame(e.what());
  }
}

}  // namespace

Frame error_frame(const std::string& reason) {
  return {{{"kind", "error"}, {"error", reason}}, {}};
}

void serve_frames(nlohmann::json hello, const FrameHandler& handler) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);  // crashes are expected; a dump would only cost time and disk
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(helper_fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    std::fprintf(stderr, "this is a helper of beamline; it is started by beamline only\n");
    std::exit(2);
  }
  die_with_parent();
  hello["kind"] = "hello";
  hello["pid"] = getpid();
  if (!send_all(encode_frame({std::move(hello), {}}))) end_group();

  FrameDecoder decoder;
  std::vector<char> chunk(size_t{1} << 18);
  for (;;) {
    const ssize_t n = recv(helper_fd, chunk.data(), chunk.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end_group();
    decoder.feed({chunk.data(), static_cast<size_t>(n)});
    for (bool more = true; more;) {
      auto result = decoder.next();
      if (auto* frame = std::get_if<Frame>(&result)) {
        Frame reply = answer(handler, *frame);
        reply.header["seq"] = frame->header.value("seq", nlohmann::json());
        if (!send_all(encode_frame(reply))) end_group();
        continue;
      }
      if (auto* garbled = std::get_if<FrameDecoder::Garbled>(&result)) {
        std::fprintf(stderr, "garbled request: %s\n", garbled->reason.c_str());
        _exit(2);
      }
      more = false;
    }
  }
}

}  // namespace beamline
