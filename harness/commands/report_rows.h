// Rows of a database that a report is made of.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/sqlite.h"
#include "reports/report.h"
#include "search/stats/sessions.h"

namespace beamline::cli {

struct StoredDevice {
  reports::DeviceFacts facts;
  nlohmann::json all;  // its facts as stored
};
struct StoredKernel {
  reports::KernelFacts facts;
  std::string ast, source_hash, code_hash;
};
/// Samples of a confirmation by opts; of opts confirmed twice the later ones.
using Confirmed = std::vector<std::pair<std::string, std::vector<stats::Sample>>>;

/// Throws UsageError when there is no such run; tells its device.
reports::RunFacts read_run(const db::Database& database, int64_t run_id, std::string& device_id);
StoredDevice read_device(const db::Database& database, const std::string& device_id);
/// Kernels with rows of this device, and those that no device has tuned; by name.
std::vector<StoredKernel> read_kernels(const db::Database& database, const std::string& device_id);
/// Appends the kernel's trials of a run, in their order.
void read_candidates(const db::Database& database, const std::string& device_id, int64_t run,
                     reports::KernelFacts& k);
Confirmed read_confirmed(const db::Database& database, const std::string& device_id, int64_t run,
                         const reports::KernelFacts& k);

}  // namespace beamline::cli
