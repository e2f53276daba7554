// schedules: times opts of one kernel against each other, interleaved, in one process.
//   schedules WORKLOAD [--kernel N] [--sessions N] [--threads N] [--openblas M,N,K] [--cpu NAME]
//   OPTS...
// --cpu: code for another processor, as LLVM names it: haswell has 16 registers of 32 bytes.
// OPTS is opt text, "heuristic", "plain" (the heuristic without matrix products) or ""
// (unoptimised). Ratios are to the first contestant; the least of all times says more where
// others use the machine too.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "devices/cpu/cpu_target.h"
#include "devices/cpu/llvm_compiler.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/openblas.h"

using namespace beamline;
using namespace beamline::bench;

namespace {

std::vector<double> numbers(const void* data, const BufferInfo& buffer) {
  const size_t bytes = static_cast<size_t>(dtype_bytes(buffer.dtype));
  std::vector<double> out;
  for (size_t i = 0; i < static_cast<size_t>(buffer.elements); i++) {
    uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const char*>(data) + i * bytes, bytes);
    out.push_back(is_float(buffer.dtype)
                      ? float_from_bits(buffer.dtype, bits)
                      : static_cast<double>(wrap_to(buffer.dtype, static_cast<int64_t>(bits))));
  }
  return out;
}

int run(int argc, char** argv) {
  std::string workload;
  std::vector<std::string> opts;
  size_t which = 0;
  int sessions = 7, threads = 1;
  std::string cpu;
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
    else if (a == "--cpu" && more)
      cpu = argv[++i];
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
        "[--cpu NAME] OPTS...");
  Target target = machine_target(threads);
  if (!cpu.empty()) {
    CpuModel model = read_cpu_model();
    model.isa = processor_features(cpu);
    target = cpu_target(model, read_topology(), threads);
    target.cpu = cpu;
  }
  Target plain = target;
  plain.tensor_cores = TensorCoreUse::Off;
  const Kernel kernel = kernels_of(workload).at(which);
  std::vector<Program> programs;
  std::vector<Racer> racers;
  if (m > 0) {
    if (const std::string why = openblas_crippled(); !why.empty()) throw std::runtime_error(why);
    set_openblas_shape(m, n, k);
    racers.push_back({"OpenBLAS " + openblas_core(), openblas_matmul, 1});
  }
  for (const std::string& o : opts)
    programs.push_back(compile(kernel,
                               o == "heuristic" ? heuristic_opts(kernel, target)
                               : o == "plain"   ? heuristic_opts(kernel, plain)
                                                : o,
                               target));
  const Buffers buffers(kernel);
  LaidOperands laid;
  std::vector<std::vector<void*>> own;
  for (const Program& p : programs)
    own.push_back(laid.pointers(p.layouts, {buffers.pointers(), kernel.buffers.size()}));
  for (size_t i = 0; i < opts.size(); i++)
    racers.push_back(
        {fmt::format("{}{}", opts[i] == "heuristic" || opts[i] == "plain" ? opts[i] + " " : "",
                     programs[i].opts.empty() ? "(none)" : programs[i].opts),
         programs[i].blob.entry(), programs[i].threads, own[i].data()});
  std::vector<double> want, have;
  double worst = 0;
  for (const Racer& r : racers) {
    for (int c = 0; c < r.threads; c++)
      r.call(r.buffers != nullptr ? r.buffers : buffers.pointers(), c);
    have = numbers(buffers.pointers()[0], kernel.buffers[0]);
    if (want.empty()) want = have;
    for (size_t i = 0; i < want.size(); i++)
      worst = std::max(worst, std::fabs(want[i] - have[i]) / (1 + std::fabs(want[i])));
  }
  const RaceResult result = race(racers, buffers, sessions, 10);
  fmt::print("{}: largest difference {:.2g}\n", kernel.name, worst);
  for (size_t i = 0; i < racers.size(); i++) {
    const size_t p = i - (racers.size() - programs.size());
    fmt::print(
        "{:>12.1f} us  {:>7.1f} GFLOPS  {:>7.1f} GB/s  {:>6.3f}x  least {:>9.1f} us  "
        "{:>5.0f}/{:<4.0f} ms  {}\n",
        result.ns[i] / 1e3, kernel.flops / result.ns[i], kernel.bytes / result.ns[i],
        result.ratio[i], *std::ranges::min_element(result.best[i]) / 1e3,
        p < programs.size() ? programs[p].lower_ms : 0,
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
