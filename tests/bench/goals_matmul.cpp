// Matrix products on one thread against OpenBLAS: interleaved sessions in one run, same buffers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/openblas.h"
#include "tests/bench/tune_run.h"

namespace beamline::bench {
namespace {

constexpr int sessions = 15, sweeps = 10;

Measured against_openblas(int64_t m, int64_t n, int64_t k, const Kernel& kernel,
                          const std::string& opts, const Target& target) {
  Measured out;
  out.crippled = openblas_crippled();
  if (!out.crippled.empty()) return out;
  const Program program = compile(kernel, opts, target);
  const Buffers buffers(kernel);
  set_openblas_shape(m, n, k);
  // Inputs are multiples of 1/64 and sums stay below 2^24 of their squares: both results are exact.
  const auto count = static_cast<size_t>(m * n);
  openblas_matmul(buffers.pointers(), 0);
  const std::vector<float> want(buffers.floats(0), buffers.floats(0) + count);
  program.blob.entry()(buffers.pointers(), 0);
  if (!std::equal(want.begin(), want.end(), buffers.floats(0))) {
    out.crippled = fmt::format("'{}' and OpenBLAS give different products", program.opts);
    return out;
  }
  const RaceResult r = race({{"OpenBLAS", openblas_matmul}, {"ours", program.blob.entry()}},
                            buffers, sessions, sweeps);
  out.value = r.ratio[1];
  out.note = fmt::format("{} {:.0f} us, ours {:.0f} us = {:.1f} GFLOPS, {}", openblas_core(),
                         r.ns[0] / 1e3, r.ns[1] / 1e3, kernel.flops / r.ns[1], program.opts);
  return out;
}

Measured heuristic(int64_t m, int64_t n, int64_t k) {
  const Target target = machine_target(1);
  const Kernel kernel = kernels_of_text(matmul_toml(m, n, k)).at(0);
  return against_openblas(m, n, k, kernel, heuristic_opts(kernel, target), target);
}

Measured tuned(const Settings& settings, int64_t s) {
  Measured out;
  out.crippled = openblas_crippled();  // before a search is spent
  if (!out.crippled.empty()) return out;
  const std::string toml = matmul_toml(s, s, s);
  const TuneRun run = tune(settings, toml, settings.budget_s, 1);
  if (run.kernels.size() != 1 || run.kernels[0].status != "tuned") {
    out.crippled = "nothing was tuned";
    return out;
  }
  return against_openblas(s, s, s, kernels_of_text(toml).at(0), run.kernels[0].opts,
                          machine_target(1));
}

// clang-format off
constexpr Goal goals[] = {
    {"matmul-512-tuned/openblas",           3, Bound::AtLeast, 0.5, "x", [](const Settings& s) { return tuned(s, 512); }},
    {"matmul-512-heuristic/openblas",       7, Bound::AtLeast, 1.0, "x", [](const Settings&) { return heuristic(512, 512, 512); }},
    {"matmul-1024-heuristic/openblas",      7, Bound::AtLeast, 1.0, "x", [](const Settings&) { return heuristic(1024, 1024, 1024); }},
    {"matmul-127-129-131-heuristic/openblas", 7, Bound::AtLeast, 1.0, "x", [](const Settings&) { return heuristic(127, 129, 131); }},
};
// clang-format on

}  // namespace

std::span<const Goal> matmul_goals() { return goals; }

}  // namespace beamline::bench
