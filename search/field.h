// Field: the contestants of one kernel's search and their timing sessions. A contestant that fails
// in a session is marked and the session is repeated without it, so that racing and finals see only
// times. Used by one strategy on one thread.
#pragma once
#include <functional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "search/strategy.h"

namespace beamline::search {

struct Contestant {
  std::string opts;
  int program = -1;  // -1: known from an earlier part of the run, not compiled in this one
  std::string code_hash, source_hash;
  double compile_ms = 0;
  double call_ns = 0;      // of the check
  double error_share = 0;  // share of the tolerance used, at most 1
  int threads = 1;
  bool planted = false;  // a fault of the user's: never a place to go on from
  Outcome outcome = Outcome::Ok;
  std::string error;
  double score = 0;   // ln(time / first incumbent's time), from racing
  double weight = 0;  // sweeps behind the score; 0 = never timed
  double best_ns = 0;
  std::vector<stats::Sample> samples;  // of the race
  bool reported = false;               // its racing trial is counted
  Outcome told = Outcome::Ok;          // as what
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
  /// Tells the observer and counts it.
  void report(const Trial& trial);
  /// The racing trial of a contestant as it stands; told again when there is more to tell, counted
  /// once.
  void report_race(int who, int incumbent);
  /// A trial of an earlier part of the run: counted, not told again.
  void recall(const KnownTrial& known);
  const std::array<int, static_cast<size_t>(Outcome::Count)>& counts() const { return counts_; }

  /// A reproducible shuffle, and seeds for sessions.
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random_() % i]);
  }
  uint64_t next_seed() { return random_(); }

 private:
  std::mt19937_64 random_;
  int64_t session_ = 0;
  std::array<int, static_cast<size_t>(Outcome::Count)> counts_{};
  std::set<std::string> recalled_;  // opts
};

/// The fastest of the samples that are times; 0 when there is none.
double fastest(std::span<const double> ns);

/// Wall-clock limits of one search, in the measurer's seconds.
struct Deadlines {
  double search_end = 0, end = 0;
};

}  // namespace beamline::search
