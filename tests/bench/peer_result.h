// What one case gave, as a line of JSON, and the tables over many.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace beamline::bench {

/// One contestant. `kind`: heuristic, tuned (ours); openblas, onednn, hand; peak (multiply-adds).
struct PeerEntry {
  std::string kind, name;        // name: which kernels, opts
  double ns = 0;                 // median over the sessions of the session's minimum
  std::vector<double> sessions;  // those minima; empty when taken in a process of its own
};
struct PeerResult {
  std::string name, group;
  int threads = 1;
  double flops = 0, bytes = 0, gbps = 0;  // gbps: the anchor's, of this working set
  std::vector<PeerEntry> entries;
  std::string failure;  // not empty: what went wrong; nothing else counts

  const PeerEntry* find(const std::string& kind) const;
  /// Time of the best of the peers of a kind over ours: above 1 = we are faster. Of sessions, where
  /// both have them.
  std::optional<double> ratio(const std::string& ours, const std::string& peer) const;
  /// max(flops / peak, bytes / bandwidth) over our time.
  std::optional<double> bound_share(const std::string& ours) const;
};

double geomean(const std::vector<double>& values);

std::string to_json(const PeerResult& result);
/// Throws std::runtime_error on a line that to_json() did not write.
PeerResult peer_result_from_json(const std::string& line);

std::string result_heading();
std::string result_line(const PeerResult& result);
/// For each group and number of threads: geometric mean and worst of the ratios to each kind of
/// peer, of both heuristic and tuned kernels.
std::string summary_table(const std::vector<PeerResult>& results);

}  // namespace beamline::bench
