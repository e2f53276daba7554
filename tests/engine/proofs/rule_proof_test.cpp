// Proofs of the integer and boolean rules: instances of every rule's own pattern, with bounded
// variables for its captures, are given to a solver. What it cannot decide or express is printed
// and pinned; the pins may only become fewer.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "engine/ir/print.h"
#include "engine/rules/rules.h"
#include "tests/engine/proofs/solver.h"
#include "tests/engine/rule_instances.h"

namespace beamline {
namespace {

using testing::Expressions;
using testing::Filler;
using testing::Proof;

constexpr DType whole_types[] = {DType::WeakInt, DType::WeakInt, DType::WeakInt,
                                 DType::U8,      DType::I32,     DType::Bool};
// How deep the expressions in place of the captures are, and how many instances of each depth.
constexpr struct {
  int depth, instances, attempts;
} rounds[] = {{0, 5, 3000}, {1, 3, 3000}, {2, 1, 2000}, {3, 1, 6000}};

constexpr int most_unknown = 1;  // then it is undecided

struct Result {
  int proved = 0, unknown = 0, inexpressible = 0;
  std::string reason;
  double seconds = 0;
};

Result prove(const Rule& rule, uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  const MatcherBase only({&rule});
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(seed);
  Result r;
  std::set<std::string> seen;
  for (const auto& round : rounds) {
    const int before = r.proved + r.unknown;
    if (round.depth >= 2 && before > 0) break;
    for (int i = 0; i < round.attempts && r.inexpressible < 40; i++) {
      if (r.proved + r.unknown - before == round.instances || r.unknown == most_unknown) break;
      arena.reset();
      const UOp u = Filler(e, rule.pat, e.any_of(whole_types), round.depth).next();
      const UOp v = u ? only.rewrite(u, nullptr, nullptr) : UOp{};
      if (!v || !seen.insert(print_uops(u)).second) continue;
      const Proof p = testing::prove_equal(u, v);
      switch (p.answer) {
        case Proof::Answer::Proved: r.proved++; break;
        case Proof::Answer::Unknown: r.unknown++, r.reason = p.text; break;
        case Proof::Answer::Inexpressible: r.inexpressible++, r.reason = p.text; break;
        case Proof::Answer::Refuted:
          ADD_FAILURE() << rule.name << "\n"
                        << print_uops(u) << "became\n"
                        << print_uops(v) << "which differs at\n"
                        << p.text;
          return r;
      }
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  r.seconds = took.count();
  return r;
}

// Rules of which an instance was beyond the solver's effort.
const std::set<std::string_view> undecided = {"where-pair", "narrow",    "narrow-constant",
                                              "div-self",   "mod-mod",   "low-half",
                                              "high-half",  "range-mod", "chain"};
// Rules without an instance that the solver's language has words for: floats.
const std::set<std::string_view> inexpressible = {"zero-over-zero", "add-minus-zero", "double",
                                                  "float-neg-mul", "max-max-float"};

TEST(RuleProofs, EveryWholeNumberRuleIsProved) {
  size_t proved = 0;
  for (const Rule* rule : sym().list()) {
    if (testing::rules_without_value.contains(rule->name)) continue;  // memory and control
    if (rule->kind != RuleClass::Exact) continue;                     // floats
    const Result r = prove(*rule, 7);
    std::printf("%-22s proved %2d  unknown %2d  inexpressible %3d  %5.2f s  %s\n",
                std::string(rule->name).c_str(), r.proved, r.unknown, r.inexpressible, r.seconds,
                r.reason.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(r.unknown == 0 || undecided.contains(rule->name)) << rule->name << ": unknown";
    EXPECT_TRUE(r.proved + r.unknown > 0 || inexpressible.contains(rule->name))
        << rule->name << ": " << r.reason;
    proved += r.proved > 0 && r.unknown == 0;
  }
  std::printf("%zu rules proved, %zu pinned as undecided, %zu as inexpressible\n", proved,
              undecided.size(), inexpressible.size());
}

TEST(RuleProofs, PinsAreRules) {
  for (const auto& pins : {undecided, inexpressible})
    for (std::string_view name : pins)
      EXPECT_TRUE(std::ranges::any_of(sym().list(), [&](const Rule* r) { return r->name == name; }))
          << name;
}

// The solver knows what these rules are about: floor division, wrapping, division by zero, poison.
TEST(RuleProofs, TheSolverTellsRightFromWrong) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp a = variable("a", -9, 9), n = variable("n", 0, 9),
            i = variable("i", -128, 127, DType::I32), w = variable("w", 0, 255, DType::U8);
  const auto answer = [](UOp u, UOp v) { return testing::prove_equal(u, v).answer; };
  using enum Proof::Answer;
  EXPECT_EQ(answer(a / iconst(-2), (a * iconst(-1)) / iconst(2)), Proved);
  EXPECT_EQ(answer(a / iconst(-2), (a / iconst(2)) * iconst(-1)), Refuted);
  EXPECT_EQ(answer(a % iconst(4), alu(Op::CMOD, {a, iconst(4)})), Refuted);
  EXPECT_EQ(answer(n % iconst(4), alu(Op::CMOD, {n, iconst(4)})), Proved);
  EXPECT_EQ(answer(n / n, iconst(1)), Proved) << "0/0 has no value";
  EXPECT_EQ(answer(iconst(1), n / n), Refuted) << "0/0 has no value";
  EXPECT_EQ(answer((w + w) / iconst(2, DType::U8), w), Refuted) << "it wraps";
  EXPECT_EQ(answer((i + i) / iconst(2, DType::I32), i), Proved);
  EXPECT_EQ(answer(where(n < iconst(3), n, invalid()), n), Refuted);
  EXPECT_EQ(answer(where(n < iconst(10), n, invalid()), n), Proved);
  EXPECT_EQ(answer(fconst(1, DType::F32), fconst(1, DType::F32)), Inexpressible);
}

}  // namespace
}  // namespace beamline
