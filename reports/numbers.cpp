#include "reports/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace beamline::reports {
namespace {

bool known(std::optional<double> v) { return v && std::isfinite(*v); }

std::string significant(double v) {
  if (v == 0) return "0";
  // Rounding may carry into a further digit: 9.996 is 10.0.
  auto magnitude = static_cast<int>(std::floor(std::log10(std::abs(v) * (1 + 5e-4))));
  return fmt::format("{:.{}f}", v, std::max(0, 2 - magnitude));
}

}  // namespace

std::string digits_text(std::optional<double> value) {
  return known(value) ? significant(*value) : "-";
}

std::string time_text(std::optional<double> ns) {
  if (!known(ns)) return "-";
  if (*ns < 999.5) return significant(*ns) + " ns";
  if (*ns < 999.5e3) return significant(*ns / 1e3) + " us";
  if (*ns < 999.5e6) return significant(*ns / 1e6) + " ms";
  return significant(*ns / 1e9) + " s";
}

std::string ratio_text(std::optional<double> ratio) {
  if (!known(ratio)) return "-";
  return *ratio < 100 ? fmt::format("{:.2f}x", *ratio) : fmt::format("{:.0f}x", *ratio);
}

std::string bytes_text(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} B", bytes);
  if (bytes < 999.5e3) return significant(bytes / 1e3) + " kB";
  if (bytes < 999.5e6) return significant(bytes / 1e6) + " MB";
  return significant(bytes / 1e9) + " GB";
}

}  // namespace beamline::reports
