#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "reports/sample_table.h"

namespace beamline::reports {
namespace {

using nlohmann::ordered_json;

// Times of the repetitions of each benchmark, in the order of the document.
struct Document {
  std::vector<std::string> names;
  std::map<std::string, std::vector<double>> times;
};

// What the reader of a file says about it; the caller knows the file's name.
std::variant<Document, std::string> read_document(const std::string& text, const std::string& which,
                                                  const std::string& time) {
  const ordered_json j = ordered_json::parse(text, nullptr, false);
  if (j.is_discarded()) return which + " is not JSON";
  if (!j.is_object() || !j.contains("benchmarks") || !j["benchmarks"].is_array())
    return which + " has no list 'benchmarks': it is no document of Google Benchmark";
  Document d;
  for (const auto& b : j["benchmarks"]) {
    if (!b.is_object()) return which + ": an entry of 'benchmarks' is no object";
    if (b.value("run_type", "iteration") != "iteration") continue;
    const auto name = b.contains("run_name") ? b["run_name"] : b.value("name", ordered_json());
    if (!name.is_string()) return which + ": a benchmark has no name";
    auto [it, fresh] = d.times.try_emplace(name.get<std::string>());
    if (fresh) d.names.push_back(it->first);
    double ns = std::numeric_limits<double>::quiet_NaN();
    if (!b.value("error_occurred", false)) {
      if (!b.contains(time) || !b[time].is_number())
        return fmt::format("{}: benchmark '{}' has no number '{}'", which, it->first, time);
      // The ratio needs both in one unit.
      const std::string unit = b.value("time_unit", "ns");
      const double scale = unit == "ns"   ? 1
                           : unit == "us" ? 1e3
                           : unit == "ms" ? 1e6
                           : unit == "s"  ? 1e9
                                          : 0;
      if (scale == 0)
        return fmt::format("{}: benchmark '{}' has the unit '{}'", which, it->first, unit);
      const double v = b[time].get<double>() * scale;
      if (std::isfinite(v) && v > 0) ns = v;
    }
    it->second.push_back(ns);
  }
  return d;
}

}  // namespace

std::variant<SampleTable, std::string> read_benchmark_json(const std::string& reference,
                                                           const std::string& candidate,
                                                           const std::string& time) {
  auto a = read_document(reference, "the first file", time);
  if (auto* e = std::get_if<std::string>(&a)) return *e;
  auto b = read_document(candidate, "the second file", time);
  if (auto* e = std::get_if<std::string>(&b)) return *e;
  Document& ref = std::get<Document>(a);
  Document& new_ = std::get<Document>(b);
  SampleTable out;
  for (const std::string& name : ref.names) {
    auto other = new_.times.find(name);
    if (other == new_.times.end()) {
      out.notes.push_back(fmt::format("'{}' is in the first file only", name));
      continue;
    }
    const auto &x = ref.times[name], &y = other->second;
    SampleGroup g{name, {}};
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      g.log_ratios.push_back(std::log(y[i]) - std::log(x[i]));
    if (x.size() != y.size())
      out.notes.push_back(fmt::format("'{}' has {} repetitions in the first file, {} in the second",
                                      name, x.size(), y.size()));
    out.groups.push_back(std::move(g));
  }
  for (const std::string& name : new_.names)
    if (!ref.times.contains(name))
      out.notes.push_back(fmt::format("'{}' is in the second file only", name));
  if (out.groups.empty()) return std::string("the files have no benchmark in common");
  return out;
}

}  // namespace beamline::reports
