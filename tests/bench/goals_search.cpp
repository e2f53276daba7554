// How many candidates a search gets through.
#include <fmt/format.h>

#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/tune_run.h"

namespace beamline::bench {
namespace {

// Distinct ok trials over the command's wall time; the start of the workers, some 0.2 s, is in it.
Measured rate(const Settings& settings, const std::string& toml) {
  const TuneRun run = tune(settings, toml, settings.budget_s, 2);
  int ok = 0;
  for (const TunedKernel& k : run.kernels) ok += k.ok_trials;
  return {ok / run.wall_s,
          fmt::format("{} distinct ok trials in {:.1f} s ({:.1f} s of processor time), {} kernels",
                      ok, run.wall_s, run.cpu_s, run.kernels.size()),
          {}};
}

const char* const elementwise = R"toml([[workload]]
name = "elementwise"
params = { N = 1048576 }
inputs = { x = "f32[N]", a = "f32[N]", b = "f32[N]" }
compute = "return relu(x * a + b) * sqrt(abs(x)) - 0.5 * b"
)toml";
const char* const softmax = R"toml([[workload]]
name = "softmax"
inputs = { x = "f32[512, 512]" }
compute = "return softmax(x)"
)toml";

// clang-format off
constexpr Goal goals[] = {
    {"trials/s matmul-256",     3, Bound::AtLeast, 10, "/s", [](const Settings& s) { return rate(s, matmul_toml(256, 256, 256)); }},
    {"trials/s elementwise-1M", 3, Bound::AtLeast, 10, "/s", [](const Settings& s) { return rate(s, elementwise); }},
    {"trials/s softmax-512",    3, Bound::AtLeast, 10, "/s", [](const Settings& s) { return rate(s, softmax); }},
};
// clang-format on

}  // namespace

std::span<const Goal> search_goals() { return goals; }

}  // namespace beamline::bench
