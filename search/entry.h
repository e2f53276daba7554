// Entry: the way into the field. Compiles candidates, refuses what lowers to code that is there
// already, checks the rest against the reference, and reports everyone who does not get in.
#pragma once
#include <map>
#include <set>
#include <span>

#include "search/field.h"

namespace beamline::search {

class Entry {
 public:
  /// `limit`: candidates that may be compiled; 0 = no limit.
  Entry(Field& field, int limit) : field_(field), limit_(limit) {}

  /// Indices of the contestants that may be timed. A text that was seen before is skipped, unless
  /// it is of a contestant without a program.
  /// `beyond_limit`: whatever was compiled before.
  std::vector<int> admit(std::span<const Candidate> candidates, bool beyond_limit = false);
  /// What an earlier part of the run found out. The candidates of `but` are to be admitted again
  /// (they are not told again); of the others, those that failed stay out and those that were timed
  /// become contestants without a program, until they are admitted.
  void recall(std::span<const KnownTrial> known, std::span<const std::string> but);
  bool seen(const std::string& opts) const { return by_text_.contains(opts); }
  /// The contestant that stands for a text: its own or that of its duplicate; -1: it never
  /// compiled.
  int find(const std::string& opts) const;
  /// "outcome: error" of the first candidate that did not get in; of duplicates nothing is kept.
  const std::string& first_failure() const { return first_failure_; }
  bool full() const { return limit_ > 0 && compiled_ >= limit_; }

 private:
  int enlist(const Candidate& candidate, const Compiled& compiled);
  void check(std::vector<int>& who);
  void note_failure(Outcome outcome, const std::string& error);

  Field& field_;
  int limit_;
  int compiled_ = 0;
  std::string first_failure_;
  bool reference_confirmed_ = false;  // some candidate agreed with it
  bool reference_recomputed_ = false;
  double unoptimised_error_ = -1;       // share of the tolerance it used
  std::map<std::string, int> by_text_;  // -1: seen, did not compile
  std::map<std::string, int> by_code_;
};

}  // namespace beamline::search
