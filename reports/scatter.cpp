#include "reports/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/html_text.h"
#include "reports/numbers.h"

namespace beamline::reports {
namespace {

constexpr double width = 880, height = 300, left = 64, right = 12, top = 10, bottom = 36;
constexpr double strip = 26;  // of candidates without a time

std::string kind_of(const Candidate& c) {
  const std::string& word = c.status == "ok" ? c.stage : c.status;
  for (const MarkKind& k : mark_kinds())
    if (word == k.kind) return word;
  return c.status == "ok" ? "confirm" : "crashed";  // stages of bench and nightly are final too
}

std::string label_of(const Candidate& c, size_t at) {
  std::string text = fmt::format("#{} {}", at + 1, c.status == "ok" ? c.stage : c.status);
  if (c.time_ns) text += " " + time_text(c.time_ns);
  text += "\n" + opts_or_none(c.opts);
  return c.error.empty() ? text : text + "\n" + c.error.substr(0, 300);
}

bool faster(const std::optional<double>& a, const std::optional<double>& b) {
  return a && (!b || *a < *b);
}

// Marks on a grid of so many columns and rows.
std::vector<Mark> binned(const std::vector<Candidate>& all, size_t fastest, double columns,
                         double rows, double low, double high) {
  std::vector<Mark> marks;
  std::map<std::tuple<int, int, std::string>, size_t> cells;
  const double n = static_cast<double>(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Candidate& c = all[i];
    Mark m{static_cast<double>(i), c.time_ns, kind_of(c), label_of(c, i), 1};
    const bool alone = i == fastest || m.kind == "confirm" || m.kind == "select";
    const int column = static_cast<int>(m.order / n * columns);
    const int row = c.time_ns && high > low
                        ? static_cast<int>(std::log(*c.time_ns / low) / std::log(high / low) * rows)
                        : -1;
    if (alone) {
      marks.push_back(std::move(m));
      continue;
    }
    auto [it, fresh] = cells.try_emplace({column, row, m.kind}, marks.size());
    if (fresh) {
      marks.push_back(std::move(m));
      continue;
    }
    Mark& cell = marks[it->second];
    const size_t count = cell.count + 1;
    if (faster(m.time_ns, cell.time_ns)) cell = std::move(m);
    cell.count = count;
  }
  for (Mark& m : marks)
    if (m.count > 1) m.label = fmt::format("{} candidates, the fastest:\n{}", m.count, m.label);
  return marks;
}

struct Scale {
  double low = 1, high = 10, size = 1;  // times, and the plot's height
  double y(double ns) const {
    const double share = std::log(std::clamp(ns, low, high) / low) / std::log(high / low);
    return top + (1 - share) * size;
  }
};

// 1, 2 and 5 times powers of ten within the scale; powers only where there would be many.
std::vector<double> ticks(const Scale& s) {
  std::vector<double> all;
  const bool few = s.high / s.low < 60;
  for (double p = std::pow(10, std::floor(std::log10(s.low))); p <= s.high; p *= 10)
    for (double m : {1.0, 2.0, 5.0})
      if ((few || m == 1) && p * m >= s.low && p * m <= s.high) all.push_back(p * m);
  if (all.size() < 2) all = {s.low * 1.0001, s.high * 0.9999};
  return all;
}

std::string shape(const Mark& m, double x, double y) {
  const double r = 3 + std::min(5.0, std::log2(static_cast<double>(m.count)) * 0.6);
  const char* tag = "path";
  std::string place;
  if (!m.time_ns) {
    place = fmt::format("d='M{:.1f} {:.1f}l6 6m0-6l-6 6'", x - 3, y - 3);
  } else if (m.kind == "search") {
    tag = "circle";
    place = fmt::format("cx='{:.1f}' cy='{:.1f}' r='{:.1f}'", x, y, r);
  } else if (m.kind == "select") {
    tag = "rect";
    place = fmt::format("x='{:.1f}' y='{:.1f}' width='8' height='8'", x - 4, y - 4);
  } else {
    place = fmt::format("d='M{:.1f} {:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z'", x, y - 5.5);
  }
  return fmt::format("<{0} class='m {1}' {2}><title>{3}</title></{0}>", tag, m.kind, place,
                     escaped(m.label));
}

}  // namespace

const std::vector<MarkKind>& mark_kinds() {
  static const std::vector<MarkKind> kinds = {
      {"search", "timed in the search"},
      {"select", "finalist"},
      {"confirm", "confirmed on fresh sessions"},
      {"rejected", "rejected: a limit or duplicate code"},
      {"mistrusted", "mistrusted result"},
      {"wrong_result", "wrong result"},
      {"timeout", "timeout"},
      {"crashed", "crashed"},
      {"compile_error", "compile error"},
      {"launch_error", "launch error"},
  };
  return kinds;
}

std::vector<Mark> scatter_marks(const std::vector<Candidate>& candidates, size_t most) {
  double low = 0, high = 0;
  size_t fastest = candidates.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto& t = candidates[i].time_ns;
    if (!t) continue;
    low = low == 0 ? *t : std::min(low, *t);
    high = std::max(high, *t);
    if (fastest == candidates.size() || faster(t, candidates[fastest].time_ns)) fastest = i;
  }
  if (candidates.size() <= most) {
    std::vector<Mark> marks;
    for (size_t i = 0; i < candidates.size(); ++i)
      marks.push_back({static_cast<double>(i), candidates[i].time_ns, kind_of(candidates[i]),
                       label_of(candidates[i], i), 1});
    return marks;
  }
  double columns = 160, rows = 60;
  for (;;) {
    std::vector<Mark> marks = binned(candidates, fastest, columns, rows, low, high);
    if (marks.size() <= most || columns < 8) return marks;
    columns /= 1.5;
    rows /= 1.5;
  }
}

std::string scatter_svg(const KernelFacts& kernel, size_t most) {
  const auto& all = kernel.candidates;
  if (all.empty()) return {};
  std::vector<Mark> marks = scatter_marks(all, most);
  Scale scale{0, 0, height - top - bottom - strip};
  auto cover = [&](std::optional<double> ns) {
    if (!ns || *ns <= 0) return;
    scale.low = scale.low == 0 ? *ns : std::min(scale.low, *ns);
    scale.high = std::max(scale.high, *ns);
  };
  for (const Candidate& c : all) cover(c.time_ns);
  for (const auto& ns : {kernel.best_ns, kernel.heuristic_ns, kernel.unoptimized_ns}) cover(ns);
  const bool timed = scale.high > 0;
  if (!timed) scale.low = 1, scale.high = 10;
  scale.low /= 1.08;
  scale.high *= 1.08;

  const double plot = width - left - right, base = height - bottom;
  const double n = static_cast<double>(all.size());
  auto x = [&](double order) { return left + (order + 0.5) / n * plot; };
  std::string svg = fmt::format(
      "<svg class='scatter' viewBox='0 0 {} {}' role='img' aria-label='{} candidates of kernel "
      "{}, time over order'>",
      width, height, all.size(), escaped(kernel.name));
  if (timed)
    for (double t : ticks(scale))
      svg += fmt::format(
          "<path class='grid' d='M{} {:.1f}H{}'/><text x='{}' y='{:.1f}' "
          "text-anchor='end'>{}</text>",
          left, scale.y(t), width - right, left - 6, scale.y(t) + 4, time_text(t));
  svg += fmt::format("<path class='axis' d='M{} {}V{}H{}'/>", left, top, base, width - right);
  svg += fmt::format("<text x='{}' y='{:.1f}' text-anchor='end'>no time</text>", left - 6,
                     base - strip / 2 + 4);
  for (int i = 0; i <= 4; ++i) {
    const double at = std::floor((n - 1) * i / 4);
    if (i > 0 && at == std::floor((n - 1) * (i - 1) / 4)) continue;
    svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{:.0f}</text>", x(at),
                       base + 16, at + 1);
  }
  svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>order of the trials</text>",
                     left + plot / 2, base + 32);
  struct Line {
    const char* name;
    std::optional<double> ns;
  };
  for (const Line& l : {Line{"unoptimised", kernel.unoptimized_ns},
                        Line{"heuristic", kernel.heuristic_ns}, Line{"best", kernel.best_ns}})
    if (l.ns && *l.ns > 0)
      svg +=
          fmt::format("<path class='level {0}' d='M{1} {2:.1f}H{3}'><title>{0}: {4}</title></path>",
                      l.name, left, scale.y(*l.ns), width - right, time_text(l.ns));
  // Where a second run begins.
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].run_id != all[i - 1].run_id)
      svg += fmt::format(
          "<path class='axis' stroke-dasharray='2 3' d='M{0:.1f} {1}V{2}'/><text x='{3:.1f}' "
          "y='{4}'>run {5}</text>",
          x(static_cast<double>(i) - 0.5), top, base, x(static_cast<double>(i) - 0.5) + 4, top + 12,
          all[i].run_id);
  // Finalists last, so that they lie on top.
  std::ranges::stable_sort(marks, {}, [](const Mark& m) {
    return m.kind == "confirm" ? 2 : m.kind == "select" ? 1 : 0;
  });
  for (const Mark& m : marks)
    svg += shape(m, x(m.order), m.time_ns ? scale.y(*m.time_ns) : base - strip / 2);
  return svg + "</svg>";
}

std::string sessions_svg(const std::vector<double>& log_ratios) {
  if (log_ratios.size() < 2) return {};
  double far = 0.02;
  for (double r : log_ratios)
    if (std::isfinite(r)) far = std::max(far, std::abs(r));
  const double w = 6 * static_cast<double>(log_ratios.size()) + 4, h = 36;
  std::string svg = fmt::format(
      "<svg class='sessions' width='{0}' height='{1}' viewBox='0 0 {0} {1}' role='img' "
      "aria-label='ratio in each of {2} sessions'><path class='grid' d='M0 {3}H{0}'/>",
      w, h, log_ratios.size(), h / 2);
  for (size_t i = 0; i < log_ratios.size(); ++i) {
    if (!std::isfinite(log_ratios[i])) continue;
    svg += fmt::format(
        "<circle class='m {}' cx='{}' cy='{:.1f}' r='2.5'><title>session {}: {:.4f}</title>"
        "</circle>",
        log_ratios[i] <= 0 ? "confirm" : "wrong_result", 5 + 6 * i,
        h / 2 - log_ratios[i] / far * (h / 2 - 4), i + 1, std::exp(log_ratios[i]));
  }
  return svg + "</svg>";
}

}  // namespace beamline::reports
