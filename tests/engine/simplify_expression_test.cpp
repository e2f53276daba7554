// The grammar of `ir simplify`: a table of texts, errors with columns, and laws on random texts.
#include "harness/commands/simplify_expression.h"

#include <gtest/gtest.h>

#include "engine/ir/print.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

using testing::Expressions;

std::vector<ExpressionVariable> variables(std::string_view text) {
  auto v = parse_variables(text);
  EXPECT_TRUE(std::holds_alternative<std::vector<ExpressionVariable>>(v)) << text;
  return std::get<std::vector<ExpressionVariable>>(v);
}
SimplifyResult run(std::string_view vars, std::string_view expr) {
  const auto r = simplify_text(variables(vars), expr);
  if (const auto* e = std::get_if<ExpressionError>(&r)) {
    ADD_FAILURE() << expr << ": " << e->column << ": " << e->message;
    return {};
  }
  return std::get<SimplifyResult>(r);
}

struct Row {
  std::string_view vars, expr, simplified;
  int64_t vmin, vmax;
  int before, after;
};
class Table : public ::testing::TestWithParam<Row> {};
TEST_P(Table, Simplifies) {
  const Row& row = GetParam();
  const SimplifyResult r = run(row.vars, row.expr);
  EXPECT_EQ(r.simplified, row.simplified) << row.expr;
  EXPECT_EQ(r.vmin, row.vmin) << row.expr;
  EXPECT_EQ(r.vmax, row.vmax) << row.expr;
  EXPECT_EQ(r.ops_before, row.before) << row.expr;
  EXPECT_EQ(r.ops_after, row.after) << row.expr;
}
// clang-format off
INSTANTIATE_TEST_SUITE_P(Rows, Table, ::testing::Values(
    Row{"a=0..7", "a", "a", 0, 7, 0, 0},
    Row{"", "-3", "-3", -3, -3, 0, 0},
    Row{"", "- 3 + 5", "2", 2, 2, 1, 0},
    Row{"a=0..7", "a * 1 + 0", "a", 0, 7, 2, 0},
    Row{"a=0..7", "a*4 + a*2", "a * 6", 0, 42, 3, 1},
    Row{"a=0..7,b=0..3", "(a*4 + b) // 4", "a", 0, 7, 3, 0},
    Row{"a=0..7,b=0..3", "(a*4 + b) % 4", "b", 0, 3, 3, 0},
    Row{"a=0..100", "a // 8 * 8 + a % 8", "a", 0, 100, 4, 0},
    Row{"a=0..7", "a < 8", "true", 1, 1, 1, 0},
    Row{"a=0..7", "a >= 3", "a > 2", 0, 1, 1, 1},
    Row{"a=0..7", "!(a < 3)", "a > 2", 0, 1, 2, 1},
    Row{"a=0..7", "2 <= a", "a > 1", 0, 1, 1, 1},
    Row{"a=-3..3", "-a", "-a", -3, 3, 1, 1},
    Row{"a=-3..3,b=0..7", "b - a", "b - a", -3, 10, 1, 1},
    Row{"a=-3..3,b=0..7", "-a - b", "-a - b", -10, 3, 2, 2},
    Row{"a=-3..3", "a * -3", "a * -3", -9, 9, 1, 1},
    Row{"a=0..7", "a // -1", "-a", -7, 0, 1, 1},
    Row{"p=bool", "p & true", "p", 0, 1, 1, 0},
    Row{"p=bool", "!!p", "p", 0, 1, 2, 0},
    Row{"p=bool,q=bool", "p + q", "p | q", 0, 1, 1, 1},
    Row{"p=bool,q=bool", "p * q", "p & q", 0, 1, 1, 1},
    Row{"p=bool", "where(p, 1, 0)", "p", 0, 1, 1, 0},
    Row{"p=bool", "p + 1 - 1", "p", 0, 1, 2, 0},
    Row{"p=bool,a=0..7", "where(true, a, 5)", "a", 0, 7, 1, 0},
    Row{"a=0..7", "min(a, 9)", "a", 0, 7, 1, 0},
    Row{"a=0..7,b=0..7", "min(a, b)", "min(a, b)", 0, 7, 1, 1},
    Row{"a=0..7,b=0..7", "min(min(a, b), a)", "min(a, b)", 0, 7, 2, 1},
    Row{"a=0..7,b=0..7", "max(a, b) - 3", "max(a, b) - 3", -3, 4, 2, 2},
    Row{"a=0..7,b=0..7", "3 - min(a, b)", "3 - min(a, b)", -4, 3, 2, 2},
    Row{"a=0..7", "a == a", "true", 1, 1, 1, 0},
    Row{"a=0..7", "a * 2 == 5", "false", 0, 0, 2, 0},
    Row{"a=0..7,b=0..7", "a*4 + b*4 + 1", "(a + b) * 4 + 1", 1, 57, 4, 3},
    Row{"a=0..7,b=0..7", "(a + b) * 4", "(a + b) * 4", 0, 56, 2, 2},
    Row{"a=-9223372036854775808..9223372036854775807", "a + 1 - 1", "a", INT64_MIN, INT64_MAX, 2, 0},
    Row{"a=0..7", "a + 9223372036854775807 + 9223372036854775807", "a + 9223372036854775807 + 9223372036854775807",
        INT64_MIN, INT64_MAX, 2, 2},
    Row{"", "-9223372036854775808", "-9223372036854775808", INT64_MIN, INT64_MIN, 0, 0}));
// clang-format on

struct Bad {
  std::string_view vars, expr;
  int column;
  std::string_view message;
};
class Errors : public ::testing::TestWithParam<Bad> {};
TEST_P(Errors, NameTheColumn) {
  const Bad& bad = GetParam();
  const auto r = simplify_text(variables(bad.vars), bad.expr);
  ASSERT_TRUE(std::holds_alternative<ExpressionError>(r)) << bad.expr;
  EXPECT_EQ(std::get<ExpressionError>(r).column, bad.column) << bad.expr;
  EXPECT_EQ(std::get<ExpressionError>(r).message, bad.message) << bad.expr;
}
// clang-format off
INSTANTIATE_TEST_SUITE_P(Rows, Errors, ::testing::Values(
    Bad{"", "", 1, "expected a value, found the end"},
    Bad{"", "1 +", 4, "expected a value, found the end"},
    Bad{"a=0..7", "a + b", 5, "unknown name 'b'"},
    Bad{"a=0..7", "a b", 3, "expected an operator, found 'b'"},
    Bad{"a=0..7", "(a", 3, "expected ')', found the end"},
    Bad{"a=0..7", "a // 0", 3, "division by zero"},
    Bad{"a=0..7", "a % (1 - 1)", 3, "division by zero"},
    Bad{"a=0..7", "a // (a * 0)", 3, "division by zero"},
    Bad{"a=0..7", "abs(a)", 1, "unknown function 'abs'"},
    Bad{"a=0..7", "min(a)", 6, "expected ',', found ')'"},
    Bad{"a=0..7", "where(a, 1, 2)", 7, "the condition of where is not a bool"},
    Bad{"a=0..7", "!a", 1, "'!' needs a bool; compare the integer with 0"},
    Bad{"a=0..7", "9223372036854775808", 1, "integer does not fit 64 bits"},
    Bad{"a=0..7", "a / 2", 3, "expected an operator, found '/'"},
    Bad{"a=0..7", "3a", 2, "a name starts right after an integer"}));
// clang-format on

TEST(Variables, AreReadOrRefused) {
  const auto v = variables(" a = 0..7 , b=-3..-1,p=bool");
  ASSERT_EQ(v.size(), 3u);
  EXPECT_EQ(v[1].name, "b");
  EXPECT_EQ(v[1].vmin, -3);
  EXPECT_EQ(v[1].vmax, -1);
  EXPECT_TRUE(v[2].is_bool);
  for (std::string_view bad :
       {"a", "a=", "a=0", "a=0..", "a=3..0", "a=0..7,", "a=0..7,a=0..1", "1=0..7", "a=int",
        "a=0..7 b=0..1", "max=0..7", "a=0..9223372036854775808"})
    EXPECT_TRUE(std::holds_alternative<ExpressionError>(parse_variables(bad))) << bad;
}
TEST(Nesting, IsLimited) {
  const auto r = simplify_text({}, std::string(100000, '(') + "1" + std::string(100000, ')'));
  ASSERT_TRUE(std::holds_alternative<ExpressionError>(r));
  EXPECT_EQ(std::get<ExpressionError>(r).message, "nested too deeply");
  const auto minus = simplify_text({}, std::string(100000, '!') + "true");
  EXPECT_TRUE(std::holds_alternative<ExpressionError>(minus));
}
TEST(Length, IsNot) {
  std::string sum = "a", both = "a < 3";
  for (int i = 0; i < 3000; i++) sum += " + a", both += " & a < 5";
  EXPECT_EQ(run("a=0..7", sum).simplified, "a * 3001");
  EXPECT_EQ(run("a=0..7", both).ops_after, 1);
}

// Random text, written by an independent writer with more parentheses than needed.
std::string random_text(Expressions& e, bool is_bool, int depth) {
  const auto sub = [&](bool b) { return random_text(e, b, depth - 1); };
  if (depth <= 0 || e.below(6) == 0) {
    if (is_bool)
      return std::initializer_list<const char*>{"p", "q", "true", "false"}.begin()[e.below(4)];
    if (e.coin()) return std::to_string(e.between(-9, 20));
    return std::string(1, "abcd"[e.below(4)]);
  }
  if (is_bool) {
    static constexpr const char* compares[] = {"<", "<=", ">", ">=", "==", "!="};
    static constexpr const char* joins[] = {"&", "|", "^", "==", "!="};
    switch (e.below(4)) {
      case 0: return "!(" + sub(true) + ")";
      case 1: return "(" + sub(true) + ") " + joins[e.below(5)] + " (" + sub(true) + ")";
      default: return "(" + sub(false) + ") " + compares[e.below(6)] + " (" + sub(false) + ")";
    }
  }
  static constexpr const char* two[] = {"+", "-", "*", "//", "%", "+", "-", "&", "|", "^"};
  switch (e.below(9)) {
    case 0: return "-(" + sub(false) + ")";
    case 1: return "where(" + sub(true) + ", " + sub(false) + ", " + sub(false) + ")";
    case 2: return (e.coin() ? "min(" : "max(") + sub(false) + ", " + sub(false) + ")";
    case 3: return "(" + sub(true) + ") + (" + sub(e.coin()) + ")";
    case 4:
      return "(" + sub(false) + ") " + (e.coin() ? "//" : "%") + " " +
             std::to_string(e.between(1, 12));
    default: return "(" + sub(false) + ") " + two[e.below(10)] + " (" + sub(false) + ")";
  }
}

class RandomTexts : public ::testing::TestWithParam<uint64_t> {};
TEST_P(RandomTexts, KeepTheirValueAndDoNotGrow) {
  const auto vars = variables("a=0..7,b=-3..3,c=0..63,d=-20..-5,p=bool,q=bool");
  Expressions e(GetParam());
  int compared = 0;
  for (int i = 0; i < 400; i++) {
    const std::string text = random_text(e, e.coin(), 1 + static_cast<int>(e.below(7)));
    const auto result = simplify_text(vars, text);
    if (std::holds_alternative<ExpressionError>(result)) continue;  // a constant division by zero
    const SimplifyResult& r = std::get<SimplifyResult>(result);
    ASSERT_LE(r.ops_after, r.ops_before) << text << "\n" << r.simplified;

    Arena arena;
    Arena::Scope scope(arena);
    const auto before = parse_expression(vars, text), after = parse_expression(vars, r.simplified);
    ASSERT_TRUE(std::holds_alternative<ParsedExpression>(after)) << text << "\n" << r.simplified;
    ASSERT_EQ(std::get<ParsedExpression>(after).ops, r.ops_after) << r.simplified;
    const UOp u = std::get<ParsedExpression>(before).root,
              v = std::get<ParsedExpression>(after).root;
    for (int k = 0; k < 6; k++) {
      const Assignment a = e.values(u);
      const auto want = evaluate(u, a);
      if (!want) continue;
      const auto got = evaluate(v, a);
      ASSERT_TRUE(got && got->whole == want->whole) << text << "\n" << r.simplified;
      ASSERT_GE(want->whole, r.vmin) << text;
      ASSERT_LE(want->whole, r.vmax) << text;
      compared++;
    }
    const auto again = simplify_text(vars, r.simplified);
    ASSERT_TRUE(std::holds_alternative<SimplifyResult>(again)) << r.simplified;
    ASSERT_EQ(std::get<SimplifyResult>(again).simplified, r.simplified) << text;
  }
  EXPECT_GT(compared, 1000);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomTexts, ::testing::Range<uint64_t>(1, 9));

TEST(Garbage, IsRefusedNotCrashedOn) {
  const auto vars = variables("a=0..7,p=bool");
  static constexpr std::string_view alphabet = "ap019+-*/%()<>=!&|^, minaxwhertru";
  Expressions e(5);
  int refused = 0;
  for (int i = 0; i < 20000; i++) {
    std::string text;
    for (uint64_t n = e.below(24); n > 0; n--) text += alphabet[e.below(alphabet.size())];
    const auto r = simplify_text(vars, text);
    if (const auto* error = std::get_if<ExpressionError>(&r)) {
      refused++;
      ASSERT_GE(error->column, 1) << text;
      ASSERT_LE(error->column, static_cast<int>(text.size()) + 1) << text;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace beamline
