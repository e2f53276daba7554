// targets: measures the goals of the issues on this machine; one line a goal.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "devices/cpu/topology.h"
#include "tests/bench/goal.h"
#include "tests/bench/openblas.h"
#include "workloads/selection.h"

using namespace beamline;
using namespace beamline::bench;

namespace {

constexpr const char* help = R"(usage: targets [options]

Measures the goals that the issues set, on this machine, and prints one line for each: name, issue, value,
target, met (yes or no), and what the number rests on. Built with the tests; build/release/bin/targets.
Ratios are of interleaved sessions in one run on one pinned thread; a goal that needs a tuned kernel runs
`beamline tune` (from the folder of this program) into a scratch database.

  --list       names and targets only
  --only GLOB  the goals whose name the glob matches, e.g. 'matmul*' (repeatable)
  --slow       also those that take many minutes; else they are measured only where --only names them.
               'tuning *': 5 searches of --budget and one of 300 s for each of two products, 14 minutes
  --budget S   seconds for each tuning, default 20
  --strict     exit code 3 when a goal is not met
  --help       this text

No OPENBLAS_* variable may be set: OpenBLAS chooses its kernels. Where it does not know the processor and
falls back to narrower vectors, the comparison is with the best it has; the line says so.
Exit codes: 0 measured, 1 a measurement failed or a competitor is crippled, 2 bad usage, 3 see --strict.
)";

struct Arguments {
  bool list = false, strict = false, slow = false;
  std::vector<std::string> globs;
  Settings settings;
};

[[noreturn]] void usage_error(const std::string& what) {
  fmt::print(stderr, "targets: {}; see --help\n", what);
  std::exit(2);
}

Arguments read_arguments(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) usage_error(a + " needs a value");
      return argv[++i];
    };
    if (a == "--help") {
      fmt::print("{}", help);
      std::exit(0);
    } else if (a == "--list") {
      out.list = true;
    } else if (a == "--strict") {
      out.strict = true;
    } else if (a == "--slow") {
      out.slow = true;
    } else if (a == "--only") {
      out.globs.push_back(value());
    } else if (a == "--budget") {
      const std::string text = value();
      char* end = nullptr;
      out.settings.budget_s = std::strtod(text.c_str(), &end);
      if (*end != '\0' || !(out.settings.budget_s >= 1 && out.settings.budget_s <= 3600))
        usage_error(fmt::format("--budget: '{}' is not a number of seconds from 1 to 3600", text));
    } else {
      usage_error(fmt::format("'{}' is no option", a));
    }
  }
  out.settings.program_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  return out;
}

std::vector<Goal> selected(const Arguments& arguments) {
  std::vector<Goal> out;
  for (std::span<const Goal> part :
       {matmul_goals(), search_goals(), engine_goals(), math_goals(), peer_goals(), tuning_goals()})
    for (const Goal& g : part) {
      bool wanted = arguments.globs.empty() && (!g.slow || arguments.slow || arguments.list);
      for (const std::string& glob : arguments.globs)
        wanted |= workloads::matches_glob(glob, std::string(g.name));
      if (wanted) out.push_back(g);
    }
  if (out.empty()) usage_error("--only: no goal has such a name");
  return out;
}

std::string target_text(const Goal& g) {
  return fmt::format("{} {:g} {}", g.bound == Bound::AtLeast ? ">=" : "<=", g.target, g.unit);
}

int run(const Arguments& arguments) {
  bool failed = false, missed = false;
  double load[1] = {};
  if (!arguments.list && getloadavg(load, 1) == 1)
    fmt::print("load {:.1f} on {} processing units; absolute times and rates suffer from it\n",
               load[0], read_topology().pus.size());
  for (const Goal& g : selected(arguments)) {
    const std::string head = fmt::format("{:<38} issue {}  ", g.name, g.issue);
    if (arguments.list) {
      fmt::print("{}{}{}\n", head, target_text(g), g.slow ? ", slow" : "");
      continue;
    }
    try {
      const Measured m = g.measure(arguments.settings);
      if (!m.crippled.empty()) throw std::runtime_error(m.crippled);
      const bool met = g.bound == Bound::AtLeast ? m.value >= g.target : m.value <= g.target;
      missed |= !met;
      fmt::print("{}{:>9.3f} {:<3} {:>9}  met {:<3}  {}\n", head, m.value, g.unit, target_text(g),
                 met ? "yes" : "no", m.note);
    } catch (const std::exception& e) {
      failed = true;
      fmt::print("{}failed: {}\n", head, e.what());
    }
    std::fflush(stdout);
  }
  return failed ? 1 : missed && arguments.strict ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    raise_openblas(argv);
    return run(read_arguments(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "targets: {}\n", e.what());
    return 1;
  }
}
