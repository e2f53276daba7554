// Gathers what a report says from a database and this machine.
#pragma once
#include <cstdint>
#include <vector>

#include "db/sqlite.h"
#include "reports/report.h"

namespace beamline::cli {

struct ReportRequest {
  std::vector<int64_t> runs;  // one, or two: the earlier first
  bool code = true;           // axes, source and machine code of the winners
};

/// All kernels that the device of the (last) run has rows of. Throws UsageError when two runs are
/// of different devices.
reports::Report gather_report(const db::Database& database, const ReportRequest& request);

}  // namespace beamline::cli
