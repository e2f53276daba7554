#include <utility>
//
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "harness/process_pool.h"
#include "harness/serve.h"

extern char** environ;

namespace beamline {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Ms = std::chrono::milliseconds;
using Error = boost::system::error_code;

constexpr size_t kStderrTail = 4096;

// How a process ended, for people.
std::string end_text(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit code {}", WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Fd {
  int fd = -1;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
  int release() { return std::exchange(fd, -1); }
};

// Starts the command in a group of its own: /dev/null on 0, stderr's pipe on 1 and 2, the socket
// on 3.
pid_t spawn(const std::vector<std::string>& command, int socket, int err) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attr);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, err, 1);
  posix_spawn_file_actions_adddup2(&files, err, 2);
  posix_spawn_file_actions_adddup2(&files, socket, helper_fd);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int s : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGCHLD}) sigaddset(&defaults, s);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &defaults);
  posix_spawnattr_setpgroup(&attr, 0);
  posix_spawnattr_setflags(&attr,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &files, &attr, argv.data(), environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  }
  return pid;
}

// One started helper: its pid, socket, stderr and what arrived. Handlers hold it by shared_ptr, so
// a late completion finds a dead connection instead of a dangling one.
struct Connection : std::enable_shared_from_this<Connection> {
  Connection(asio::io_context& io, const FrameLimits& limits)
      : socket(io), err(io), decoder(limits) {}
  ~Connection() { end(Ms(0)); }

  // Waits without reading: what a read under way has already taken out of the pipe would be missing
  // where the helper's end is told before its handler runs.
  void read_stderr() {
    err.async_wait(err.wait_read, [self = shared_from_this()](Error e) {
      if (!e && self->take_stderr()) self->read_stderr();
    });
  }
  // What is in the pipe now; false at its end.
  bool take_stderr() {
    Error e;
    err.non_blocking(true, e);
    for (int rounds = 0; !e && rounds < 64; rounds++) {
      const size_t n = err.read_some(asio::buffer(err_chunk), e);
      if (e) break;
      err_tail.append(err_chunk.data(), n);
      if (err_tail.size() > kStderrTail) err_tail.erase(0, err_tail.size() - kStderrTail);
    }
    return !e || e == asio::error::would_block || e == asio::error::try_again;
  }

  // Kills the group and reaps the leader. With `grace` the process may first end by itself, so that
  // its own way to end is what is told. The wait status, or -1 where it is unknown.
  int end(Ms grace) {
    if (pid < 0) return -1;
    siginfo_t info = {};
    for (const auto limit = Clock::now() + grace; Clock::now() < limit && info.si_pid == 0;) {
      if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
      if (info.si_pid == 0) std::this_thread::sleep_for(Ms(1));
    }
    kill(-pid, SIGKILL);  // before the leader is reaped: until then the group's number is ours
    int status = -1;
    // A process stuck in a driver dies late; it must not take us with it.
    for (int i = 0; i < 2000; i++) {
      const pid_t got = waitpid(pid, &status, WNOHANG);
      if (got == pid || (got < 0 && errno != EINTR)) break;
      std::this_thread::sleep_for(Ms(1));
    }
    pid = -1;
    Error e;
    socket.close(e);
    take_stderr();
    err.close(e);
    return status;
  }

  asio::local::stream_protocol::socket socket;
  asio::posix::stream_descriptor err;
  FrameDecoder decoder;
  std::array<char, 4096> err_chunk;
  std::vector<char> chunk = std::vector<char>(size_t{1} << 18);
  std::string err_tail;
  pid_t pid = -1;
};

// A place for one helper after another, with at most one request under way.
class Process {
 public:
  using Done = std::function<void(Outcome)>;

  Process(asio::io_context& io, const WorkerOptions& options)
      : io_(io), options_(options), timer_(io) {}
  ~Process() { stop(); }

  void exchange(const Frame& request, Ms deadline, Done done) {
    nlohmann::json header = request.header;
    header["seq"] = ++seq_;
    request_ = encode_frame(header, request.payload);
    deadline_ = deadline;
    done_ = std::move(done);
    if (connection_ == nullptr)
      start();
    else if (greeted_)
      send();
  }

  bool busy() const { return done_ != nullptr; }
  pid_t pid() const { return connection_ == nullptr ? -1 : connection_->pid; }
  const nlohmann::json& hello() const { return hello_; }
  int started() const { return started_; }

  int stop(Ms grace = Ms(0)) {
    timer_.cancel();
    hello_ = nullptr;
    greeted_ = false;
    const auto old = std::exchange(connection_, nullptr);
    if (old == nullptr) return -1;
    const int status = old->end(grace);
    last_stderr_ = old->err_tail;
    return status;
  }

 private:
  void start() {
    Fd ours, theirs, err_read, err_write;
    int pair[2], pipes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw_errno("socketpair");
    ours.fd = pair[0], theirs.fd = pair[1];
    if (pipe2(pipes, O_CLOEXEC) != 0) throw_errno("pipe");
    err_read.fd = pipes[0], err_write.fd = pipes[1];
    connection_ = std::make_shared<Connection>(io_, options_.limits);
    try {
      connection_->pid = spawn(options_.command, theirs.fd, err_write.fd);
    } catch (...) {
      connection_ = nullptr;
      done_ = nullptr;
      throw;
    }
    started_++;
    connection_->socket.assign(asio::local::stream_protocol(), ours.release());
    connection_->err.assign(err_read.release());
    connection_->read_stderr();
    read();
    arm(options_.start_limit);
  }

  void send() {
    // Errors show as the end of the stream, with the reason why.
    const auto c = connection_;
    const auto bytes = std::make_shared<std::string>(std::move(request_));
    sent_at_ = Clock::now();
    arm(deadline_);
    asio::async_write(c->socket, asio::buffer(*bytes), [c, bytes](Error, size_t) {});
  }

  void read() {
    const auto c = connection_;
    c->socket.async_read_some(asio::buffer(c->chunk), [this, c](Error e, size_t n) {
      if (c->pid < 0) return;  // ended; `this` may be gone with it
      if (e) return lost(c->decoder.partial() ? "ended within a frame" : "", Ms(500));
      c->decoder.feed({c->chunk.data(), n});
      auto result = c->decoder.next();
      if (auto* garbled = std::get_if<FrameDecoder::Garbled>(&result)) {
        return lost("garbled answer: " + garbled->reason, Ms(0));
      }
      Frame* frame = std::get_if<Frame>(&result);
      if (frame != nullptr && c->decoder.partial()) return lost("more than one answer", Ms(0));
      try {
        if (frame != nullptr && !take(std::move(*frame))) return;
      } catch (...) {  // of the completion: the helper is well and goes on
        if (c->pid >= 0) read();
        throw;
      }
      if (c->pid >= 0) read();
    });
  }

  // A frame that arrived whole. False when the helper was ended over it.
  bool take(Frame frame) {
    if (!greeted_) {
      if (frame.kind() != "hello") return lost("no greeting", Ms(0)), false;
      hello_ = std::move(frame.header);
      greeted_ = true;
      failed_starts_ = 0;
      timer_.cancel();
      if (busy()) send();
      return true;
    }
    // Late or doubled answers must not become those of the next request.
    const auto seq = frame.header.find("seq");
    if (!busy() || seq == frame.header.end() || *seq != seq_) {
      return lost("an answer to another request", Ms(0)), false;
    }
    timer_.cancel();
    Outcome out;
    out.kind = Outcome::Kind::Ok;
    out.reply = std::move(frame);
    if (options_.on_reply) options_.on_reply(out.reply);
    const auto alive = connection_;
    finish(std::move(out));
    return alive->pid >= 0;
  }

  // The helper is of no more use.
  void lost(const std::string& why, Ms grace) {
    const bool starting = !greeted_;
    const int status = stop(grace);
    std::string text = why;
    Outcome out;
    if (grace > Ms(0) && status != -1) {
      text += (text.empty() ? "" : ": ") + end_text(status);
      if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
    }
    if (!last_stderr_.empty()) text += "; stderr: " + last_stderr_;
    if (starting) return failed_start(text);
    if (!busy()) return;  // died idle: the next request starts another
    out.error = text;
    finish(std::move(out));
  }

  void failed_start(const std::string& why) {
    if (++failed_starts_ >= options_.failed_starts) {
      failed_starts_ = 0;
      done_ = nullptr;
      throw std::runtime_error(fmt::format("{} failed to start {} times: {}", options_.command[0],
                                           options_.failed_starts, why));
    }
    if (busy()) start();
  }

  void arm(Ms limit) {
    timer_.expires_after(limit);
    timer_.async_wait([this, c = connection_](Error e) {
      if (e || c->pid < 0 || c != connection_) return;
      if (!greeted_)
        return lost(fmt::format("no greeting within {} ms", options_.start_limit.count()), Ms(0));
      // An answer that came in the same instant has re-armed or cancelled; this one is late.
      if (!busy() || Clock::now() < timer_.expiry()) return;
      stop();
      Outcome out;
      out.kind = Outcome::Kind::Timeout;
      out.error = fmt::format("no answer within {} ms", deadline_.count());
      if (!last_stderr_.empty()) out.error += "; stderr: " + last_stderr_;
      finish(std::move(out));
    });
  }

  void finish(Outcome out) {
    out.elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - sent_at_).count();
    const Done done = std::exchange(done_, nullptr);
    done(std::move(out));
  }

  asio::io_context& io_;
  const WorkerOptions& options_;
  asio::steady_timer timer_;
  std::shared_ptr<Connection> connection_;
  std::string request_, last_stderr_;
  Ms deadline_{0};
  Done done_;
  Clock::time_point sent_at_ = Clock::now();
  nlohmann::json hello_;
  bool greeted_ = false;
  uint64_t seq_ = 0;
  int failed_starts_ = 0;
  int started_ = 0;
};

}  // namespace

const char* Outcome::status() const {
  return kind == Kind::Ok ? "ok" : kind == Kind::Timeout ? "timeout" : "crashed";
}

// ---- Worker ----

struct Worker::Impl {
  explicit Impl(WorkerOptions o) : options(std::move(o)), process(io, options) {}
  WorkerOptions options;
  asio::io_context io;
  Process process;
};

Worker::Worker(WorkerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Worker::~Worker() = default;

Outcome Worker::call(const Frame& request, Ms deadline) {
  Impl& w = *impl_;
  w.io.restart();
  w.io.poll();  // a helper that died meanwhile is no answer to this request
  std::unique_ptr<Outcome> result;
  w.process.exchange(request, deadline,
                     [&](Outcome o) { result = std::make_unique<Outcome>(std::move(o)); });
  w.io.restart();
  while (result == nullptr) w.io.run_one();
  return std::move(*result);
}

void Worker::restart() { impl_->process.stop(); }
pid_t Worker::pid() const { return impl_->process.pid(); }
const nlohmann::json& Worker::hello() const { return impl_->process.hello(); }
int Worker::started() const { return impl_->process.started(); }

// ---- Pool ----

struct Pool::Impl {
  struct Request {
    Frame frame;
    Ms deadline;
    Done done;
  };

  Impl(WorkerOptions o, int workers) : options(std::move(o)) {
    if (workers < 1) throw std::runtime_error("a pool needs a worker");
    for (int i = 0; i < workers; i++) processes.push_back(std::make_unique<Process>(io, options));
  }

  // Gives queued requests to idle helpers. Not from within a completion, which may be deep in one.
  void dispatch() {
    for (auto& p : processes) {
      if (queue.empty()) return;
      if (p->busy()) continue;
      Request r = std::move(queue.front());
      queue.pop_front();
      p->exchange(r.frame, r.deadline, [this, call = std::move(r.done)](Outcome o) {
        completed++;
        call(std::move(o));
      });
    }
  }

  size_t running() const {
    size_t n = 0;
    for (const auto& p : processes) n += p->busy();
    return n;
  }

  // True when a request was done before `limit`.
  bool step(Clock::time_point limit) {
    const size_t before = completed;
    while (completed == before && (running() > 0 || !queue.empty())) {
      dispatch();
      io.restart();
      if (io.run_one_until(limit) == 0 && Clock::now() >= limit) break;
    }
    dispatch();
    return completed != before;
  }

  WorkerOptions options;
  asio::io_context io;
  std::vector<std::unique_ptr<Process>> processes;
  std::deque<Request> queue;
  size_t completed = 0;
};

Pool::Pool(WorkerOptions options, int workers)
    : impl_(std::make_unique<Impl>(std::move(options), workers)) {}
Pool::~Pool() = default;

void Pool::submit(Frame request, Ms deadline, Done done) {
  impl_->queue.push_back({std::move(request), deadline, std::move(done)});
}

void Pool::run() {
  while (impl_->running() > 0 || !impl_->queue.empty())
    impl_->step(Clock::now() + std::chrono::hours(1));
}

bool Pool::poll(Ms wait) { return impl_->step(Clock::now() + wait); }

size_t Pool::cancel_queued() {
  const size_t n = impl_->queue.size();
  impl_->queue.clear();
  return n;
}

size_t Pool::pending() const { return impl_->queue.size() + impl_->running(); }
int Pool::workers() const { return static_cast<int>(impl_->processes.size()); }

std::string helper_path(const std::string& name) {
  std::array<char, 4096> path;
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  if (n <= 0) throw_errno("cannot find the path of this executable");
  std::string dir(path.data(), static_cast<size_t>(n));
  dir.resize(dir.rfind('/') + 1);
  return dir + name;
}

}  // namespace beamline
