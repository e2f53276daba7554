#include "reports/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "reports/numbers.h"

namespace beamline::reports {
namespace {

std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  return a && b && *b > 0 ? std::optional(*a / *b) : std::nullopt;
}

template <class F>
std::optional<double> geometric_mean(const std::vector<KernelFacts>& kernels, F value) {
  double sum = 0;
  int n = 0;
  for (const KernelFacts& k : kernels)
    if (std::optional<double> v = value(k); v && *v > 0) {
      sum += std::log(*v);
      ++n;
    }
  return n > 0 ? std::optional(std::exp(sum / n)) : std::nullopt;
}

}  // namespace

std::optional<double> KernelFacts::over_heuristic() const {
  return gain ? gain : ratio(heuristic_ns, best_ns);
}
std::optional<double> KernelFacts::over_unoptimized() const {
  return ratio(unoptimized_ns, best_ns);
}

std::map<std::string, int64_t> KernelFacts::status_counts() const {
  std::map<std::string, int64_t> counts;
  for (const Candidate& c : candidates) ++counts[c.status];
  return counts;
}

std::vector<Failure> KernelFacts::failures() const {
  std::map<std::pair<std::string, std::string>, Failure> groups;
  for (const Candidate& c : candidates) {
    if (c.status == "ok") continue;
    auto [it, fresh] = groups.try_emplace({c.status, c.error}, Failure{});
    if (fresh) it->second = {c.status, c.error, c.opts, 0};
    ++it->second.count;
  }
  std::vector<Failure> list;
  for (auto& [what, f] : groups) list.push_back(std::move(f));
  std::ranges::stable_sort(list, [](const Failure& a, const Failure& b) {
    // Duplicates and refusals are the ordinary course of a search: last.
    return std::tuple(a.status == "rejected", -a.count) <
           std::tuple(b.status == "rejected", -b.count);
  });
  return list;
}

std::map<std::string, int64_t> Report::kernel_counts() const {
  std::map<std::string, int64_t> counts;
  for (const KernelFacts& k : kernels) ++counts[k.status];
  return counts;
}

std::map<std::string, int64_t> Report::trial_counts() const {
  std::map<std::string, int64_t> counts;
  for (const KernelFacts& k : kernels)
    for (const auto& [status, n] : k.status_counts()) counts[status] += n;
  return counts;
}

std::optional<double> Report::mean_over_heuristic() const {
  return geometric_mean(kernels, [](const KernelFacts& k) { return k.over_heuristic(); });
}
std::optional<double> Report::mean_over_unoptimized() const {
  return geometric_mean(kernels, [](const KernelFacts& k) { return k.over_unoptimized(); });
}

std::optional<double> Report::weighted_over_heuristic() const {
  double weights = 0, times = 0;
  for (const WorkloadFacts& w : workloads)
    if (w.over_heuristic && w.weight > 0) {
      weights += w.weight;
      times += w.weight / *w.over_heuristic;
    }
  return times > 0 ? std::optional(weights / times) : std::nullopt;
}

std::string opts_or_none(const std::string& opts) { return opts.empty() ? "(none)" : opts; }

std::string gain_text(std::optional<double> gain, std::optional<double> low,
                      std::optional<double> high) {
  std::string text = ratio_text(gain);
  // A winner that is the heuristic has no interval.
  if (gain && low && high && *low < *high) text += fmt::format(" [{:.2f}, {:.2f}]", *low, *high);
  return text;
}

}  // namespace beamline::reports
