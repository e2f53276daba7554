// Measures one case: ours and its competitors, verified against each other, interleaved in one run.
#pragma once
#include <string>
#include <vector>

#include "tests/bench/anchors.h"
#include "tests/bench/goal.h"
#include "tests/bench/peer_case.h"
#include "tests/bench/peer_result.h"

namespace beamline::bench {

struct RaceSettings {
  Settings tuning;  // budget a kernel, and where the programs lie
  bool tuned = true;
  int threads = 1;
  double seconds = 4;  // of timing, about
  int most_sessions = 15;
};

/// With two or more threads the libraries' times are those of library_entries(), which the caller
/// gets from processes of their own: their waiting workers would disturb ours. Mistakes and
/// crippled competitors are the result's `failure`.
PeerResult race_case(const Case& c, const RaceSettings& settings, Anchors& anchors,
                     const std::vector<PeerEntry>& libraries);

/// One library ("openblas" or "onednn") alone on `threads` threads; none where it does not do the
/// work.
std::vector<PeerEntry> library_entries(const Case& c, const std::string& library, int threads,
                                       double seconds);

}  // namespace beamline::bench
