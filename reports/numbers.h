// Numbers as people read them: three or four significant digits, a unit, "-" for what is not known.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace beamline::reports {

/// "812 ns", "12.3 us", "4.56 ms", "7.89 s".
std::string time_text(std::optional<double> ns);
/// "1.23x".
std::string ratio_text(std::optional<double> ratio);
/// Three significant digits without an exponent: "0.123", "12.3", "1230".
std::string digits_text(std::optional<double> value);
/// "1.2 kB", "3.4 MB" (powers of 1000).
std::string bytes_text(double bytes);

}  // namespace beamline::reports
