// peers: our kernels against the libraries and against kernels written by hand, interleaved.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "devices/cpu/topology.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/openblas.h"
#include "tests/bench/peer_race.h"
#include "workloads/selection.h"

using namespace beamline;
using namespace beamline::bench;

namespace {

constexpr const char* help = R"(usage: peers [options]

Compares what beamline's heuristic gives, and what `beamline tune` finds, with OpenBLAS and oneDNN of the
distribution and, for kernels bound by memory, with the same work written by hand in intrinsics. Everybody is
verified against the others, then timed in interleaved sessions on the same buffers, pinned. A line a case as it
is done: times in us, ratios (above 1: we are faster) of ours (h heuristic, t tuned) to each peer, and the share
of max(flops / peak, bytes / bandwidth at that footprint). At the end, the tables.

  --list         names only
  --only GLOB    cases whose name or group the glob matches, e.g. 'conv*' (repeatable)
  --all          all sizes of DeepBench that fit into memory, not a sample of 24
  --quick        what the heuristic gives only, fewer sessions, a few shapes unless --only or --all names others
  --heuristic    what the heuristic gives only
  --threads N    1, 2 or 1,2; default 1,2. With two, the libraries run in processes of their own
  --budget S     seconds a kernel for tuning, default 20
  --seconds S    of timing a case, about; default 4
  --save FILE    a line of JSON a finished case is added; cases that it has already are not run again
  --help         this text

Rules: one process, no OPENBLAS_*, OMP_* or DNNL_* variable set, libraries choose their kernels. Where OpenBLAS
does not know the processor and falls back to narrow vectors, the widest kernels it has are asked for, and the
heading says so. Of oneDNN the better of its plain path and its blocked layout counts, reorders of activations
included, weights laid out once outside of the timing. Reference code as competitor fails the case.
Exit codes: 0 measured, 1 a case failed, 2 bad usage or a crippled competitor.
)";

constexpr const char* quick_names[] = {
    "gemm_nn/512x512x512",     "gemm_nn/1024x1024x1024",   "gemm_nn/1760x128x1760",
    "gemm_nn/35x700x2048",     "gemm_nn/7680x16x2560",     "gemm_nn/127x129x131",
    "conv/1x64x56x56,3x3->64", "conv/1x256x56x56,1x1->64", "softmax/4096x1024",
    "transpose/4096x4096",     "gelu_tanh/4096x4096"};

struct Arguments {
  bool list = false, all = false, quick = false;
  std::vector<std::string> globs;
  std::vector<int> threads = {1, 2};
  std::string save;
  std::string library;  // internal: only this one, alone, its entries as JSON
  RaceSettings race;
};

[[noreturn]] void usage_error(const std::string& what) {
  fmt::print(stderr, "peers: {}; see --help\n", what);
  std::exit(2);
}

double seconds(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(v >= 0.1 && v <= 3600))
    usage_error(fmt::format("{}: '{}' is not a number of seconds from 0.1 to 3600", option, text));
  return v;
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
    } else if (a == "--all") {
      out.all = true;
    } else if (a == "--quick") {
      out.quick = true, out.race.tuned = false;
      out.race.seconds = 1, out.race.most_sessions = 7, out.threads = {1};
    } else if (a == "--heuristic") {
      out.race.tuned = false;
    } else if (a == "--only") {
      out.globs.push_back(value());
    } else if (a == "--threads") {
      const std::string v = value();
      if (v != "1" && v != "2" && v != "1,2")
        usage_error(fmt::format("--threads: '{}' is not 1, 2 or 1,2", v));
      out.threads = v == "1,2" ? std::vector<int>{1, 2} : std::vector<int>{v == "1" ? 1 : 2};
    } else if (a == "--budget") {
      out.race.tuning.budget_s = seconds(a, value());
    } else if (a == "--seconds") {
      out.race.seconds = seconds(a, value());
    } else if (a == "--save") {
      out.save = value();
    } else if (a == "--library") {
      out.library = value();
    } else {
      usage_error(fmt::format("'{}' is no option", a));
    }
  }
  out.race.tuning.program_dir =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  return out;
}

std::vector<Case> selected(const Arguments& arguments) {
  std::vector<Case> out;
  std::vector<std::string> globs = arguments.globs;
  if (globs.empty() && arguments.quick && !arguments.all)
    globs.assign(std::begin(quick_names), std::end(quick_names));
  for (Case& c : peer_cases(arguments.all)) {
    bool wanted = globs.empty();
    for (const std::string& g : globs)
      wanted |= workloads::matches_glob(g, c.name) || workloads::matches_glob(g, c.group);
    for (const Case& have : out) wanted &= have.name != c.name;
    if (wanted) out.push_back(std::move(c));
  }
  if (out.empty()) usage_error("--only: no case has such a name");
  return out;
}

// This program again, for one library alone: pinned one thread to a processing unit.
std::vector<PeerEntry> alone(const Case& c, const std::string& library, int threads,
                             double duration) {
  std::string places;
  for (unsigned pu : read_topology().pus)
    places += fmt::format("{}{{{}}}", places.empty() ? "" : ",", pu);
  const std::string command = fmt::format(
      "OMP_PROC_BIND=true OMP_PLACES='{}' '{}' --all --library {} --threads {} --seconds {} "
      "--only '{}'",
      places, std::filesystem::read_symlink("/proc/self/exe").string(), library, threads, duration,
      c.name);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  char part[4096];
  for (size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
  if (pclose(pipe) != 0) throw std::runtime_error(library + " alone failed on " + c.name);
  PeerResult r = peer_result_from_json(text);
  if (!r.failure.empty()) throw std::runtime_error(library + " alone: " + r.failure);
  for (PeerEntry& e : r.entries) e.sessions.clear();  // not those of our run
  return r.entries;
}

int library_alone(const Arguments& arguments) {
  const Case c = selected(arguments).at(0);
  PeerResult r;
  r.name = c.name, r.threads = arguments.threads.at(0);
  try {
    r.entries = library_entries(c, arguments.library, r.threads, arguments.race.seconds);
  } catch (const std::exception& e) {
    r.failure = e.what();
  }
  fmt::print("{}\n", to_json(r));
  return 0;
}

std::vector<PeerResult> read_saved(const std::string& file) {
  std::vector<PeerResult> out;
  std::ifstream in(file);
  for (std::string line; !file.empty() && std::getline(in, line);)
    if (!line.empty()) out.push_back(peer_result_from_json(line));
  return out;
}

int run(const Arguments& arguments) {
  const std::vector<Case> cases = selected(arguments);
  if (arguments.list) {
    for (const Case& c : cases) fmt::print("{:<36} {}\n", c.name, c.group);
    return 0;
  }
  for (const std::string& why : {openblas_crippled(), dnnl_crippled(1)})
    if (!why.empty()) throw std::runtime_error(why);
  const std::vector<PeerResult> saved = read_saved(arguments.save);
  double load[1] = {};
  fmt::print("OpenBLAS {}; oneDNN {}; ours vectors of {} bytes\n", openblas_core(),
             dnnl_version_and_core(), machine_target(1).vector_bytes);
  if (getloadavg(load, 1) == 1)
    fmt::print("load {:.1f} on {} processing units\n", load[0], read_topology().pus.size());
  fmt::print("{}", result_heading());
  std::vector<PeerResult> results;
  bool failed = false;
  for (const int threads : arguments.threads) {
    RaceSettings settings = arguments.race;
    settings.threads = threads;
    Anchors anchors(machine_target(threads), threads);
    for (const Case& c : cases) {
      const PeerResult* known = nullptr;
      for (const PeerResult& r : saved)
        if (r.name == c.name && r.threads == threads && r.failure.empty()) known = &r;
      if (known != nullptr) {
        results.push_back(*known);
        continue;
      }
      std::vector<PeerEntry> libraries;
      PeerResult r;
      try {
        for (const char* library : {"openblas", "onednn"})
          if (threads > 1)
            for (PeerEntry& e : alone(c, library, threads, settings.seconds / 4))
              libraries.push_back(std::move(e));
        r = race_case(c, settings, anchors, libraries);
      } catch (const std::exception& e) {
        r.name = c.name, r.group = c.group, r.threads = threads, r.failure = e.what();
      }
      fmt::print("{}", result_line(r));
      std::fflush(stdout);
      failed |= !r.failure.empty();
      if (!arguments.save.empty())
        std::ofstream(arguments.save, std::ios::app) << to_json(r) << '\n';
      results.push_back(std::move(r));
    }
  }
  fmt::print("\n{}", summary_table(results));
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    raise_openblas(argv);
    const Arguments arguments = read_arguments(argc, argv);
    return arguments.library.empty() ? run(arguments) : library_alone(arguments);
  } catch (const std::exception& e) {
    fmt::print(stderr, "peers: {}\n", e.what());
    return 2;
  }
}
