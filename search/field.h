// Field: the contestants of one kernel's search and their timing sessions. A contestant that fails
// in a session is marked and the session is repeated without it, so that racing and finals see only
// times. Used by one strategy on one thread.
#pragma once
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "search/strategy.h"

namespace beamline::search {

struct Contestant {
  std::string opts;
  int program = -1;
  std::string code_hash, source_hash;
  double compile_ms = 0;
  double call_ns = 0;      // of the check
  double error_share = 0;  // share of the tolerance used, at most 1
  Outcome outcome = Outcome::Ok;
  std::string error;
  double score = 0;   // ln(time / first incumbent's time), from racing
  double weight = 0;  // sweeps behind the score; 0 = never timed
  double best_ns = 0;
  std::vector<stats::Sample> samples;  // of the race
  bool ok() const { return outcome == Outcome::Ok; }
};

class Field {
 public:
  Field(Measurer& measurer, SearchObserver& observer, uint64_t seed);

  std::vector<Contestant> all;
  Contestant& operator[](int who) { return all[static_cast<size_t>(who)]; }
  Measurer& measurer;
  SearchObserver& observer;

  /// One session; samples by position of `who`, empty for contestants that failed (now or before).
  /// A contestant may occur twice. Numbers the session: `last_session()`.
  std::vector<std::vector<double>> session(std::span<const int> who, int sweeps);
  int64_t last_session() const { return session_; }

  void fail(int who, Outcome outcome, std::string error);
  /// Tells the observer and counts it. Racing trials are counted once a contestant.
  void report(const Trial& trial);
  void report_race(int who, int incumbent);
  const std::array<int, static_cast<size_t>(Outcome::Count)>& counts() const { return counts_; }

  /// A reproducible shuffle and seeds for sessions.
  void shuffle(std::vector<int>& v);
  uint64_t next_seed() { return random_(); }

 private:
  std::mt19937_64 random_;
  int64_t session_ = 0;
  std::array<int, static_cast<size_t>(Outcome::Count)> counts_{};
};

/// The fastest of the samples that are times; 0 when there is none.
double fastest(std::span<const double> ns);

/// Wall-clock limits of one search, in the measurer's seconds.
struct Deadlines {
  double search_end = 0, end = 0;
};

}  // namespace beamline::search
