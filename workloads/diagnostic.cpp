#include "workloads/diagnostic.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace beamline::workloads {
namespace {

// Edit distance in which a swap of neighbours counts once and letter case nothing.
size_t distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++) {
    for (size_t j = 0; j <= b.size(); j++) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replace = d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string to_string(const WorkloadError& e) {
  std::string s = e.file;
  if (e.line > 0) s += fmt::format(":{}:{}", e.line, e.column);
  s += ": ";
  if (!e.field.empty()) s += e.field + ": ";
  s += e.message;
  if (!e.expected.empty()) s += fmt::format(" (expected {})", e.expected);
  return s;
}

WorkloadError located(const Diagnostic& d, std::string file, std::string field) {
  return {std::move(file), d.at.line, d.at.column, std::move(field), d.message, d.expected};
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t longest = 64;  // names beyond are not typing slips
  if (name.empty() || name.size() > longest) return "";
  const std::string* best = nullptr;
  size_t best_distance = 1 + std::max<size_t>(1, name.size() / 3);
  for (const std::string& c : candidates) {
    if (c.size() > longest) continue;
    const size_t d = distance(name, c);
    if (d < best_distance && d < c.size()) best = &c, best_distance = d;
  }
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

std::string one_of(const std::vector<std::string>& candidates) {
  std::string s;
  for (size_t i = 0; i < candidates.size(); i++)
    s += (i == 0 ? "" : i + 1 == candidates.size() ? " or " : ", ") + candidates[i];
  return s;
}

}  // namespace beamline::workloads
