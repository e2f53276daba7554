// Random programs of the language give the evaluator's values through the interpreter of kernels
// and through machine code. BEAMLINE_FUZZ_SEED and BEAMLINE_FUZZ_COUNT choose other programs; a
// failure prints the seed that makes it alone, and the smallest program found that still fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/rangeify.h"
#include "engine/rules/verify.h"
#include "tests/programs/generator.h"
#include "tests/programs/machine.h"
#include "tests/programs/settings.h"

namespace beamline::fuzz {
namespace {

constexpr size_t least_uses = 20, median_ops = 12;

// Every use of a function, an operator or an index, by name.
std::vector<std::string> ops_of(const Program& p) {
  std::vector<std::string> out;
  const auto parsed = workloads::parse_program(workloads::SourceText(p.text()));
  for (const workloads::Expr& e : parsed.program.exprs) {
    using Kind = workloads::ExprKind;
    if (e.kind == Kind::Call) out.push_back(e.text);
    if (e.kind == Kind::Unary) out.push_back(fmt::format("unary {}", operator_text(e.op)));
    if (e.kind == Kind::Binary) out.emplace_back(operator_text(e.op));
    if (e.kind == Kind::Subscript) out.emplace_back("x[...]");
  }
  return out;
}
std::vector<std::string> language() {
  std::vector<std::string> all = workloads::function_names();
  for (const char* op : {"+", "-",  "*", "/",  "//", "%", "**", "@",       "==",      "!=",
                         "<", "<=", ">", ">=", "&",  "|", "^",  "unary -", "unary ~", "x[...]"})
    all.emplace_back(op);
  return all;
}

TEST(RandomPrograms, AgreeThroughInterpreterAndMachineCode) {
  const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1);
  const uint64_t count = setting("BEAMLINE_FUZZ_COUNT", programs);
  std::map<std::string, size_t> uses;  // programs with it
  std::vector<size_t> lengths;
  std::set<size_t> ranks;
  size_t odd = 0, ones = 0, empty = 0;
  RunFacts run;
  for (uint64_t seed = first; seed < first + count; seed++) {
    const Program p = Generator(seed).program();
    const std::vector<std::string> ops = ops_of(p);
    lengths.push_back(ops.size());
    for (const std::string& op : std::set(ops.begin(), ops.end())) uses[op]++;
    for (const Input& in : p.inputs) {
      ranks.insert(in.value.shape.size());
      for (int64_t d : in.value.shape) odd += d > 1 && d % 2 != 0, ones += d == 1, empty += d == 0;
    }
    Plan plan;
    plan.seed = seed;
    plan.target.threads = 3;
    plan.kind = seed % 4 == 0   ? Plan::Kind::Heuristic
                : seed % 4 == 1 ? Plan::Kind::Unoptimised
                                : Plan::Kind::Random;
    if (count == 1) fmt::print(stderr, "{}{}", p.header(), p.text());
    if (!disagreement(p, plan, &run)) continue;
    ADD_FAILURE() << "BEAMLINE_FUZZ_SEED=" << seed << " BEAMLINE_FUZZ_COUNT=1: " << shrunk(p, plan);
    if (testing::Test::HasFailure() && count > 1 && !std::getenv("BEAMLINE_FUZZ_GO_ON")) return;
  }
  std::ranges::sort(lengths);
  const size_t median = lengths[lengths.size() / 2];
  fmt::print(
      "{} programs, median {} ops (least {}, most {}), {} kernels, {} accesses not proved in "
      "bounds\n",
      count, median, lengths.front(), lengths.back(), run.kernels, run.unproved);
  fmt::print("input dims: {} odd, {} of one, {} of zero\n", odd, ones, empty);
  for (const std::string& op : language()) fmt::print("  {} {}\n", uses[op], op);
  EXPECT_EQ(run.unproved, 0U) << "accesses whose bounds vmin and vmax do not prove";
  if (count < programs) return;
  EXPECT_GE(median, median_ops);
  EXPECT_GT(odd, count);
  EXPECT_GT(ones, count / 10);
  EXPECT_GT(empty, 0U);
  EXPECT_GE(ranks.size(), 5U);
  if (count < 1000) return;
  for (const std::string& op : language()) EXPECT_GE(uses[op], least_uses) << op;
}

// Sines of numbers of every size, as machine code: the interpreter and the compiler see the same
// decomposition, the evaluator the library's.
TEST(Programs, SinesOfAllExponents) {
  for (const DType t : {DType::F32, DType::F64}) {
    Program p;
    const int64_t n = 300;
    p.inputs.push_back({"x", TensorValue(t, {&n, 1})});
    const int most = t == DType::F32 ? 127 : 1022;
    for (int64_t i = 0; i < n; i++)
      p.inputs[0].value.reals[static_cast<size_t>(i)] =
          round_to(t, std::ldexp(1 + static_cast<double>(i * 37 % 101) / 101,
                                 static_cast<int>(i * 2 * most / n) - most) *
                          (i % 2 == 0 ? 1 : -1));
    p.statements = {{"s", "sin(x)", {}}, {"c", "cos(x)", {}}};
    p.results = {"s", "c"};
    for (const Plan::Kind kind : {Plan::Kind::Unoptimised, Plan::Kind::Heuristic}) {
      Plan plan;
      plan.kind = kind;
      EXPECT_EQ(disagreement(p, plan), std::nullopt) << dtype_name(t);
    }
  }
}

// Temporaries that share a byte of the arena: is one of them written while the other is needed?
void expect_sound_plan(const KernelGraph& g) {
  std::vector<std::pair<size_t, size_t>> life(g.buffers.size(), {SIZE_MAX, 0});
  for (size_t k = 0; k < g.kernels.size(); k++)
    for (size_t b : g.kernels[k].buffers)
      life[b] = {std::min(life[b].first, k), std::max(life[b].second, k)};
  const auto bytes = [&](size_t b) {
    return g.buffers[b].elements * dtype_bytes(g.buffers[b].dtype);
  };
  for (size_t a = 0; a < g.buffers.size(); a++) {
    const int64_t at = g.buffers[a].offset;
    EXPECT_EQ(at >= 0, g.buffers[a].kind == BufferInfo::Kind::Temp && bytes(a) > 0 &&
                           life[a].first != SIZE_MAX);
    EXPECT_LE(at + bytes(a), at < 0 ? bytes(a) : g.arena_bytes);
    for (size_t b = 0; at >= 0 && b < a; b++) {
      const int64_t other = g.buffers[b].offset;
      if (other < 0 || at >= other + bytes(b) || other >= at + bytes(a)) continue;
      EXPECT_TRUE(life[a].second < life[b].first || life[b].second < life[a].first)
          << "buffers " << b << " and " << a;
    }
  }
}

std::vector<std::string> kernel_keys(const Program& p) {
  Arena arena;
  const Arena::Scope scope(arena);
  std::vector<std::string> keys;
  const KernelGraph g = make_kernels(build(p).graph.sink);
  expect_sound_plan(g);
  for (const KernelAst& k : g.kernels) {
    keys.push_back(k.key);
    const Prepared again = prepare(k.ast);
    EXPECT_EQ(verify(k.ast, Stage::Kernel, 2), std::nullopt) << p.header() << p.text();
    EXPECT_EQ(kernel_key(again.ast), k.key) << "prepared twice\n" << p.header() << p.text();
  }
  std::ranges::sort(keys);
  return keys;
}

// An accumulator to which nothing is added still has to begin.
TEST(Programs, ReductionsOfWhatChangesNothing) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3}, {3, 5}, {2, 3, 40}}) {
    for (const char* value : {"max(x != x, axis=-1)", "any(x != x, axis=-1)", "any(x != x)",
                              "all(x == x, axis=-1)", "sum(x * 0, axis=-1)", "prod(x * 0 + 1)",
                              "max(x != x, axis=-1) | (max(x, axis=-1) > 3)"}) {
      Program p;
      p.inputs.push_back({"x", TensorValue(DType::I32, shape)});
      p.statements = {{"s", value, {}}};
      p.results = {"s"};
      for (const Plan::Kind kind : {Plan::Kind::Unoptimised, Plan::Kind::Heuristic}) {
        Plan plan;
        plan.kind = kind;
        EXPECT_EQ(disagreement(p, plan), std::nullopt) << p.header() << p.text();
      }
    }
  }
}

// The order in which a program names its inputs decides nothing, and preparing twice changes
// nothing.
TEST(RandomPrograms, KeysDoNotDependOnTheOrderOfInputs) {
  const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1);
  const uint64_t count = setting("BEAMLINE_FUZZ_COUNT", programs / 4);
  std::vector<uint64_t> seeds{1000145};  // loops that could be merged only once they were numbered
  if (std::getenv("BEAMLINE_FUZZ_SEED")) seeds.clear();
  for (uint64_t seed = first; seed < first + count; seed++) seeds.push_back(seed);
  for (uint64_t seed : seeds) {
    const Program p = Generator(seed).program();
    Program reversed = p;
    std::ranges::reverse(reversed.inputs);
    EXPECT_EQ(kernel_keys(p), kernel_keys(reversed)) << "BEAMLINE_FUZZ_SEED=" << seed << "\n"
                                                     << p.header() << p.text();
    if (HasFailure() && count > 1 && !std::getenv("BEAMLINE_FUZZ_GO_ON")) return;
  }
}

}  // namespace
}  // namespace beamline::fuzz
