// The engine itself: nodes, rules, lowering, code generation. Absolute times are the best of 20
// (object code: the median); ratios are of times taken in turn.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "devices/cpu/llvm_compiler.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/render/llvm.h"
#include "engine/rules/rules.h"
#include "search/stats/robust.h"
#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"

namespace beamline::bench {
namespace {

constexpr int rounds = 20;
constexpr size_t nodes = 100'000;

double time_ns(const Timer& timer, const std::function<void()>& f) {
  const uint64_t start = timer.now();
  f();
  return timer.ns(timer.now() - start);
}

// A chain of sums: every node is new, has two operands and no interesting bounds.
void build_chain(UOp x, const std::vector<UOp>& leaves) {
  UOp at = x;
  for (size_t i = 0; i < nodes; i++)
    at = make(Op::ADD, DType::F32, {at, leaves[i % leaves.size()]});
}

// ns a node over ns an entry of a reserved map, median of the rounds' ratios.
Measured node_cost(bool fresh) {
  const Timer timer;
  Arena base;
  std::vector<UOp> leaves;
  UOp x;
  {
    const Arena::Scope scope(base);
    ParamArg a;
    const int64_t shape[] = {1};
    x = param(a, DType::F32, shape);
    for (int i = 0; i < 64; i++) leaves.push_back(fconst(i + 0.5, DType::F32));
  }
  base.freeze();
  Arena arena(&base);
  const Arena::Scope scope(arena);
  std::vector<uint64_t> keys;  // what hashing gives: without order
  uint64_t state = 1;
  for (size_t i = 0; i < nodes; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    keys.push_back(state ^ (state >> 29));
  }
  std::unordered_map<uint64_t, uint64_t> map;
  map.reserve(nodes);
  uint64_t sum = 0;
  std::vector<double> ratios, ours;
  build_chain(x, leaves);
  for (uint64_t k : keys) map.emplace(k, k);
  for (int round = 0; round < rounds; round++) {
    if (fresh) {
      arena.reset();
      map.clear();
    }
    const double us = time_ns(timer, [&] { build_chain(x, leaves); });
    const double theirs = time_ns(timer, [&] {
      if (fresh)
        for (uint64_t k : keys) map.emplace(k, k);
      else
        for (uint64_t k : keys) sum += map.find(k)->second;
    });
    ours.push_back(us / static_cast<double>(nodes));
    ratios.push_back(us / theirs);
  }
  if (sum == 1) throw std::runtime_error("unreachable; keeps the look-ups");
  return {stats::median(ratios),
          fmt::format("{} nodes, {:.1f} ns each", nodes, *std::ranges::min_element(ours)),
          {}};
}

UOp heuristic_matmul(Opts& opts, const Target& target) {
  const Kernel kernel = kernels_of_text(matmul_toml(512, 512, 512)).at(0);
  const UOp ast = std::get<UOp>(parse_uops(kernel.ast));
  opts = cpu_heuristic(ast, target);
  return ast;
}

// All symbolic rules over a graph in which none applies, scaled to 3,000 nodes.
Measured no_match_sweep(const Settings&) {
  const Timer timer;
  Arena arena;
  const Arena::Scope scope(arena);
  const Target target = machine_target(1);
  Opts opts;
  const UOp ast = heuristic_matmul(opts, target);
  opts.push_back({OptKind::UNROLL, 0, {8}});
  UOp graph;
  LowerOptions options;
  options.after_pass = [&](std::string_view pass, UOp g, double) {
    if (pass == "symbolic") graph = g;
  };
  if (!std::holds_alternative<LinearKernel>(lower(ast, opts, target, options)) || !graph)
    throw std::runtime_error("the kernel is refused");
  const auto count = static_cast<double>(toposort(graph).size());
  double best = 1e18;
  for (int i = 0; i < rounds; i++) {
    UOp after;
    best = std::min(best, time_ns(timer, [&] { after = simplify(graph); }));
    if (!(after == graph)) throw std::runtime_error("a rule still applies");
  }
  return {
      best * 1e-6 * 3000 / count, fmt::format("{:.0f} nodes in {:.2f} ms", count, best * 1e-6), {}};
}

Measured lowering(const Settings&) {
  const Timer timer;
  Arena base;
  Opts opts;
  UOp ast;
  const Target target = machine_target(1);
  {
    const Arena::Scope scope(base);
    ast = heuristic_matmul(opts, target);
  }
  base.freeze();
  Arena scratch(&base);
  const Arena::Scope scope(scratch);
  double best = 1e18;
  for (int i = 0; i < rounds; i++) {
    scratch.reset();
    std::string error, text;
    best = std::min(best, time_ns(timer, [&] {
                      const auto lowered = lower(ast, opts, target);
                      text = render_llvm(std::get<LinearKernel>(lowered), "kernel", error);
                    }));
    if (text.empty()) throw std::runtime_error(error);
  }
  return {best * 1e-6, opts_text(opts), {}};
}

Measured object_code(const Settings&) {
  const Target target = machine_target(1);
  const Kernel kernel = kernels_of_text(matmul_toml(512, 512, 512)).at(0);
  const std::string opts = heuristic_opts(kernel, target);
  std::vector<double> ms;
  for (int i = 0; i < rounds; i++) ms.push_back(compile(kernel, opts, target).compile_ms);
  return {stats::median(ms), opts, {}};
}

// clang-format off
constexpr Goal goals[] = {
    {"uop new/map insert",          4, Bound::AtMost, 2.5, "x",  [](const Settings&) { return node_cost(true); }},
    {"uop hit/map find",            4, Bound::AtMost, 1.5, "x",  [](const Settings&) { return node_cost(false); }},
    {"no-match sweep of 3000 nodes", 4, Bound::AtMost, 2,  "ms", no_match_sweep},
    {"lower+render matmul-512",     6, Bound::AtMost, 2,   "ms", lowering},
    {"object code matmul-512",      6, Bound::AtMost, 25,  "ms", object_code},
};
// clang-format on

}  // namespace

std::span<const Goal> engine_goals() { return goals; }

}  // namespace beamline::bench
