// Random legal opts of a kernel, what they covered, and the least of them that still fail.
#pragma once
#include <map>
#include <random>
#include <string>

#include "engine/lower/lower.h"
#include "engine/opt/schedule.h"

namespace beamline::fuzz {

constexpr int most_opts = 8;

/// Up to `most_opts` opts that are legal one after another; which kinds there are the target says.
/// `allowed` (a few of them, or all) is tried again and again, so every kind comes up.
Opts random_opts(UOp ast, const Target& target, std::mt19937_64& random);

/// How often each op, opt and pass had a part; a pass has when it changed the graph.
struct Coverage {
  std::map<std::string, size_t> ops, opts, passes;
  void count(const LinearKernel& kernel);
  /// As LowerOptions::after_pass; the first graph is `prepared`.
  void count_pass(std::string_view pass, bool changed);
};

/// A minimal sequence for which `fails` still holds: no opt can be left out, no amount made
/// smaller. `fails` is asked only about other sequences than the first.
template <class F>
Opts shrink_opts(Opts opts, F fails);
/// Candidates, the smallest first.
std::vector<Opts> smaller_opts(const Opts& opts);

template <class F>
Opts shrink_opts(Opts opts, F fails) {
  for (bool progress = true; progress;) {
    progress = false;
    for (Opts& o : smaller_opts(opts)) {
      if (!fails(o)) continue;
      opts = std::move(o);
      progress = true;
      break;
    }
  }
  return opts;
}

}  // namespace beamline::fuzz
