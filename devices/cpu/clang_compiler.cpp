#include "devices/cpu/clang_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace beamline {
namespace {

struct Ran {
  int code = -1;
  std::string out, err;
};

// A file in memory, so that neither side waits for the other to read.
class Scratch {
 public:
  explicit Scratch(const std::string& text = {}) : fd_(memfd_create("clang", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = write(fd_, text.data() + done, text.size() - done);
      if (n < 0) throw std::system_error(errno, std::generic_category(), "write to memory");
      done += static_cast<size_t>(n);
    }
    lseek(fd_, 0, SEEK_SET);
  }
  ~Scratch() { close(fd_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  int fd() const { return fd_; }
  std::string text() const {
    std::string all(static_cast<size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    const ssize_t n = pread(fd_, all.data(), all.size(), 0);
    all.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return all;
  }

 private:
  int fd_;
};

Ran run(const std::string& program, std::vector<std::string> arguments, const std::string& input) {
  const Scratch in(input), out, err;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.fd(), 0);
  posix_spawn_file_actions_adddup2(&files, out.fd(), 1);
  posix_spawn_file_actions_adddup2(&files, err.fd(), 2);
  std::string name = program;
  std::vector<char*> argv{name.data()};
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, program.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "start " + program);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.text(), err.text()};
}

const std::string& clang() {
  static const std::string found = [] {
    const char* path = std::getenv("PATH");
    for (const char* name : {"clang-19", "clang"}) {
      std::istringstream folders(path == nullptr ? "" : path);
      for (std::string folder; std::getline(folders, folder, ':');)
        if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
    }
    return std::string();
  }();
  return found;
}

// "+avx2,-avx512f" as clang's driver takes it.
std::vector<std::string> feature_flags(const std::string& features) {
  std::vector<std::string> flags;
  std::istringstream list(features);
  for (std::string f; std::getline(list, f, ',');)
    if (f.size() > 1) flags.push_back((f[0] == '-' ? "-mno-" : "-m") + f.substr(1));
  return flags;
}

}  // namespace

const std::string& clang_toolchain() {
  static const std::string version = [] {
    if (clang().empty()) return std::string();
    const Ran r = run(clang(), {"-dumpversion"}, "");
    std::string v = r.out.substr(0, r.out.find('\n'));
    return r.code == 0 && !v.empty() ? "clang " + v : std::string();
  }();
  return version;
}

std::variant<CompiledBlob, CompileError> compile_c(const std::string& source,
                                                   const std::string& entry,
                                                   const IrOptions& options) {
  if (clang_toolchain().empty()) return CompileError{"clang is not installed"};
  // A kernel calls nothing, not even memset; products and sums may be contracted.
  std::vector<std::string> flags{"-x",
                                 "c",
                                 "-",
                                 "-o",
                                 "-",
                                 "-std=c11",
                                 "-O2",
                                 "-fPIC",
                                 "-fwrapv",
                                 "-fno-builtin",
                                 "-ffp-contract=fast",
                                 "-fno-math-errno",
                                 "-fno-stack-protector",
                                 "-fno-asynchronous-unwind-tables",
                                 "-fvisibility=hidden",
                                 "-Wno-psabi"};
  flags.push_back("-march=" + (options.cpu.empty() ? "native" : options.cpu));
  for (std::string& f : feature_flags(options.features)) flags.push_back(std::move(f));
  const auto compile = [&](const char* kind) {
    std::vector<std::string> all = flags;
    all.emplace_back(kind);
    return run(clang(), all, source);
  };
  const Ran object = compile("-c");
  if (object.code != 0)
    return CompileError{fmt::format("clang: {}", object.err.substr(0, object.err.find("\n\n")))};
  auto linked = link_object(object.out, entry);
  if (options.want_assembly && std::holds_alternative<CompiledBlob>(linked))
    std::get<CompiledBlob>(linked).assembly = compile("-S").out;
  return linked;
}

}  // namespace beamline
