// A helper that misbehaves. Argument: how to start ("ok" by default). Requests {"do": what} say how
// to answer. Talks the protocol by hand, so that it can break it.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "harness/serve.h"

using beamline::Frame;
using beamline::helper_fd;

namespace {

void send_bytes(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(helper_fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) _exit(0);
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

Frame behave(const Frame& request) {
  const std::string what = request.header.value("do", "echo");
  Frame answer{{{"kind", "answer"}, {"n", request.header.value("n", 0)}, {"pid", getpid()}},
               request.payload};
  answer.header["seq"] = request.header.value("seq", 0);
  if (what == "hang") hang();
  if (what == "spin") {
    for (;;) asm volatile("");
  }
  if (what == "stubborn") {
    signal(SIGTERM, SIG_IGN), signal(SIGINT, SIG_IGN), signal(SIGHUP, SIG_IGN);
    hang();
  }
  if (what == "crash") {
    std::fprintf(stderr, "about to crash\n");
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (what == "exit") _exit(request.header.value("code", 7));
  if (what == "throw") throw std::runtime_error("the handler threw");
  if (what == "garbage") send_bytes("this is no frame, is it?"), hang();
  if (what == "early garbage") send_bytes("B?"), hang();
  if (what == "midframe") {
    const std::string bytes = encode_frame(answer);
    send_bytes(bytes.substr(0, bytes.size() - 3));
    _exit(0);
  }
  if (what == "stall midframe") send_bytes(encode_frame(answer).substr(0, 10)), hang();
  if (what == "huge") {
    std::string bytes = encode_frame(answer);
    const uint64_t length = UINT64_MAX - 5;
    std::memcpy(bytes.data() + 16, &length, 8);
    send_bytes(bytes), hang();
  }
  if (what == "no json") {
    std::string bytes = encode_frame(answer);
    bytes[24] = '!';
    send_bytes(bytes), hang();
  }
  if (what == "twice") send_bytes(encode_frame(answer));
  if (what == "flood") {
    const std::string line(1000, 'x');
    for (int i = 0; i < 1000; i++) std::fprintf(stderr, "%s\n", line.c_str());
    std::fprintf(stderr, "the last words\n");
    if (request.header.value("then", "") == "crash") _exit(3);
  }
  if (what == "close") shutdown(helper_fd, SHUT_WR), hang();
  if (what == "child") {  // a grandchild in the same group, which outlives its parent if it may
    const pid_t child = fork();
    if (child == 0) {
      close(helper_fd);
      hang();
    }
    answer.header["child"] = child;
  }
  if (what == "sleep")
    std::this_thread::sleep_for(std::chrono::milliseconds(request.header.value("ms", 0)));
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string start = argc > 1 ? argv[1] : "ok";
  if (start == "die") {
    std::fprintf(stderr, "cannot find my library\n");
    return 127;
  }
  if (start == "mute") hang();
  if (start == "rude") send_bytes("good morning to you all"), hang();
  if (start == "late" && argc > 2) {  // the first start of two fails; the file remembers
    std::FILE* seen = std::fopen(argv[2], "r");
    if (seen == nullptr) {
      std::fclose(std::fopen(argv[2], "w"));
      return 1;
    }
    std::fclose(seen);
  }
  beamline::serve_frames({{"start", start}}, behave);
}
