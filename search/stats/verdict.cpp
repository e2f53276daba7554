#include "search/stats/verdict.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/stats/robust.h"

namespace beamline::stats {
namespace {

constexpr size_t looks[] = {5, 10, 20, 40};

Verdict describe(std::span<const double> used, const VerdictRule& rule) {
  Estimate e = estimate(used);
  Verdict v;
  v.ratio = std::exp(e.point);
  v.ci_low = std::exp(e.low(rule.confidence));
  v.ci_high = std::exp(e.high(rule.confidence));
  v.confidence = rule.confidence;
  v.sessions_used = static_cast<int>(used.size());
  return v;
}

}  // namespace

std::string_view decision_name(Decision d) {
  switch (d) {
    case Decision::Same: return "SAME";
    case Decision::Slower: return "SLOWER";
    case Decision::Faster: return "FASTER";
    case Decision::Inconclusive: break;
  }
  return "INCONCLUSIVE";
}

Decision look(std::span<const double> log_ratios, const VerdictRule& rule) {
  Estimate e = estimate(log_ratios);
  double floor = std::log1p(rule.floor), effect = std::log1p(rule.effect);
  if (e.low(rule.confidence) > floor && e.point > effect) return Decision::Slower;
  if (e.high(rule.confidence) < -floor && e.point < -effect) return Decision::Faster;
  if (e.high(rule.same_confidence) < effect && e.low(rule.same_confidence) > -effect)
    return Decision::Same;
  return Decision::Inconclusive;
}

double smallest_visible(std::span<const double> log_ratios, const VerdictRule& rule) {
  Estimate e = estimate(log_ratios);
  // The bound must pass the floor, the point the effect; what equal programs seemed to differ by
  // may stand against the difference.
  double bound = std::log1p(rule.floor) + (e.high(rule.confidence) - e.point);
  return std::expm1(std::max(bound, std::log1p(rule.effect)) + std::abs(e.point));
}

Verdict decide(std::span<const double> log_ratios, const VerdictRule& rule) {
  Verdict v;
  auto available = static_cast<int>(log_ratios.size());
  if (std::ranges::any_of(log_ratios, [](double r) { return !std::isfinite(r); })) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return {.ratio = nan,
            .ci_low = nan,
            .ci_high = nan,
            .confidence = rule.confidence,
            .sessions_available = available,
            .reason = "a session has no valid sample"};
  }
  if (log_ratios.size() < looks[0]) {
    v = describe(log_ratios, rule);
    v.sessions_available = available;
    v.reason = "fewer than 5 sessions";
    return v;
  }
  for (size_t n : looks) {
    if (n > log_ratios.size()) break;
    auto used = log_ratios.first(n);
    v = describe(used, rule);
    v.sessions_available = available;
    v.decision = look(used, rule);
    if (v.decision == Decision::Inconclusive) continue;
    if (v.decision == Decision::Same) {
      v.reason = "both 95 % bounds lie within 2 %";
      return v;
    }
    auto retest = static_cast<size_t>(rule.retest_sessions);
    if (retest == 0) return v;
    if (log_ratios.size() - n < retest) {
      v.reason = "not re-tested";
      return v;
    }
    v.sessions_used += rule.retest_sessions;
    if (look(log_ratios.subspan(n, retest), rule) == v.decision) {
      v.reason = "repeated on fresh sessions";
      return v;
    }
    v.reason = std::string(decision_name(v.decision)) + " did not repeat on fresh sessions";
    v.decision = Decision::Inconclusive;
    return v;
  }
  v.reason = available < 40 ? "sessions ran out" : "undecided after 40 sessions";
  return v;
}

}  // namespace beamline::stats
