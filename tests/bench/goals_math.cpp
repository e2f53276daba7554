// Functions of real numbers as the heuristic compiles them, against the same polynomials written by
// hand: interleaved sessions on the same buffers, which lie in the second-level cache.
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/bench/goal.h"
#include "tests/bench/hand_math.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/network_run.h"

namespace beamline::bench {
namespace {

constexpr int64_t count = 1 << 16;
constexpr int sessions = 15, sweeps = 10;

Measured against_hand(HandFunction f, const char* name) {
  Measured out;
  const HandMathVariant hand = hand_math(f);
  if (hand.run == nullptr) {
    out.crippled = "this processor has no AVX2";
    return out;
  }
  const Target target = machine_target(1);
  const Kernel kernel =
      kernels_of_text(fmt::format("[[workload]]\nname = \"{0}\"\nparams = {{ N = {1} }}\n"
                                  "inputs = {{ x = \"f32[N]\" }}\ncompute = \"return {0}(x)\"\n",
                                  name, count))
          .at(0);
  const Program program = compile(kernel, heuristic_opts(kernel, target), target);
  const Buffers buffers(kernel);
  float *result = buffers.floats(0), *in = buffers.floats(1);
  for (int64_t i = 0; i < count; i++) in[i] = std::ldexp(static_cast<float>(i + 1), -13);  // to 8
  hand.run(result, in, count);
  const std::vector<float> want(result, result + count);
  program.blob.entry()(buffers.pointers(), 0);
  for (int64_t i = 0; i < count; i++) {
    const float w = want[static_cast<size_t>(i)];
    if (!(std::fabs(result[i] - w) <= 5e-7f * std::fmax(std::fabs(w), 1e-3f)))
      throw std::runtime_error(
          fmt::format("{}({}) by hand is {}, ours {}", name, in[i], w, result[i]));
  }
  const KernelFn by_hand = bind_call(0, [=](int64_t) { hand.run(result, in, count); });
  const RaceResult r =
      race({{"hand", by_hand}, {"ours", program.blob.entry()}}, buffers, sessions, sweeps);
  out.value = r.ratio[1];
  out.note = fmt::format("{} {:.2f}, ours {:.2f} ns an element, {}", hand.name,
                         r.ns[0] / static_cast<double>(count), r.ns[1] / static_cast<double>(count),
                         program.opts);
  return out;
}

// clang-format off
constexpr Goal goals[] = {
    {"sin heuristic/by hand",   6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Sin,  "sin"); }},
    {"cos heuristic/by hand",   6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Cos,  "cos"); }},
    {"exp2 heuristic/by hand",  6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Exp2, "exp2"); }},
    {"log2 heuristic/by hand",  6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Log2, "log2"); }},
    {"exp heuristic/by hand",   6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Exp,  "exp"); }},
    {"log heuristic/by hand",   6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Log,  "log"); }},
    {"tanh heuristic/by hand",  6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Tanh, "tanh"); }},
    {"erf heuristic/by hand",   6, Bound::AtLeast, 0.7, "x", [](const Settings&) { return against_hand(HandFunction::Erf,  "erf"); }},
};
// clang-format on

}  // namespace

std::span<const Goal> math_goals() { return goals; }

}  // namespace beamline::bench
