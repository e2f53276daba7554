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
#include "engine/rangeify/rangeify.h"
#include "engine/render/llvm.h"
#include "engine/rules/rules.h"
#include "engine/tensor/tensor_ops.h"
#include "search/stats/robust.h"
#include "tests/bench/goal.h"
#include "tests/bench/kernel_lab.h"

namespace beamline::bench {
namespace {

constexpr int rounds = 20;
constexpr int pair_rounds = 100;  // of a ratio: each side meets the machine at its best
constexpr size_t nodes = 100'000;

double time_ns(const Timer& timer, const std::function<void()>& f) {
  const uint64_t start = timer.now();
  f();
  return timer.ns(timer.now() - start);
}

// Runs f, untimed, until the processor and its caches are as in a worker that has compiled a while.
void warm_up(const Timer& timer, const std::function<void()>& f) {
  constexpr double ns = 3e8;
  for (const uint64_t start = timer.now(); timer.ns(timer.now() - start) < ns;) f();
}

// The least ns that `once` tells in that many rounds, warm.
double best_ns(const Timer& timer, int times, const std::function<double()>& once) {
  warm_up(timer, once);
  double best = 1e18;
  for (int i = 0; i < times; i++) best = std::min(best, once());
  return best;
}

// ns a node over ns an entry of a reserved map, the best of the rounds each. New nodes form a
// chain of sums; each has two operands and no interesting bounds. Look-ups come with their operands
// at hand, as a rewrite has them, and the map's with its keys; the chain built again, where each
// look-up waits for the one before, is told beside.
Measured node_cost(bool fresh) {
  const Timer timer;
  constexpr size_t leaf_count = 64;  // a power of two: choosing one takes no division
  Arena base;
  std::vector<UOp> leaves;
  UOp x;
  {
    const Arena::Scope scope(base);
    ParamArg a;
    const int64_t shape[] = {1};
    x = param(a, DType::F32, shape);
    for (size_t i = 0; i < leaf_count; i++)
      leaves.push_back(fconst(static_cast<double>(i) + 0.5, DType::F32));
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
  const auto sum_of = [&](UOp a, size_t i) {
    return make(Op::ADD, DType::F32, {a, leaves[i % leaf_count]});
  };
  const auto build_chain = [&] {
    UOp at = x;
    for (size_t i = 0; i < nodes; i++) at = sum_of(at, i);
  };
  std::vector<UOp> chain{x};
  for (size_t i = 0; i < nodes; i++) chain.push_back(sum_of(chain.back(), i));
  std::unordered_map<uint64_t, uint64_t> map;
  map.reserve(nodes);
  for (uint64_t k : keys) map.emplace(k, k);
  uint64_t sum = 0;
  std::vector<double> ours, theirs, waiting;
  warm_up(timer, build_chain);
  for (int round = 0; round < pair_rounds; round++) {
    if (fresh) {
      arena.reset();
      map.clear();
    }
    ours.push_back(time_ns(timer, [&] {
      if (fresh) return build_chain();
      for (size_t i = 0; i < nodes; i++) sum += !(sum_of(chain[i], i) == chain[i + 1]);
    }));
    theirs.push_back(time_ns(timer, [&] {
      if (fresh)
        for (uint64_t k : keys) map.emplace(k, k);
      else
        for (uint64_t k : keys) sum += map.find(k)->second != k;
    }));
    if (!fresh) waiting.push_back(time_ns(timer, build_chain));
  }
  if (sum != 0) throw std::runtime_error("a look-up found another node");
  const auto best = [](const std::vector<double>& ns) { return *std::ranges::min_element(ns); };
  std::string text =
      fmt::format("{} nodes, {:.1f} ns each", nodes, best(ours) / static_cast<double>(nodes));
  if (!fresh)
    text += fmt::format("; each waiting for the one before {:.2f}x", best(waiting) / best(theirs));
  return {best(ours) / best(theirs), text, {}};
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
  const double best = best_ns(timer, rounds, [&] {
    UOp after;
    const double ns = time_ns(timer, [&] { after = simplify(graph); });
    if (!(after == graph)) throw std::runtime_error("a rule still applies");
    return ns;
  });
  return {
      best * 1e-6 * 3000 / count, fmt::format("{:.0f} nodes in {:.2f} ms", count, best * 1e-6), {}};
}

constexpr char conv_toml[] =
    "[[workload]]\nname = \"conv\"\n"
    "inputs = { x = \"f32[8, 64, 56, 56]\", w = \"f32[64, 64, 3, 3]\" }\n"
    "compute = \"return conv2d(x, w, padding=1)\"\n";

// From the prepared AST of the workload's kernel, with the heuristic's opts, to text.
Measured lowering(const std::string& toml) {
  const Timer timer;
  Arena base;
  Opts opts;
  UOp ast;
  const Target target = machine_target(1);
  {
    const Arena::Scope scope(base);
    ast = std::get<UOp>(parse_uops(kernels_of_text(toml).at(0).ast));
    opts = cpu_heuristic(ast, target);
  }
  base.freeze();
  Arena scratch(&base);
  const Arena::Scope scope(scratch);
  const double best = best_ns(timer, rounds, [&] {
    scratch.reset();
    std::string error, text;
    const double ns = time_ns(timer, [&] {
      const auto lowered = lower(ast, opts, target);
      text = render_llvm(std::get<LinearKernel>(lowered), "kernel", error);
    });
    if (text.empty()) throw std::runtime_error(error);
    return ns;
  });
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

// From a tensor graph to prepared ASTs with their keys, in ms; the best of the rounds.
double kernels_ms(const Timer& timer, const std::function<UOp(TensorOps&)>& build, int times,
                  size_t& kernels) {
  return 1e-6 * best_ns(timer, times, [&] {
           Arena arena;
           const Arena::Scope scope(arena);
           TensorOps t;
           const UOp sink = make(Op::SINK, DType::Void, {build(t)});
           KernelGraph g;
           const double ns = time_ns(timer, [&] { g = make_kernels(sink); });
           kernels = g.kernels.size();
           return ns;
         });
}
UOp tensor(int64_t slot, const Ints& shape) {
  ParamArg a;
  a.slot = slot;
  return param(a, DType::F32, shape);
}

// All that rangeify does for a convolution as ResNet has it, `initial symbolic` within; told
// beside: the symbolic pass of its lowering, over what the opts write out.
Measured symbolic_of_convolution(const Settings&) {
  const Kernel kernel = kernels_of_text(conv_toml).at(0);
  const Target target = machine_target(1);
  size_t count = 0;
  std::string text;
  const double best = best_ns(Timer(), rounds, [&] {
    double spent = 0;
    Arena arena;
    const Arena::Scope scope(arena);
    const UOp ast = std::get<UOp>(parse_uops(kernel.ast));
    const Opts opts = cpu_heuristic(ast, target);
    text = opts_text(opts);
    LowerOptions options;
    options.after_pass = [&](std::string_view pass, UOp g, double ns) {
      if (pass == "expand") count = toposort(g).size();
      if (pass == "symbolic") spent = ns;
    };
    if (!std::holds_alternative<LinearKernel>(lower(ast, opts, target, options)))
      throw std::runtime_error("the kernel is refused");
    return spent;
  });
  size_t kernels = 0;
  const double whole = kernels_ms(
      Timer(),
      [](TensorOps& t) {
        TensorOps::Conv c;
        c.padding = {1, 1};
        return t.conv2d(tensor(0, {8, 64, 56, 56}), tensor(1, {64, 64, 3, 3}), {}, c);
      },
      rounds, kernels);
  return {whole,
          fmt::format("all of rangeify; {:.2f} ms for {} nodes after {}", best * 1e-6, count, text),
          {}};
}

Measured conv_kernels(const Settings&) {
  size_t kernels = 0;
  const double ms = kernels_ms(
      Timer(),
      [](TensorOps& t) {
        TensorOps::Conv c;
        c.padding = {1, 1};
        return t.relu(
            t.conv2d(tensor(0, {8, 64, 56, 56}), tensor(1, {64, 64, 3, 3}), tensor(2, {64}), c));
      },
      rounds, kernels);
  return {ms, fmt::format("{} kernels", kernels), {}};
}

Measured attention_kernels(const Settings&) {
  size_t kernels = 0;
  const Ints shape{2, 12, 128, 64};
  const double ms = kernels_ms(
      Timer(),
      [&](TensorOps& t) {
        return t.attention(tensor(0, shape), tensor(1, shape), tensor(2, shape), true, {}, {});
      },
      rounds, kernels);
  return {ms, fmt::format("{} kernels", kernels), {}};
}

// Four times as many ops, in kernels of a few and in one: linear time is four times the time.
Measured chain_kernels(const Settings&) {
  const Timer timer;
  double worst = 0;
  std::string note;
  for (const bool cut : {true, false}) {
    size_t kernels = 0;
    const auto chain = [&](size_t ops) {
      return [=](TensorOps& t) {
        UOp x = tensor(0, {64, 64});
        for (size_t i = 1; i <= ops; i++) {
          x = i % 2 ? t.add(x, tensor(1 + static_cast<int64_t>(i % 3), {64, 1}))
                    : t.maximum(x, fconst(static_cast<double>(i), DType::WeakFloat));
          if (cut && i % 5 == 0) x = t.contiguous(x);
        }
        return x;
      };
    };
    double small = 1e18, large = 1e18;
    for (int i = 0; i < rounds; i++) {  // in turn, so that a load of the machine hits both
      small = std::min(small, kernels_ms(timer, chain(1250), 2, kernels));
      large = std::min(large, kernels_ms(timer, chain(5000), 1, kernels));
    }
    worst = std::max(worst, large / small);
    note += fmt::format("{}{} kernels: {:.1f} ms, a quarter {:.1f} ms", note.empty() ? "" : "; ",
                        kernels, large, small);
  }
  return {worst, note, {}};
}

// clang-format off
constexpr Goal goals[] = {
    {"uop new/map insert",          4, Bound::AtMost, 2.5, "x",  [](const Settings&) { return node_cost(true); }},
    {"uop hit/map find",            4, Bound::AtMost, 1.5, "x",  [](const Settings&) { return node_cost(false); }},
    {"no-match sweep of 3000 nodes", 4, Bound::AtMost, 2,  "ms", no_match_sweep},
    {"initial symbolic of conv 3x3", 4, Bound::AtMost, 1,  "ms", symbolic_of_convolution},
    {"lower+render matmul-512",     6, Bound::AtMost, 2,   "ms", [](const Settings&) { return lowering(matmul_toml(512, 512, 512)); }},
    {"lower+render conv 3x3",       6, Bound::AtMost, 6,   "ms", [](const Settings&) { return lowering(conv_toml); }},
    {"kernels of conv bias relu",   5, Bound::AtMost, 3,   "ms", conv_kernels},
    {"kernels of attention",        5, Bound::AtMost, 50,  "ms", attention_kernels},
    {"chain 5000 ops/1250 ops",     5, Bound::AtMost, 5,   "x",  chain_kernels},
    {"object code matmul-512",      6, Bound::AtMost, 25,  "ms", object_code},
};
// clang-format on

}  // namespace

std::span<const Goal> engine_goals() { return goals; }

}  // namespace beamline::bench
