#include "tests/bench/peer_result.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "search/stats/robust.h"

namespace beamline::bench {
namespace {

using nlohmann::ordered_json;

constexpr std::pair<const char*, const char*> ours[] = {{"heuristic", "h"}, {"tuned", "t"}};
constexpr std::pair<const char*, const char*> peers[] = {
    {"openblas", "OB"}, {"onednn", "1DNN"}, {"hand", "hand"}};

std::string cell(std::optional<double> v, int width, int digits) {
  return v ? fmt::format(" {:>{}.{}f}", *v, width, digits) : fmt::format(" {:>{}}", "", width);
}

}  // namespace

const PeerEntry* PeerResult::find(const std::string& kind) const {
  const PeerEntry* best = nullptr;
  for (const PeerEntry& e : entries)
    if (e.kind == kind && (best == nullptr || e.ns < best->ns)) best = &e;
  return best;
}

std::optional<double> PeerResult::ratio(const std::string& our_kind,
                                        const std::string& peer) const {
  const PeerEntry* mine = find(our_kind);
  std::optional<double> least;
  for (const PeerEntry& e : entries) {
    if (mine == nullptr || e.kind != peer) continue;
    double r = e.ns / mine->ns;
    if (!e.sessions.empty() && e.sessions.size() == mine->sessions.size()) {
      std::vector<double> each;
      for (size_t s = 0; s < e.sessions.size(); s++)
        each.push_back(e.sessions[s] / mine->sessions[s]);
      r = stats::median(each);
    }
    least = std::min(least.value_or(r), r);
  }
  return least;
}

std::optional<double> PeerResult::bound_share(const std::string& our_kind) const {
  const PeerEntry* mine = find(our_kind);
  const PeerEntry* peak = find("peak");
  if (mine == nullptr || peak == nullptr || gbps == 0) return std::nullopt;
  // The anchor's entry holds ns per GFLOP.
  return std::max(flops * 1e-9 * peak->ns, bytes / gbps) / mine->ns;
}

double geomean(const std::vector<double>& values) {
  double sum = 0;
  for (double v : values) sum += std::log(v);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::string to_json(const PeerResult& r) {
  ordered_json entries = ordered_json::array();
  for (const PeerEntry& e : r.entries)
    entries.push_back({{"kind", e.kind}, {"name", e.name}, {"ns", e.ns}, {"sessions", e.sessions}});
  return ordered_json({{"name", r.name},
                       {"group", r.group},
                       {"threads", r.threads},
                       {"flops", r.flops},
                       {"bytes", r.bytes},
                       {"gbps", r.gbps},
                       {"failure", r.failure},
                       {"entries", entries}})
      .dump();
}

PeerResult peer_result_from_json(const std::string& line) {
  try {
    const ordered_json j = ordered_json::parse(line);
    PeerResult r;
    r.name = j.at("name"), r.group = j.at("group"), r.threads = j.at("threads");
    r.flops = j.at("flops"), r.bytes = j.at("bytes"), r.gbps = j.at("gbps");
    r.failure = j.at("failure");
    for (const ordered_json& e : j.at("entries"))
      r.entries.push_back({e.at("kind"), e.at("name"), e.at("ns"), e.at("sessions")});
    return r;
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(fmt::format("not a result of peers: {}", e.what()));
  }
}

std::string result_heading() {
  std::string line = fmt::format("{:<36} {}", "us", "T");
  for (const char* kind : {"heuristic", "tuned", "openblas", "onednn", "hand"})
    line += fmt::format(" {:>9}", kind);
  line += "  ";
  for (const auto& [kind, letter] : ours) {
    for (const auto& [peer, short_name] : peers)
      line += fmt::format(" {:>6}", fmt::format("{}/{}", letter, short_name));
    line += fmt::format(" {:>6} ", fmt::format("{}/max", letter));
  }
  return line + "\n";
}

std::string result_line(const PeerResult& r) {
  std::string line = fmt::format("{:<36} {}", r.name, r.threads);
  if (!r.failure.empty()) return line + "  failed: " + r.failure + "\n";
  for (const char* kind : {"heuristic", "tuned", "openblas", "onednn", "hand"}) {
    const PeerEntry* e = r.find(kind);
    line += cell(e ? std::optional(e->ns / 1e3) : std::nullopt, 9, 1);
  }
  line += "  ";
  for (const auto& [kind, letter] : ours) {
    for (const auto& [peer, short_name] : peers) line += cell(r.ratio(kind, peer), 6, 2);
    line += cell(r.bound_share(kind), 6, 2) + " ";
  }
  return line + "\n";
}

std::string summary_table(const std::vector<PeerResult>& results) {
  std::vector<std::pair<std::string, int>> groups;  // in order of appearance
  for (const PeerResult& r : results)
    if (std::ranges::find(groups, std::pair(r.group, r.threads)) == groups.end())
      groups.emplace_back(r.group, r.threads);
  std::string out =
      fmt::format("{:<30} T {:<10} {:<9} {:>5} {:>8} {:>6}  {}\n", "ratio (above 1: we are faster)",
                  "ours", "peer", "cases", "geomean", "worst", "of");
  for (const auto& [group, threads] : groups)
    for (const auto& [kind, letter] : ours)
      for (const auto& [peer, short_name] : peers) {
        std::vector<double> ratios;
        double worst = 0;
        std::string which;
        for (const PeerResult& r : results) {
          if (r.group != group || r.threads != threads || !r.failure.empty()) continue;
          const auto ratio = r.ratio(kind, peer);
          if (!ratio) continue;
          if (ratios.empty() || *ratio < worst) worst = *ratio, which = r.name;
          ratios.push_back(*ratio);
        }
        if (!ratios.empty())
          out += fmt::format("{:<30} {} {:<10} {:<9} {:>5} {:>8.3f} {:>6.2f}  {}\n", group, threads,
                             kind, peer, ratios.size(), geomean(ratios), worst, which);
      }
  return out;
}

}  // namespace beamline::bench
