// The decision rule of measurement.md 3.0: is one contestant slower than another, and how sure is
// that. A pure function of the sequence of session log ratios; looking early is part of the rule.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace beamline::stats {

enum class Decision { Same, Slower, Faster, Inconclusive };
std::string_view decision_name(Decision d);  // SAME, SLOWER, FASTER, INCONCLUSIVE

struct VerdictRule {
  double confidence = 0.9995;  // one-sided, of an alarm; 0.995 in tuning
  double same_confidence = 0.95;
  double floor = 0.01;       // an alarm's bound must pass ln(1 + floor)
  double effect = 0.02;      // and its point ln(1 + effect); SAME lies within this
  int retest_sessions = 20;  // fresh sessions on which an alarm must repeat; 0 = no re-test
};

struct Verdict {
  Decision decision = Decision::Inconclusive;
  double ratio = 0;   // exp of the trimmed mean, new / ref, at the look that decided
  double ci_low = 0;  // at `confidence`, one-sided each; NaN where not defined
  double ci_high = 0;
  double confidence = 0;
  int sessions_used = 0;  // looked at, those of the re-test included
  int sessions_available = 0;
  std::string reason;  // one line for people
};

/// `log_ratios`: ln(new / ref), one a session in the order of the sessions. Looks after 5, 10, 20
/// and 40. A value that is not finite makes the verdict INCONCLUSIVE: such a session was never
/// measured.
Verdict decide(std::span<const double> log_ratios, const VerdictRule& rule = {});

/// From sessions of a program against itself: the smallest slow-down (0.05 = 5 %) that a look at as
/// many sessions would call SLOWER here. NaN under three sessions.
double smallest_visible(std::span<const double> log_ratios, const VerdictRule& rule = {});

/// One look at exactly these sessions, no re-test: what decide() repeats.
Decision look(std::span<const double> log_ratios, const VerdictRule& rule = {});

}  // namespace beamline::stats
