// What became of a candidate. Every outcome is data: none of them ends a run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace beamline::search {

enum class Outcome : uint8_t {
  Ok,            // compiled, ran, right; an early-killed candidate is Ok with its time
  Rejected,      // refused before timing: a limit, an illegal opt, duplicate code
  CompileError,  // the compiler refused the source
  LaunchError,   // the device refused the program
  Timeout,       // a deadline passed, in the compiler or on the device
  Crashed,       // the process running it died or answered garbage
  WrongResult,   // an output element is off
  Mistrusted,    // within tolerance, but 10 times the error of the unoptimised kernel
  Count
};

/// As stored and printed: ok, rejected, compile_error, ...
constexpr std::string_view outcome_name(Outcome o) {
  constexpr std::string_view names[] = {"ok",      "rejected", "compile_error", "launch_error",
                                        "timeout", "crashed",  "wrong_result",  "mistrusted"};
  return names[static_cast<size_t>(o)];
}

constexpr std::optional<Outcome> outcome_from_name(std::string_view name) {
  for (size_t i = 0; i < static_cast<size_t>(Outcome::Count); ++i)
    if (outcome_name(static_cast<Outcome>(i)) == name) return static_cast<Outcome>(i);
  return std::nullopt;
}

}  // namespace beamline::search
