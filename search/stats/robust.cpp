#include "search/stats/robust.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace beamline::stats {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Sorting with NaN breaks the order that std::sort relies on, so it is looked for first.
bool sorted_copy(std::span<const double> values, std::vector<double>& out) {
  if (values.empty() || std::ranges::any_of(values, [](double v) { return std::isnan(v); }))
    return false;
  out.assign(values.begin(), values.end());
  std::sort(out.begin(), out.end());
  return true;
}

}  // namespace

double median(std::span<const double> values) {
  std::vector<double> v;
  if (!sorted_copy(values, v)) return nan;
  size_t mid = v.size() / 2;
  if (v.size() % 2) return v[mid];
  return v[mid - 1] + (v[mid] - v[mid - 1]) / 2;
}

size_t trim_count(size_t n) { return n / 5; }

double trimmed_mean(std::span<const double> values) {
  std::vector<double> v;
  if (!sorted_copy(values, v)) return nan;
  auto g = static_cast<std::ptrdiff_t>(trim_count(v.size()));
  double sum = std::accumulate(v.begin() + g, v.end() - g, 0.0);
  return sum / static_cast<double>(v.size() - 2 * static_cast<size_t>(g));
}

double trimmed_standard_error(std::span<const double> values) {
  std::vector<double> v;
  if (!sorted_copy(values, v)) return nan;
  size_t n = v.size(), g = trim_count(n), h = n - 2 * g;
  if (h < 2) return nan;
  for (size_t i = 0; i < g; ++i) {
    v[i] = v[g];
    v[n - 1 - i] = v[n - 1 - g];
  }
  double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(n);
  double squares = 0;
  for (double x : v) squares += (x - mean) * (x - mean);
  // sd * sqrt(n-1) is the root of the sum of squares.
  return std::sqrt(squares) / std::sqrt(static_cast<double>(h) * static_cast<double>(h - 1));
}

double student_t(double p, double df) {
  if (!(p > 0 && p < 1) || !(df >= 1)) return nan;
  return boost::math::quantile(boost::math::students_t_distribution<double>(df), p);
}

double Estimate::low(double one_sided) const {
  return point - student_t(one_sided, df) * standard_error;
}
double Estimate::high(double one_sided) const {
  return point + student_t(one_sided, df) * standard_error;
}

Estimate estimate(std::span<const double> values) {
  Estimate e;
  e.n = values.size();
  e.point = trimmed_mean(values);
  e.standard_error = trimmed_standard_error(values);
  size_t h = e.n - 2 * trim_count(e.n);
  e.df = h >= 2 ? static_cast<double>(h - 1) : nan;
  if (e.n < 3) e.standard_error = nan;
  return e;
}

}  // namespace beamline::stats
