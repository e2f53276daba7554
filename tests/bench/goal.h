// A goal: one number that an issue asks for, and the function that measures it. `targets` prints a
// line for each. A goal is added as one row of a table in goals_*.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace beamline::bench {

struct Settings {
  double budget_s = 20;     // of a tuning that a goal needs
  std::string program_dir;  // where beamline and its helpers lie
};

struct Measured {
  double value = 0;
  std::string note;      // what the number rests on: kernels compared, schedule, counts
  std::string crippled;  // not empty: why the comparison means nothing; the command fails
};

enum class Bound { AtLeast, AtMost };

struct Goal {
  std::string_view name;
  int issue;  // the one that asks for it
  Bound bound;
  double target;
  std::string_view unit;  // "x", "ms", "/s"
  Measured (*measure)(const Settings&);
  bool slow = false;  // takes many minutes: measured only where it is asked for
};

std::span<const Goal> matmul_goals();
std::span<const Goal> search_goals();
std::span<const Goal> engine_goals();
std::span<const Goal> peer_goals();
std::span<const Goal> math_goals();
std::span<const Goal> tuning_goals();

}  // namespace beamline::bench
