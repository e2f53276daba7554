// From raw samples to what decisions are made of: one log ratio a session (measurement.md 3).
// A session is a set of sweeps in which every contestant ran once a sweep, in random order.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace beamline::stats {

struct Sample {
  int64_t session = 0;
  int64_t sweep = 0;
  double ns = 0;
};

/// The fastest sample of each session, by session number. Samples that are not positive and finite
/// are no measurement and are left out; a session of only such samples is missing.
std::map<int64_t, double> session_minima(std::span<const Sample> samples);

/// ln(min candidate) - ln(min reference) of every session that both have, by session number.
std::vector<double> session_log_ratios(std::span<const Sample> reference,
                                       std::span<const Sample> candidate);

/// Median over the sessions of the session minimum, ns; NaN without any session.
double median_session_minimum(std::span<const Sample> samples);

/// A speed-up that may be published: from fresh sessions only. gain > 1: `winner` is faster.
struct Gain {
  double gain = 0;    // exp of the trimmed mean of ln(baseline / winner)
  double ci_low = 0;  // two-sided 95 %; NaN under three sessions
  double ci_high = 0;
  int sessions = 0;
};
Gain publish_gain(std::span<const Sample> baseline, std::span<const Sample> winner);

}  // namespace beamline::stats
