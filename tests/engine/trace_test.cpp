// Traces, counts of rules, explanations, and the screen of the terminal viewer.
#include "engine/rewrite/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/rules/rules.h"
#include "harness/commands/ir_trace_text.h"
#include "harness/commands/ir_trace_view.h"

namespace beamline {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Recorded : public ::testing::Test {
 protected:
  // Two passes: a rewrite of a * 1 + (2 + 3), then nothing.
  RecordedTrace record(size_t most = 100) {
    const UOp u = a * iconst(1) + (b + iconst(2)) * iconst(0);
    RecordedTrace trace(u, most);
    const UOp s = simplify(u, sym_matcher(), &trace);
    trace.pass("first", s, 1500);
    trace.pass("second", s, 10);
    return trace;
  }
  Arena arena;
  Arena::Scope scope{arena};
  UOp a = variable("a", 0, 7), b = variable("b", 0, 7);
};

TEST_F(Recorded, HoldsEveryRewriteWithItsPlace) {
  const RecordedTrace trace = record();
  ASSERT_EQ(trace.passes().size(), 2u);
  const TracedPass& first = trace.passes()[0];
  ASSERT_GE(first.rewrites.size(), 2u);
  const auto at = std::ranges::find(first.rewrites, "mul-one", &TracedRewrite::rule);
  ASSERT_NE(at, first.rewrites.end());
  EXPECT_EQ(at->file, "identities.cpp");
  EXPECT_GT(at->line, 0u);
  EXPECT_EQ(first.root_after, a.id());
  EXPECT_EQ(trace.passes()[1].rewrites.size(), 0u);
  EXPECT_EQ(trace.passes()[1].root_before, a.id());
  for (const TracedNode& n : trace.nodes())
    for (uint32_t s : n.src)
      EXPECT_TRUE(
          std::ranges::any_of(trace.nodes(), [&](const TracedNode& m) { return m.id == s; }));
}
TEST_F(Recorded, CountsWhatItLeavesOut) {
  const RecordedTrace whole = record(), part = record(1);
  EXPECT_EQ(part.passes()[0].rewrites.size(), 1u);
  EXPECT_EQ(part.left_out(), whole.passes()[0].rewrites.size() - 1);
}
TEST_F(Recorded, CountsAttemptsOfRules) {
  const RecordedTrace trace = record();
  const auto of = [&](std::string_view name) {
    for (const auto& [rule, count] : trace.counts().list())
      if (rule->name == name) return count;
    return RuleCount{};
  };
  EXPECT_GE(of("mul-one").tried, 1u);
  EXPECT_EQ(of("mul-one").matched, 1u);
  EXPECT_EQ(of("mul-one").applied, 1u);
  EXPECT_GT(of("mul-one").ns, 0);
  EXPECT_GE(of("sum").matched, of("sum").applied);
  EXPECT_THAT(trace.counts().text(), ContainsRegex("rule +tried +matched +applied"));
  EXPECT_THAT(trace.counts().text(), ContainsRegex("mul-one +[1-9][0-9]* +1 +1"));
}
TEST_F(Recorded, AScopeTracesWhatIsGivenNoTrace) {
  const UOp u = where(a < iconst(3), (a + b) * iconst(1) / iconst(8), b);
  RecordedTrace named(u), ambient(u);
  simplify(u, sym_matcher(), &named);
  {
    const TraceScope scope_of_trace(&ambient);
    simplify(u);
  }
  simplify(u);
  named.pass("p", u, 0), ambient.pass("p", u, 0);
  const auto& x = named.passes()[0].rewrites;
  const auto& y = ambient.passes()[0].rewrites;
  ASSERT_EQ(x.size(), y.size());
  ASSERT_GT(x.size(), 0u);
  for (size_t i = 0; i < x.size(); i++) EXPECT_EQ(x[i].rule, y[i].rule);
}
TEST_F(Recorded, PrintsAndDraws) {
  const RecordedTrace trace = record();
  const std::string text = cli::trace_text(trace);
  EXPECT_THAT(text, HasSubstr("first: 1 nodes, 2 us"));
  EXPECT_THAT(text, ContainsRegex("mul-one identities.cpp:[0-9]+ [0-9]+ ns  #[0-9]+ MUL"));
  EXPECT_THAT(text, HasSubstr("second: 1 nodes, 0 us (unchanged)"));
  cli::TraceScreen screen(trace, "title");
  const auto lines = [](const std::string& s) { return std::ranges::count(s, '\n') + 1; };
  for (size_t rows : {8, 24, 60})
    for (size_t columns : {20, 80}) {
      const std::string drawn = screen.draw(rows, columns, false);
      EXPECT_EQ(lines(drawn), std::max<int64_t>(static_cast<int64_t>(rows), lines(drawn)));
      EXPECT_EQ(drawn.find('\x1b'), std::string::npos);
      std::istringstream in(drawn);
      for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), columns);
    }
  EXPECT_THAT(screen.draw(24, 80, false), HasSubstr("1/"));
  EXPECT_THAT(screen.draw(24, 80, true), HasSubstr("\x1b[7m"));
}
TEST_F(Recorded, KeysStep) {
  const RecordedTrace trace = record();
  cli::TraceScreen screen(trace, "title");
  EXPECT_TRUE(screen.key("j"));
  EXPECT_EQ(screen.rewrite(), 1u);
  EXPECT_TRUE(screen.key("\x1b[A"));
  EXPECT_EQ(screen.rewrite(), 0u);
  EXPECT_TRUE(screen.key("k"));
  EXPECT_EQ(screen.rewrite(), 0u) << "not before the first";
  EXPECT_TRUE(screen.key("G"));
  EXPECT_EQ(screen.rewrite(), trace.passes()[0].rewrites.size() - 1);
  EXPECT_TRUE(screen.key("J"));
  EXPECT_EQ(screen.rewrite(), trace.passes()[0].rewrites.size() - 1) << "not behind the last";
  EXPECT_TRUE(screen.key("n"));
  EXPECT_EQ(screen.pass(), 1u);
  EXPECT_EQ(screen.rewrite(), 0u);
  EXPECT_TRUE(screen.key("j"));
  EXPECT_EQ(screen.rewrite(), 0u) << "a pass without rewrites";
  EXPECT_TRUE(screen.key("n"));
  EXPECT_EQ(screen.pass(), 1u);
  EXPECT_TRUE(screen.key("p"));
  EXPECT_EQ(screen.pass(), 0u);
  EXPECT_TRUE(screen.key("x")) << "a key without meaning";
  EXPECT_FALSE(screen.key("q"));
  EXPECT_FALSE(screen.key("")) << "the end of the input";
}

class Explain : public Recorded {
 protected:
  std::string why(std::string_view rule, UOp u) {
    for (const Rule* r : relaxed().list())
      if (r->name == rule) return explain(*r, u);
    ADD_FAILURE() << "no rule " << rule;
    return "";
  }
};
TEST_F(Explain, NamesTheFirstStepThatFails) {
  const UOp p = variable("p", 0, 1, DType::Bool);
  EXPECT_EQ(why("mul-one", a * iconst(1)), "");
  EXPECT_EQ(why("mul-one", a * iconst(2)), "expected the constant 1, found CONST #" +
                                               std::to_string(iconst(2).id()) + " of weakint");
  EXPECT_THAT(why("mul-one", a + b), HasSubstr("expected MUL, found ADD #"));
  EXPECT_THAT(why("mul-one", a * b), HasSubstr("no operand of MUL #"));
  EXPECT_THAT(why("div-self", a / b), HasSubstr("'x' is another node already, found PARAM #"));
  EXPECT_THAT(why("and-true", (a & iconst(1))), HasSubstr("of bools, found"));
  EXPECT_EQ(why("sum", a + b), "the pattern fits, the rule declines");
  EXPECT_THAT(why("mod-mod", (a / b) % b), HasSubstr("is FLOORMOD"));
  EXPECT_THAT(why("not-not", logical_not(p)), HasSubstr("CMPNE"));
}

}  // namespace
}  // namespace beamline
