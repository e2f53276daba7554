// Measurer: the one door through which a search touches the world. It compiles, checks and times
// candidates of one kernel; whatever a candidate does comes back as an Outcome. The real one drives
// subprocesses; tests use a fake without process or clock.
// Thread safety: one caller at a time. Errors: an exception means that the harness itself failed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "search/outcome.h"

namespace beamline::search {

struct Candidate {
  std::string opts;            // opt text, "" = unoptimised
  std::string planted_source;  // not empty: compile this instead of lowering (a planted fault)
};

struct Compiled {
  Outcome outcome = Outcome::Ok;
  std::string error;
  int program = -1;       // names it in check() and time(); valid until the measurer goes
  std::string opts;       // as applied: amounts of 0 resolved
  std::string code_hash;  // of the machine code; equal code is one candidate
  std::string source_hash;
  double compile_ms = 0;
  int threads = 1;  // that one call runs on
};

struct Checked {
  Outcome outcome = Outcome::Ok;
  std::string error;        // which output, which element, by how much
  double call_ns = 0;       // of the one call that was checked, cold; 0 = unknown
  std::string output_hash;  // of all outputs
  double error_share = 0;   // largest error as a share of the tolerance
};

/// One session: `sweeps` times every program once, in a random order drawn from `seed`; before each
/// timed call one untimed call of the same program; all programs on the same buffers. A program may
/// occur twice (an A/A control).
struct SessionPlan {
  std::vector<int> programs;
  int sweeps = 10;
  uint64_t seed = 0;
};

struct Timed {
  Outcome outcome = Outcome::Ok;  // of this program in this session
  std::string error;
  std::vector<double> ns;  // by sweep; shorter where the session was cut by another program's fault
};

class Measurer {
 public:
  virtual ~Measurer() = default;
  /// One result a candidate, in order; compiles in parallel as far as the measurer may.
  virtual std::vector<Compiled> compile(std::span<const Candidate> candidates) = 0;
  /// Runs each program once on input set 0 or 1 and compares every output element with the
  /// reference.
  virtual std::vector<Checked> check(std::span<const int> programs, int input_set) = 0;
  /// Forgets what the expected outputs were; the next check computes them again.
  virtual void recompute_reference() = 0;
  virtual std::vector<Timed> time(const SessionPlan& plan) = 0;
  /// The next session runs in a fresh process.
  virtual void new_pass() = 0;
  /// Seconds since some fixed moment; what budgets are counted in.
  virtual double seconds() = 0;
};

}  // namespace beamline::search
