// Anybody's interleaved samples, read into what verdicts are made of: per group the log ratio of
// each session. Pure functions over texts; a mistake is a text that names line and column.
#pragma once
#include <string>
#include <variant>
#include <vector>

namespace beamline::reports {

struct SampleGroup {
  std::string name;                // values of the grouping columns, joined with ", "
  std::vector<double> log_ratios;  // ln(fastest new / fastest ref) by session number; NaN: a
                                   // session in which one of them has no valid sample
};

struct SampleTable {
  std::vector<SampleGroup> groups;  // in the order in which they appear
  std::vector<std::string> notes;   // for people, e.g. benchmarks that only one file has
};

struct SampleColumns {
  std::string ref, new_;        // contestants; nanoseconds
  std::vector<std::string> by;  // empty: all columns with a value that is no number
};

/// CSV with `#` comments, a header, an integer column `session`, optionally `sweep`, grouping
/// columns and a column a contestant. A time that is empty, not finite or not positive was not
/// measured.
std::variant<SampleTable, std::string> read_samples_csv(const std::string& text,
                                                        const SampleColumns& columns);

/// Two documents of Google Benchmark: the repetitions of a benchmark are its sessions, in order;
/// `time` is its member to compare (real_time, cpu_time, ...).
std::variant<SampleTable, std::string> read_benchmark_json(const std::string& reference,
                                                           const std::string& candidate,
                                                           const std::string& time);

}  // namespace beamline::reports
