// What the heuristic gives against the libraries and kernels written by hand, one thread, over
// whole groups of shapes. `peers` shows each of them, and tuned kernels.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/openblas.h"
#include "tests/bench/peer_race.h"

namespace beamline::bench {
namespace {

Measured heuristic_group(const std::vector<std::string>& groups, const std::string& peer) {
  Measured out;
  out.crippled = peer == "openblas" ? openblas_crippled()
                 : peer == "onednn" ? dnnl_crippled(1)
                                    : "";
  if (!out.crippled.empty()) return out;
  RaceSettings settings;
  settings.tuned = false;
  settings.seconds = 1;
  Anchors anchors(machine_target(1), 1);
  std::vector<double> ratios;
  double worst = 0;
  std::string which;
  for (const Case& c : peer_cases(/*all=*/false)) {
    if (std::ranges::find(groups, c.group) == groups.end()) continue;
    const PeerResult r = race_case(c, settings, anchors, {});
    if (!r.failure.empty()) throw std::runtime_error(c.name + ": " + r.failure);
    const auto ratio = r.ratio("heuristic", peer);
    if (!ratio) continue;
    if (ratios.empty() || *ratio < worst) worst = *ratio, which = c.name;
    ratios.push_back(*ratio);
  }
  out.value = geomean(ratios);
  out.note = fmt::format("geometric mean of {}, worst {:.2f} of {}", ratios.size(), worst, which);
  return out;
}

// clang-format off
constexpr Goal goals[] = {
    {"products heuristic/openblas",     7, Bound::AtLeast, 1.0,  "x", [](const Settings&) { return heuristic_group({"squares", "DeepBench products"}, "openblas"); }},
    {"ResNet-50 heuristic/onednn",      7, Bound::AtLeast, 0.85, "x", [](const Settings&) { return heuristic_group({"ResNet-50 convolutions"}, "onednn"); }},
    {"memory-bound heuristic/by hand",  7, Bound::AtLeast, 0.85, "x", [](const Settings&) { return heuristic_group({"memory-bound"}, "hand"); }},
};
// clang-format on

}  // namespace

std::span<const Goal> peer_goals() { return goals; }

}  // namespace beamline::bench
