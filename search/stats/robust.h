// Robust estimators over small samples. Pure functions: no clock, no state, thread safe.
// Values are anything additive (log ratios, ns); NaN in gives NaN out, no value is dropped
// silently.
#pragma once
#include <cstddef>
#include <span>

namespace beamline::stats {

/// NaN for an empty span. The mean of the two middle values where the count is even.
double median(std::span<const double> values);

/// Values that a 20 % trim removes at each end: floor(0.2 n).
size_t trim_count(size_t n);

/// Mean of the values left after the trim; NaN for an empty span.
double trimmed_mean(std::span<const double> values);

/// Standard error of the trimmed mean (Yuen): sd(winsorised) * sqrt(n-1) / sqrt(h (h-1)), h = n -
/// 2g. NaN where fewer than two values are left.
double trimmed_standard_error(std::span<const double> values);

/// Quantile of Student's t: the x with P(T <= x) = p. `df` >= 1, 0 < p < 1; NaN otherwise.
double student_t(double p, double df);

/// A trimmed mean and the two one-sided bounds at one confidence.
struct Estimate {
  double point = 0;
  double standard_error = 0;
  double df = 0;  // h - 1
  size_t n = 0;

  double low(double one_sided) const;
  double high(double one_sided) const;
};
/// An estimate over fewer than three values has NaN bounds.
Estimate estimate(std::span<const double> values);

}  // namespace beamline::stats
