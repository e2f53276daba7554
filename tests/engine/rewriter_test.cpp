// Patterns, matchers and graph_rewrite: orders of operands, priority, modes, loops.
#include "engine/rewrite/rewriter.h"

#include <gtest/gtest.h>

#include "engine/ir/arena.h"

namespace beamline {
namespace {

using namespace pat;

class Rewriting : public ::testing::Test {
 protected:
  Arena arena;
  Arena::Scope scope{arena};
  UOp a = variable("a", 0, 7), d = variable("d", 0, 7);
};

// clang-format off
constexpr RuleOf<void> factor[] = {
    rule("factor", x*c0 + x*c1, [](X x_, C0 a, C1 b) { return x_ * iconst(a.ival() + b.ival()); }),
};
constexpr RuleOf<void> first_wins[] = {
    rule("first",  x + 1, [](X x_) { return x_ + iconst(10); }),
    rule("second", x + 1, [](X x_) { return x_ + iconst(20); }),
};
constexpr RuleOf<void> declining[] = {
    rule("declines", x + 1, [](X)    { return UOp{}; }),
    rule("same",     (x + 1).as("u"), [](Cap<"u"> u) { return UOp(u); }),
    rule("third",    x + 1, [](X x_) { return x_ + iconst(30); }),
};
constexpr RuleOf<void> ping_pong[] = {
    rule("ping", x + 2, [](X x_) { return x_ * iconst(2); }),
    rule("pong", x * 2, [](X x_) { return x_ + iconst(2); }),
};
constexpr RuleOf<void> growing[] = {
    rule("grow", (x + y).as("u"), [](X, Y, Cap<"u"> u) { return u + iconst(1); }),
};
constexpr RuleOf<void> repeated[] = {
    rule("repeated", ordered(x / x), [](X x_) { return const_like(x_, 1); }),
};
struct Seen { int count = 0; };
constexpr RuleOf<Seen> counting[] = {
    rule("count", x + 1, [](Seen& s, X x_) { s.count++; return UOp(x_); }),
};
constexpr RuleOf<void> tails[] = {
    rule("tail", node(Op::STACK, 1).tail(), [] { return iconst(99); }),
};
constexpr RuleOf<void> shape_keeping[] = {
    [] { auto r = rule("zero", x * 0, [](X x_) { return const_like(x_, 0); }); r.law = true; return r; }(),
};
// clang-format on

TEST_F(Rewriting, CommutativePatternsMatchEveryOrder) {
  const Matcher<> m{Rules<>(factor)};
  const UOp left = a * iconst(3), right = a * iconst(4);
  EXPECT_TRUE(m.rewrite(left + right, nullptr, nullptr) == a * iconst(7));
  EXPECT_TRUE(m.rewrite(right + left, nullptr, nullptr) == a * iconst(7));
  EXPECT_FALSE(m.rewrite(left + d * iconst(4), nullptr, nullptr)) << "one name is one node";
}
TEST_F(Rewriting, OrderIsPriority) {
  EXPECT_TRUE(Matcher<>(Rules<>(first_wins)).rewrite(a + iconst(1), nullptr, nullptr) ==
              a + iconst(10));
  EXPECT_TRUE(Matcher<>(Rules<>(declining) + Rules<>(first_wins))
                  .rewrite(a + iconst(1), nullptr, nullptr) == a + iconst(30));
}
TEST_F(Rewriting, RepeatedNamesMeanTheSameNode) {
  const Matcher<> m{Rules<>(repeated)};
  EXPECT_TRUE(m.rewrite(a / a, nullptr, nullptr).is_const(1));
  EXPECT_FALSE(m.rewrite(a / d, nullptr, nullptr));
}
TEST_F(Rewriting, TailsAllowMoreOperands) {
  const Matcher<> m{Rules<>(tails)};
  const UOp two[] = {iconst(1), iconst(5)}, wrong[] = {iconst(5), iconst(1)};
  EXPECT_TRUE(m.rewrite(stack(two), nullptr, nullptr).is_const(99));
  EXPECT_FALSE(m.rewrite(stack(wrong), nullptr, nullptr));
}
TEST_F(Rewriting, ContextIsPassed) {
  const Matcher<Seen> m{Rules<Seen>(counting)};
  Seen seen;
  const UOp u = graph_rewrite((a + iconst(1)) * (d + iconst(1)), m, &seen);
  EXPECT_TRUE(u == a * d);
  EXPECT_EQ(seen.count, 2);
}
TEST_F(Rewriting, LoopsAreReportedWithTheirRules) {
  const Matcher<> m{Rules<>(ping_pong)};
  for (bool bottom_up : {false, true}) {
    RewriteOptions o;
    o.bottom_up = bottom_up;
    try {
      graph_rewrite(a + iconst(2), m, nullptr, o);
      FAIL() << "ended";
    } catch (const RewriteLoop& e) {
      EXPECT_NE(std::string(e.what()).find("ping"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("pong"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(graph_rewrite(a + d, Matcher<>(Rules<>(growing))), RewriteLoop);
}
TEST_F(Rewriting, WalkVisitsOriginalsOnce) {
  RewriteOptions o;
  o.walk = true;
  EXPECT_TRUE(graph_rewrite(a + d, Matcher<>(Rules<>(growing)), nullptr, o) == a + d + iconst(1));
}
TEST_F(Rewriting, RulesSeeRewrittenOperands) {
  const Matcher<> m{Rules<>(factor)};
  const UOp inner = a * iconst(1) + a * iconst(2), outer = inner + a * iconst(4);
  EXPECT_TRUE(graph_rewrite(outer, m) == a * iconst(7));
}
TEST_F(Rewriting, SubstituteReplacesEverywhereOnce) {
  const UOp u = (a + d) * a;
  EXPECT_TRUE(substitute(u, {{a, a + iconst(1)}}) == (a + iconst(1) + d) * (a + iconst(1)));
  EXPECT_TRUE(substitute(u, {}) == u);
}
TEST_F(Rewriting, ALawKeepsTheShape) {
  const Matcher<> m{Rules<>(shape_keeping)};
  EXPECT_TRUE(m.rewrite(a * iconst(0), nullptr, nullptr).is_const(0));
  const int64_t four[] = {4};
  const UOp shaped = param({}, DType::I32, four);
  EXPECT_FALSE(m.rewrite(shaped * iconst(0, DType::I32), nullptr, nullptr))
      << "a scalar is no vector of four";
}

}  // namespace
}  // namespace beamline
