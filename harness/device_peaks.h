// What a device can do at most, as `devices --probe` measured it, and the bound that follows for a
// kernel. Plain values and pure functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace beamline {

struct FootprintRate {
  double bytes = 0;  // of the working set
  double read_gbps = 0, triad_gbps = 0;
  double gbps() const { return read_gbps > triad_gbps ? read_gbps : triad_gbps; }
};

struct DevicePeaks {
  int threads = 1;
  double gflops = 0, gflops_f64 = 0;  // of all threads; f32, f64
  double gflops_1 = 0;                // of one thread, f32
  std::vector<FootprintRate> rates;   // by rising footprint, all threads
  std::string measured_at;

  /// Of the largest footprint: main memory, where caches are not larger still.
  double memory_gbps() const { return rates.empty() ? 0 : rates.back().gbps(); }
  /// Between two footprints along a straight line over the logarithm; the ends beyond them.
  double gbps_at(double bytes) const;
};

/// The member "probe" of a device's facts.
nlohmann::json peaks_json(const DevicePeaks& peaks);
/// Nothing where the facts hold no probe, or not one that this version understands.
std::optional<DevicePeaks> read_peaks(const std::string& facts_json);

/// The time below which no kernel can be, ns: max(flops / peak, bytes / bandwidth at that
/// footprint). `f64`: the kernel computes in doubles.
double bound_ns(const DevicePeaks& peaks, double flops, double bytes, bool f64);
/// bound / time; absent where nothing bounds the kernel (no work).
std::optional<double> bound_share(const DevicePeaks& peaks, double flops, double bytes,
                                  const std::string& dtypes, double ns);

}  // namespace beamline
