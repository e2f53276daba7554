// Rows that a tuning run writes: from what a search found to what the database keeps. Only
// conversions; the caller holds the Store.
#pragma once
#include <string>
#include <vector>

#include "db/store.h"
#include "devices/identity.h"
#include "harness/device_peaks.h"
#include "harness/programs.h"
#include "search/strategy.h"

namespace beamline {

/// Under what a row was made; decides whether it is stale later.
struct Provenance {
  int64_t run_id = 0;
  std::string device_id, toolchain, environment_id;
};

/// Device, workloads, kernels and their uses.
void record_programs(db::Store& store, const DeviceIdentity& device,
                     const std::vector<KernelProgram>& programs);

db::TrialRow trial_row(const search::Trial& trial, const std::string& kernel_key,
                       const Provenance& from);
/// What the trials of an interrupted run tell the search that goes on with it.
std::vector<search::KnownTrial> known_trials(const std::vector<db::TrialRow>& rows);
/// REQUIRES: the search ended as Tuned. Without the strategy's name and beam.
db::BestRow best_row(const search::SearchResult& found, const ProgramKernel& kernel,
                     const Provenance& from);

/// Why a stored row is not served today; empty: it is.
std::string why_stale(const db::BestRow& row, const Provenance& today);

/// What `devices --probe` has stored of a device, if it has.
std::optional<DevicePeaks> stored_peaks(const db::Database& database, const std::string& device_id);

/// Of the facts that can change under a device and make a stored time doubtful.
std::string read_environment_id();

}  // namespace beamline
