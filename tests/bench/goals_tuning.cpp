// How much of what a long search finds a short one finds. Each goal runs `tune` for minutes, with
// several seeds; the winners are timed again against each other.
#include <algorithm>

#include <fmt/format.h>

#include "devices/cpu/topology.h"
#include "search/stats/robust.h"
#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/tune_run.h"

namespace beamline::bench {
namespace {

constexpr double long_s = 300;
constexpr int seeds = 5, cores = 2, sessions = 21, sweeps = 3;

// Median over the seeds of short winner / best winner of all.
Measured share_of_long_search(const Settings& settings, int64_t m, int64_t n, int64_t k) {
  const std::string toml = matmul_toml(m, n, k);
  const auto winner = [&](double budget_s, int seed) {
    const TuneRun run = tune(settings, toml, budget_s, cores, seed);
    return std::pair(run.kernels.at(0).opts, run.kernels.at(0).ok_trials);
  };
  const Kernel kernel = kernels_of_text(toml).at(0);
  const Target target =
      machine_target(std::min(cores, static_cast<int>(read_topology().pus.size())));
  std::vector<Program> programs;
  std::string note;
  for (int i = 0; i <= seeds; i++) {
    const auto [opts, trials] = winner(i == 0 ? long_s : settings.budget_s, i);
    programs.push_back(compile(kernel, opts, target));
    note += fmt::format("; {} trials: {}", trials, opts);
  }
  std::vector<Racer> racers;
  for (const Program& p : programs) racers.push_back({p.opts, p.blob.entry(), p.threads});
  const RaceResult result = race(racers, Buffers(kernel), sessions, sweeps);
  const std::vector<double> found(result.ns.begin() + 1, result.ns.end());
  const double best = *std::ranges::min_element(result.ns);
  std::string each;
  for (double ns : found) each += fmt::format(" {:.3f}", ns / best);
  return {stats::median(found) / best,
          fmt::format("{:.0f} s:{} of the best, {:.0f} s: {:.3f} of it, {:.1f} us{}",
                      settings.budget_s, each, long_s, result.ns[0] / best, best * 1e-3, note),
          {}};
}

// clang-format off
constexpr Goal goals[] = {
    {"tuning matmul-512",           7, Bound::AtMost, 1.05, "x", [](const Settings& s) { return share_of_long_search(s, 512, 512, 512); }, true},
    {"tuning matmul-1760-128-1760", 7, Bound::AtMost, 1.05, "x", [](const Settings& s) { return share_of_long_search(s, 1760, 128, 1760); }, true},
};
// clang-format on

}  // namespace

std::span<const Goal> tuning_goals() { return goals; }

}  // namespace beamline::bench
