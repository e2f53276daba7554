// The candidates of a kernel as a picture: x = order in which they happened, y = time (log scale),
// colour and shape by what became of them. Those without a time stand in a strip below. SVG that
// takes its colours from the page's style sheet (html_assets.cpp).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace beamline::reports {

struct Mark {
  double order = 0;               // 0-based position among the candidates
  std::optional<double> time_ns;  // of the fastest where it stands for several
  std::string kind;               // search, select, confirm; or a status that is not ok
  std::string label;              // what hovering shows
  size_t count = 1;               // candidates that it stands for
};

/// At most about `most` marks: where there are more candidates, neighbours of a kind become one
/// mark. Finalists and the fastest candidate of the kernel stay marks of their own.
std::vector<Mark> scatter_marks(const std::vector<Candidate>& candidates, size_t most);

/// What colours and shapes mean, in the order of a legend.
struct MarkKind {
  const char* kind;
  const char* meaning;
};
const std::vector<MarkKind>& mark_kinds();

/// A whole <svg> element; empty where the kernel has no candidate.
std::string scatter_svg(const KernelFacts& kernel, size_t most);

/// Session by session: the ratio of two contestants, with the line of "equal". Empty under two.
std::string sessions_svg(const std::vector<double>& log_ratios);

}  // namespace beamline::reports
