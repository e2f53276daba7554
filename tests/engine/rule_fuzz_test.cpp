// Every rule tests itself: its own pattern is filled with random expressions, the rule alone is
// applied, and both sides are evaluated. Prints how often each rule fired; a rule that never fires
// fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "engine/ir/print.h"
#include "engine/lower/magic_division.h"
#include "engine/rules/rules.h"
#include "tests/engine/rule_instances.h"

namespace beamline {
namespace {

using testing::Expressions;
using testing::Filler;

struct Count {
  int fired = 0, compared = 0;
};

Count fuzz(const Rule& rule, int trials, uint64_t seed) {
  const MatcherBase only({&rule});
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(seed);
  Count count;
  for (int i = 0; i < trials; i++) {
    arena.reset();
    Filler filler(e, rule.pat, e.any_of(testing::base_types));
    const UOp u = filler.next();
    if (!u) continue;
    const UOp v = only.rewrite(u, nullptr, nullptr);
    if (!v) continue;
    count.fired++;
    EXPECT_TRUE(std::ranges::equal(u.shape(), v.shape()));
    EXPECT_TRUE(v.is_invalid() || u.dtype() == DType::Invalid || u.dtype() == v.dtype())
        << rule.name;
    for (int k = 0; k < 4; k++) {
      const Assignment a = e.values(u);
      const auto want = evaluate(u, a);
      if (!want) continue;
      count.compared++;
      const auto got = evaluate(v, a);
      const bool same = got && *got == *want;
      EXPECT_TRUE(same) << rule.name << "\n" << print_uops(u) << "became\n" << print_uops(v);
      if (!same) return count;
    }
  }
  return count;
}

void fuzz_all(const Rules<>& rules) {
  std::string table;
  uint64_t seed = 1;
  for (const Rule* r : rules.list()) {
    if (testing::rules_without_value.contains(r->name) || r->kind != RuleClass::Exact) continue;
    Count c;
    for (int round = 0; round < 24 && c.compared < 1000; round++) {
      const Count n = fuzz(*r, 1500, seed++);
      c.fired += n.fired, c.compared += n.compared;
      if (::testing::Test::HasFailure()) break;
    }
    table += fmt::format("{:<22} fired {:>6}  compared {:>6}\n", r->name, c.fired, c.compared);
    EXPECT_GT(c.fired, 0) << r->name << " never fires";
    EXPECT_GT(c.compared, 0) << r->name << " was never compared";
  }
  std::fputs(table.c_str(), stdout);
}

TEST(RuleFuzz, BothSidesOfEveryRuleAreEqual) { fuzz_all(sym()); }
TEST(RuleFuzz, ProductsAreTheDivisionsTheyReplace) { fuzz_all(magic_division_rules()); }

// Real values that are equal up to rounding. Where one is NaN or infinite, so is the other.
bool nearly_equal(const ScalarValue& a, const ScalarValue& b, double tolerance) {
  if (a.kind != b.kind || a.kind != ScalarValue::Kind::Real) return a == b;
  if (!std::isfinite(a.real) || !std::isfinite(b.real)) return a == b;
  return std::fabs(a.real - b.real) <= tolerance * (1 + std::fabs(a.real));
}

// Rules that round differently are compared up to rounding: on NaN, Inf and zeros too, unless they
// are relaxed.
TEST(RuleFuzz, RulesOfRealNumbersHoldUpToRounding) {
  Arena arena;
  Arena::Scope scope(arena);
  for (const Rule* r : relaxed().list()) {
    if (r->kind == RuleClass::Exact || testing::rules_without_value.contains(r->name)) continue;
    const MatcherBase only({r});
    Expressions e(17);
    int compared = 0;
    for (int i = 0; i < 20000 && compared < 800; i++) {
      arena.reset();
      const DType base = e.coin() ? DType::F64 : DType::F32;
      const UOp u = Filler(e, r->pat, base, 0).next();
      const UOp v = u ? only.rewrite(u, nullptr, nullptr) : UOp{};
      if (!v) continue;
      ASSERT_EQ(dtype_name(u.dtype()), dtype_name(v.dtype())) << r->name;
      Assignment a = e.values(u);
      for (auto& [leaf, value] : a)
        if (value.kind == ScalarValue::Kind::Real && (r->kind == RuleClass::Relaxed || e.coin()))
          value.real =
              round_to(leaf.dtype(), static_cast<double>(e.between(-400, 400)) / 97 + 0.001);
      const auto want = evaluate(u, a), got = evaluate(v, a);
      if (!want || (r->kind == RuleClass::Relaxed && !std::isfinite(want->real))) continue;
      compared++;
      ASSERT_TRUE(got && nearly_equal(*want, *got, 1e-4))
          << r->name << ": " << want->real << " became " << (got ? got->real : 0) << "\n"
          << print_uops(u) << "became\n"
          << print_uops(v);
    }
    std::printf("%-22s compared %4d\n", std::string(r->name).c_str(), compared);
    EXPECT_GT(compared, 20) << r->name;
  }
}

TEST(RuleFuzz, ExceptionsAreRules) {
  for (std::string_view name : testing::rules_without_value)
    EXPECT_TRUE(std::ranges::any_of(relaxed().list(), [&](const Rule* r) {
      return r->name == name;
    })) << name;
}

TEST(RuleFuzz, NamesAreUnique) {
  std::set<std::string_view> seen;
  for (const Rule* r : relaxed().list()) EXPECT_TRUE(seen.insert(r->name).second) << r->name;
  EXPECT_GT(seen.size(), 80u);
}

TEST(RuleFuzz, TiersContainEachOther) {
  const auto starts = [](const Rules<>& longer, const Rules<>& shorter) {
    return std::equal(shorter.list().begin(), shorter.list().end(), longer.list().begin());
  };
  EXPECT_TRUE(starts(symbolic_simple(), invalid_rules()));
  EXPECT_TRUE(starts(symbolic(), symbolic_simple()));
  EXPECT_TRUE(starts(sym(), symbolic()));
  EXPECT_TRUE(starts(relaxed(), sym()));
  for (const Rule* r : sym().list()) EXPECT_NE(r->kind, RuleClass::Relaxed) << r->name;
}

}  // namespace
}  // namespace beamline
