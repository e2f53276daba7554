// What is wrong with a workload file, and where. Bad input is always a list of these values, never
// an exception. Lines and columns are 1-based; a column counts code points, like toml++ does.
#pragma once
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace beamline::workloads {

struct SourcePos {
  int line = 0;  // 0: the file as a whole
  int column = 0;
  friend auto operator<=>(const SourcePos&, const SourcePos&) = default;
};

/// A mistake inside one string of a file; positions are those of the file.
struct Diagnostic {
  SourcePos at;
  std::string message;
  std::string expected;  // may be empty
};

struct WorkloadError {
  std::string file;
  int line = 0;
  int column = 0;
  std::string field;     // e.g. "gemm.params.M"; empty for errors of TOML itself
  std::string message;   // e.g. "unknown key 'wieght'; did you mean 'weight'?"
  std::string expected;  // e.g. "an integer or an array of integers"; may be empty
  friend bool operator==(const WorkloadError&, const WorkloadError&) = default;
};

/// "FILE:LINE:COLUMN: FIELD: MESSAGE (expected EXPECTED)"
std::string to_string(const WorkloadError& e);
WorkloadError located(const Diagnostic& d, std::string file, std::string field);

/// "; did you mean 'X'?" for the nearest candidate, or "" when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
/// The candidates in a sentence: "a, b or c".
std::string one_of(const std::vector<std::string>& candidates);

}  // namespace beamline::workloads
