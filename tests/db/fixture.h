// A directory of its own for each test, and rows that refer to one another.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "db/schema.h"
#include "db/store.h"

namespace beamline::db {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "beamline-db-XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
    chmod(path_.c_str(), 0755);  // tests that give up their rights still enter it
  }
  ~TempDir() {
    std::error_code ec;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ec);
    std::filesystem::remove_all(path_, ec);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}
inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
inline int64_t number(const Database& db, const std::string& sql) {
  Statement s(db, sql);
  return s.step() ? s.integer(0) : -1;
}
inline std::string text(const Database& db, const std::string& sql) {
  Statement s(db, sql);
  return s.step() ? s.text(0) : "no row";
}

/// The fault with which `f` fails; fails the test if it does not.
template <class F>
Fault fault_of(F f) {
  try {
    f();
  } catch (const DbError& e) {
    return e.fault();
  }
  ADD_FAILURE() << "expected a DbError";
  return Fault::Other;
}

/// Runs `body` in a child process and gives its exit status; 99 if it threw, 128 + signal if
/// killed.
template <class F>
pid_t start(F body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  int code = 99;
  try {
    code = body();
  } catch (const std::exception& e) {
    fprintf(stderr, "child: %s\n", e.what());
  }
  _exit(code);
}
inline int wait_for(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline KernelRow kernel(const std::string& key) {
  return {.kernel_key = key,
          .name = "r_8_4",
          .ast = "SINK",
          .shape_json = "[8, 4]",
          .dtypes = "f32",
          .flops = 64,
          .bytes = 256};
}
/// Writes device "cpu", the kernels "k1" and "k2", and a run, which it returns.
inline int64_t fill(Store& store) {
  store.upsert_device({"cpu", "Test CPU", "cpu", "x86-64", R"({"pus": 2})", {}, {}});
  store.upsert_kernel(kernel("k1"));
  store.upsert_kernel(kernel("k2"));
  return store.begin_run({.label = "night",
                          .command = "tune",
                          .device_id = "cpu",
                          .budget = "60s",
                          .engine_version = "1",
                          .toolchain = "llvm 19",
                          .seed = 7});
}
inline TrialRow trial(int64_t run, const std::string& key = "k1") {
  TrialRow t;
  t.run_id = run, t.kernel_key = key, t.device_id = "cpu", t.opts = "UPCAST:0:4";
  t.status = "ok", t.time_ns = 120.5, t.n_samples = 2;
  t.samples = {{0, 0, 120.5}, {0, 1, 121}};
  return t;
}
inline BestRow best(int64_t run, const std::string& opts, double ns, int64_t sessions = 20) {
  BestRow b;
  b.kernel_key = "k1", b.device_id = "cpu", b.opts = opts, b.best_ns = ns;
  b.sessions = sessions, b.run_id = run, b.verified = true;
  b.engine_version = "1", b.toolchain = "llvm 19", b.environment_id = "e1";
  return b;
}

}  // namespace beamline::db
