#include "search/stats/sessions.h"

#include <algorithm>
#include <cmath>

#include "search/stats/robust.h"

namespace beamline::stats {

std::map<int64_t, double> session_minima(std::span<const Sample> samples) {
  std::map<int64_t, double> minima;
  for (const Sample& s : samples) {
    if (!std::isfinite(s.ns) || s.ns <= 0) continue;
    auto [it, fresh] = minima.try_emplace(s.session, s.ns);
    if (!fresh) it->second = std::min(it->second, s.ns);
  }
  return minima;
}

std::vector<double> session_log_ratios(std::span<const Sample> reference,
                                       std::span<const Sample> candidate) {
  auto ref = session_minima(reference);
  auto cand = session_minima(candidate);
  std::vector<double> ratios;
  for (const auto& [session, ns] : cand) {
    auto it = ref.find(session);
    if (it != ref.end()) ratios.push_back(std::log(ns) - std::log(it->second));
  }
  return ratios;
}

double median_session_minimum(std::span<const Sample> samples) {
  std::vector<double> values;
  for (const auto& [session, ns] : session_minima(samples)) values.push_back(ns);
  return median(values);
}

Gain publish_gain(std::span<const Sample> baseline, std::span<const Sample> winner) {
  std::vector<double> ratios = session_log_ratios(winner, baseline);
  Estimate e = estimate(ratios);
  return {.gain = std::exp(e.point),
          .ci_low = std::exp(e.low(0.975)),
          .ci_high = std::exp(e.high(0.975)),
          .sessions = static_cast<int>(ratios.size())};
}

}  // namespace beamline::stats
