// The report as one self-contained page: style, script and pictures are inline, nothing is fetched.
// It works without its script (sorting, filtering and instant hover texts are the script's), in
// light and dark, and stays usable with hundreds of kernels and 100,000 trials: pictures are
// thinned out (scatter.h), codes are cut.
#pragma once
#include <string>

#include "reports/report.h"

namespace beamline::reports {

struct HtmlLimits {
  size_t marks = 20'000;          // of all pictures
  size_t code_bytes = 6'000'000;  // of all sources and assemblies
  size_t open_kernels = 4;        // shown unfolded when there are no more than these
};

std::string html_report(const Report& report, const HtmlLimits& limits = {});

}  // namespace beamline::reports
