#include "tests/bench/tune_run.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "devices/cpu/topology.h"

namespace beamline::bench {
namespace {

namespace fs = std::filesystem;

// A folder of its own, gone with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "beamline-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What the process may run on, for it and its children; as before when it goes.
class Confined {
 public:
  explicit Confined(int pus) {
    sched_getaffinity(0, sizeof before_, &before_);
    if (pus == 0) return;
    const CpuTopology topology = read_topology();
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < topology.pus.size() && i < static_cast<size_t>(pus); i++)
      CPU_SET(topology.pus[i], &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  ~Confined() { sched_setaffinity(0, sizeof before_, &before_); }
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;

 private:
  cpu_set_t before_;
};

double children_cpu_s() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return s(u.ru_utime) + s(u.ru_stime);
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  char part[4096];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  const int status = pclose(pipe);
  if (status != 0)
    throw std::runtime_error(
        fmt::format("exit status {} of {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1, command));
  return text;
}

// Searches by beam where this version can, and compiles each time.
std::string how_to_tune(const std::string& program) {
  const std::string help = output_of(program + " tune --help");
  const auto says = [&](const char* text) { return help.find(text) != std::string::npos; };
  std::string how;
  if (says("beam,") || says("beam or") || says("or beam")) how += "--strategy beam ";
  if (says("--no-cache")) how += "--no-cache ";
  return how;
}

}  // namespace

TuneRun tune(const Settings& settings, const std::string& toml, double budget_s, int pus,
             int seed) {
  const Scratch scratch;
  const fs::path workload = scratch.path() / "workload.toml";
  std::ofstream(workload) << toml;
  const std::string program = fmt::format("'{}/beamline'", settings.program_dir);
  const Confined confined(pus);
  const std::string how = how_to_tune(program);
  const double before = children_cpu_s();
  const std::string text = output_of(fmt::format(
      "{} tune '{}' --db '{}' --quiet --json {}--budget {:.0f}s --seed {}", program,
      workload.string(), (scratch.path() / "scratch.db").string(), how, budget_s, seed));
  const nlohmann::json json = nlohmann::json::parse(text);
  TuneRun run;
  run.cpu_s = children_cpu_s() - before;
  run.wall_s = json.at("wall_s").get<double>();
  for (const nlohmann::json& k : json.at("kernels")) {
    TunedKernel tuned{k.at("name"), k.at("key"), k.at("status"), "", k.at("trials").at("ok")};
    if (!k.at("opts").is_null()) tuned.opts = k.at("opts").get<std::string>();
    run.kernels.push_back(tuned);
  }
  return run;
}

}  // namespace beamline::bench
