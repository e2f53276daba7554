// The other forms of a report: Markdown for reviews, JSON for programs, JUnit for CI systems.
#pragma once
#include <string>

#include "reports/report.h"

namespace beamline::reports {

std::string markdown_report(const Report& report);
/// Starts with "schema": 1; what is not known is null.
std::string json_report(const Report& report);
/// One test case a kernel: a failure where it could not be tuned, skipped where nothing was tried.
std::string junit_report(const Report& report);

}  // namespace beamline::reports
