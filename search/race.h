// Race: times many candidates cheaply and keeps the few worth a careful look (measurement.md 6a).
// Batches of at most `settings.batch` contestants, incumbent and heuristic in each; times count
// only relative to the incumbent of their batch, so slow minutes cancel. Search times are never
// results.
#pragma once
#include <functional>

#include "search/field.h"

namespace beamline::search {

class Race {
 public:
  /// `always`: contestants that pass every cut (heuristic, stored best).
  Race(Field& field, const SearchSettings& settings, std::vector<int> always,
       std::function<bool()> out_of_time);

  /// Rung 0: two sweeps; who is over twice the incumbent is out.
  void enter(const std::vector<int>& fresh);
  /// Halves the field with more and more sweeps until few are left; best first.
  std::vector<int> finish();
  /// The fastest so far; -1 before anyone was timed.
  int incumbent() const { return incumbent_; }

 private:
  void batches(const std::vector<int>& who, int sweeps, double kill);
  void batch(std::vector<int> who, int sweeps, double kill);
  void rate(const std::vector<int>& who, const std::vector<std::vector<double>>& samples);
  bool is_always(int who) const;
  void leave(int who);

  Field& field_;
  const SearchSettings& settings_;
  std::vector<int> always_;
  std::function<bool()> out_of_time_;
  std::vector<int> racing_;
  int incumbent_ = -1;
};

}  // namespace beamline::search
