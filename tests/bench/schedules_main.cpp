// schedules: times opts of one kernel against each other, interleaved, in one process.
//   schedules WORKLOAD [--kernel N] [--sessions N] [--threads N] [--openblas M,N,K] [--avx2]
//   OPTS...
// --avx2: code for a machine of 16 registers of 32 bytes.
// OPTS is opt text, "heuristic" or "" (unoptimised). Ratios are to the first contestant.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/bench/kernel_lab.h"
#include "tests/bench/openblas.h"

using namespace beamline;
using namespace beamline::bench;

namespace {

int run(int argc, char** argv) {
  std::string workload;
  std::vector<std::string> opts;
  size_t which = 0;
  int sessions = 7, threads = 1;
  bool avx2 = false;
  long m = 0, n = 0, k = 0;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    const bool more = i + 1 < argc;
    if (a == "--kernel" && more)
      which = static_cast<size_t>(std::atoi(argv[++i]));
    else if (a == "--sessions" && more)
      sessions = std::atoi(argv[++i]);
    else if (a == "--threads" && more)
      threads = std::atoi(argv[++i]);
    else if (a == "--openblas" && more && std::sscanf(argv[i + 1], "%ld,%ld,%ld", &m, &n, &k) == 3)
      i++;
    else if (a == "--avx2")
      avx2 = true;
    else if (a.starts_with("--"))
      throw std::runtime_error("unknown option or missing value: " + a);
    else if (workload.empty())
      workload = a;
    else
      opts.push_back(a);
  }
  if (workload.empty() || opts.empty())
    throw std::runtime_error(
        "usage: schedules WORKLOAD [--kernel N] [--sessions N] [--threads N] [--openblas M,N,K] "
        "OPTS...");
  Target target = machine_target(threads);
  if (avx2) target.cpu = "haswell", target.vector_bytes = 32, target.vector_registers = 16;
  const Kernel kernel = kernels_of(workload).at(which);
  std::vector<Program> programs;
  std::vector<Racer> racers;
  if (m > 0) {
    if (const std::string why = openblas_crippled(); !why.empty()) throw std::runtime_error(why);
    set_openblas_shape(m, n, k);
    racers.push_back({"OpenBLAS " + openblas_core(), openblas_matmul, 1});
  }
  for (const std::string& o : opts)
    programs.push_back(
        compile(kernel, o == "heuristic" ? heuristic_opts(kernel, target) : o, target));
  for (size_t i = 0; i < opts.size(); i++)
    racers.push_back({fmt::format("{}{}", opts[i] == "heuristic" ? "heuristic " : "",
                                  programs[i].opts.empty() ? "(none)" : programs[i].opts),
                      programs[i].blob.entry(), programs[i].threads});
  const Buffers buffers(kernel);
  std::vector<float> want;
  double worst = 0;
  for (const Racer& r : racers) {
    for (int c = 0; c < r.threads; c++) r.call(buffers.pointers(), c);
    const size_t count = buffers.bytes(0) / sizeof(float);
    if (want.empty()) want.assign(buffers.floats(0), buffers.floats(0) + count);
    for (size_t i = 0; i < count; i++)
      worst = std::max<double>(
          worst, std::fabs(want[i] - buffers.floats(0)[i]) / (1 + std::fabs(want[i])));
  }
  const RaceResult result = race(racers, buffers, sessions, 10);
  fmt::print("{}: largest difference {:.2g}\n", kernel.name, worst);
  for (size_t i = 0; i < racers.size(); i++) {
    const size_t p = i - (racers.size() - programs.size());
    fmt::print(
        "{:>12.1f} us  {:>7.1f} GFLOPS  {:>7.1f} GB/s  {:>6.3f}x  {:>5.0f}/{:<4.0f} ms  {}\n",
        result.ns[i] / 1e3, kernel.flops / result.ns[i], kernel.bytes / result.ns[i],
        result.ratio[i], p < programs.size() ? programs[p].lower_ms : 0,
        p < programs.size() ? programs[p].compile_ms : 0, racers[i].name);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    raise_openblas(argv);
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "schedules: %s\n", e.what());
    return 2;
  }
}
