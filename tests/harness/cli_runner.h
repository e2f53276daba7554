// Runs the real `beamline` as users do, with a directory of its own for its files.
#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "test_paths.h"

namespace beamline::test {

struct CliResult {
  int code = -1;  // exit code; 128 + signal when killed by one
  std::string out, err;
  nlohmann::ordered_json json() const { return nlohmann::ordered_json::parse(out); }
};

class CliRunner {
 public:
  CliRunner();   // makes the directory
  ~CliRunner();  // removes it
  CliRunner(const CliRunner&) = delete;
  CliRunner& operator=(const CliRunner&) = delete;

  CliResult run(const std::vector<std::string>& arguments, const std::string& input = {}) const;
  /// Sends `signal` once stderr has `marker`.
  CliResult run_and_signal(const std::vector<std::string>& arguments, const std::string& marker,
                           int signal) const;
  /// Sends `signal` after that time, if it still runs.
  CliResult run_and_signal(const std::vector<std::string>& arguments,
                           std::chrono::milliseconds after, int signal) const;
  /// Writes a file and returns its path.
  std::string file(const std::string& name, const std::string& text) const;
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

 private:
  int start(const std::vector<std::string>& arguments, const std::string& input) const;
  CliResult finish(int pid) const;
  std::filesystem::path directory_;
};

/// The shape of a JSON document: members in order with their types, arrays by their first element.
inline std::string shape_of(const nlohmann::ordered_json& j);

inline std::string read_file(const std::filesystem::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline CliRunner::CliRunner() {
  std::string name = (std::filesystem::temp_directory_path() / "beamline-cli-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  directory_ = name;
}

inline CliRunner::~CliRunner() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

inline std::string CliRunner::file(const std::string& name, const std::string& text) const {
  std::ofstream(directory_ / name, std::ios::binary) << text;
  return path(name);
}

inline int CliRunner::start(const std::vector<std::string>& arguments,
                            const std::string& input) const {
  file("stdin", input);
  file("stderr", "");
  std::string program = BEAMLINE_BIN_DIR "/beamline";
  std::vector<char*> argv{program.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& a : copies) argv.push_back(a.data());
  argv.push_back(nullptr);
  std::string in = path("stdin"), out = path("stdout"), err = path("stderr");
  std::string db = path("default.db"), cache = path("programs");
  pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  setenv("BEAMLINE_DB", db.c_str(), 1);
  setenv("BEAMLINE_CACHE", cache.c_str(), 1);
  dup2(open(in.c_str(), O_RDONLY), 0);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  execv(program.c_str(), argv.data());
  _exit(127);
}

inline CliResult CliRunner::finish(int pid) const {
  int status = 0;
  waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          read_file(directory_ / "stdout"), read_file(directory_ / "stderr")};
}

inline CliResult CliRunner::run(const std::vector<std::string>& arguments,
                                const std::string& input) const {
  return finish(start(arguments, input));
}

// Without taking its status.
inline bool has_ended(int pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

inline CliResult CliRunner::run_and_signal(const std::vector<std::string>& arguments,
                                           const std::string& marker, int signal) const {
  int pid = start(arguments, "");
  for (int i = 0; i < 6000; ++i) {
    if (read_file(directory_ / "stderr").find(marker) != std::string::npos) break;
    if (has_ended(pid)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid, signal);
  return finish(pid);
}

inline CliResult CliRunner::run_and_signal(const std::vector<std::string>& arguments,
                                           std::chrono::milliseconds after, int signal) const {
  int pid = start(arguments, "");
  auto end = std::chrono::steady_clock::now() + after;
  while (std::chrono::steady_clock::now() < end && !has_ended(pid))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(pid, signal);
  return finish(pid);
}

inline std::string shape_of(const nlohmann::ordered_json& j) {
  if (j.is_object()) {
    std::string text;
    for (const auto& [key, value] : j.items())
      text += (text.empty() ? "" : ", ") + key + ": " + shape_of(value);
    return "{" + text + "}";
  }
  if (j.is_array()) return j.empty() ? "[]" : "[" + shape_of(j[0]) + "]";
  if (j.is_string()) return "text";
  if (j.is_number_integer()) return "integer";
  if (j.is_number()) return "number";
  return j.is_boolean() ? "bool" : "null";
}

}  // namespace beamline::test
