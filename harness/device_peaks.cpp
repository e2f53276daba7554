#include "harness/device_peaks.h"

#include <algorithm>
#include <cmath>

namespace beamline {

using nlohmann::json;

double DevicePeaks::gbps_at(double bytes) const {
  if (rates.empty()) return 0;
  if (bytes <= rates.front().bytes) return rates.front().gbps();
  for (size_t i = 1; i < rates.size(); ++i) {
    const FootprintRate &a = rates[i - 1], &b = rates[i];
    if (bytes > b.bytes) continue;
    const double share = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return a.gbps() + share * (b.gbps() - a.gbps());
  }
  return rates.back().gbps();
}

json peaks_json(const DevicePeaks& p) {
  json rates = json::array();
  for (const FootprintRate& r : p.rates)
    rates.push_back({{"bytes", r.bytes}, {"read_gbps", r.read_gbps}, {"triad_gbps", r.triad_gbps}});
  return {{"measured_at", p.measured_at}, {"threads", p.threads},   {"gflops", p.gflops},
          {"gflops_f64", p.gflops_f64},   {"gflops_1", p.gflops_1}, {"bandwidth", rates}};
}

std::optional<DevicePeaks> read_peaks(const std::string& facts_json) {
  const json facts = json::parse(facts_json, nullptr, false);
  if (!facts.is_object() || !facts.contains("probe")) return {};
  try {
    const json& j = facts.at("probe");
    DevicePeaks p;
    j.at("measured_at").get_to(p.measured_at);
    j.at("threads").get_to(p.threads);
    j.at("gflops").get_to(p.gflops);
    j.at("gflops_f64").get_to(p.gflops_f64);
    j.at("gflops_1").get_to(p.gflops_1);
    for (const json& r : j.at("bandwidth"))
      p.rates.push_back({r.at("bytes"), r.at("read_gbps"), r.at("triad_gbps")});
    const bool rising = std::ranges::is_sorted(p.rates, {}, &FootprintRate::bytes);
    const bool positive = std::ranges::all_of(
        p.rates, [](const FootprintRate& r) { return r.bytes > 0 && r.gbps() > 0; });
    if (!(p.gflops > 0) || p.rates.empty() || !rising || !positive) return {};
    return p;
  } catch (const json::exception&) {
    return {};
  }
}

double bound_ns(const DevicePeaks& peaks, double flops, double bytes, bool f64) {
  const double rate = f64 && peaks.gflops_f64 > 0 ? peaks.gflops_f64 : peaks.gflops;
  const double compute = rate > 0 ? flops / rate : 0;
  const double bandwidth = peaks.gbps_at(bytes);
  return std::max(compute, bandwidth > 0 ? bytes / bandwidth : 0);
}

std::optional<double> bound_share(const DevicePeaks& peaks, double flops, double bytes,
                                  const std::string& dtypes, double ns) {
  const double bound = bound_ns(peaks, flops, bytes, dtypes.find("f64") != std::string::npos);
  if (!(bound > 0) || !(ns > 0)) return {};
  return bound / ns;
}

}  // namespace beamline
