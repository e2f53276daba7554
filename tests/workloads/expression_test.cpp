// The compute language: precedence, printing, and mistakes with their positions.
#include "workloads/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "workloads/number.h"

namespace beamline::workloads {
namespace {

std::string bracketed(const std::string& text) {
  const ParsedProgram p = parse_expression(SourceText(text));
  if (!p.errors.empty()) return "error: " + p.errors[0].message;
  return print(p.program, p.program.statements[0].values[0]);
}

TEST(Expression, Precedence) {
  const std::pair<const char*, const char*> cases[] = {
      {"a + b * c", "(a + (b * c))"},
      {"a * b + c", "((a * b) + c)"},
      {"a - b - c", "((a - b) - c)"},
      {"a / b * c // d % e @ f", "(((((a / b) * c) // d) % e) @ f)"},
      {"a + b @ c", "(a + (b @ c))"},
      {"a ** b ** c", "(a ** (b ** c))"},
      {"-a ** b", "(-(a ** b))"},
      {"a ** -b", "(a ** (-b))"},
      {"2 ** -1 * 3", "((2 ** (-1)) * 3)"},
      {"-a * b", "((-a) * b)"},
      {"--a", "(-(-a))"},
      {"~a & b", "((~a) & b)"},
      {"-~a", "(-(~a))"},
      {"a & b | c ^ d", "((a & b) | (c ^ d))"},
      {"a | b ^ c & d", "(a | (b ^ (c & d)))"},
      {"a & b + c", "(a & (b + c))"},
      {"a < b + c", "(a < (b + c))"},
      {"a | b == c", "((a | b) == c)"},  // Python's trap: comparisons are looser than |
      {"a < b & c", "(a < (b & c))"},
      {"(a + b) * c", "((a + b) * c)"},
      {"a[i] ** 2", "(a[i] ** 2)"},
      {"-a[0]", "(-a[0])"},
      {"f(a)[0][1]", "f(a)[0][1]"},
      {"a @ b[..., newaxis]", "(a @ b[..., newaxis])"},
      {"x[1:2, ::3, :, a:, :-1, 1:2:3]", "x[1:2, ::3, :, a:, :(-1), 1:2:3]"},
      {"f(a, [1, 2], k=3, s=\"t\")", "f(a, [1, 2], k=3, s=\"t\")"},
      {"f()", "f()"},
      {"f(k=1,)", "f(k=1)"},
      {"[[0, 1], [2, 3],]", "[[0, 1], [2, 3]]"},
      {"1_000 + 0x1F", "(1000 + 31)"},
      {"1.5e-3 + .5 + 5.", "((0.0015 + 0.5) + 5.0)"},
      {"inf + nan", "(inf + nan)"},
      {"true != false", "(true != false)"},
      {"none", "none"},
      {"a +\tb # comment", "(a + b)"},
      {"f(a,\n  b)", "f(a, b)"},
      {"1e400", "error: number '1e400' is out of range; infinity is 'inf'"},
      {"a < b < c", "error: comparisons cannot be chained"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(bracketed(text), expected) << text;
    if (std::string(expected).starts_with("error")) continue;
    EXPECT_EQ(bracketed(expected), expected) << "printed text reads back";
  }
}

TEST(Expression, ProgramsPrintBack) {
  const std::string text =
      "h = matmul(a, b) + bias  # fused\n\na, b = split(h, 2, axis=1)\nreturn gelu(a), b * 2.5\n";
  const ParsedProgram p = parse_program(SourceText(text));
  ASSERT_TRUE(p.errors.empty());
  const std::string printed = print(p.program);
  EXPECT_EQ(printed,
            "h = (matmul(a, b) + bias)\na, b = split(h, 2, axis=1)\nreturn gelu(a), (b * 2.5)\n");
  const ParsedProgram again = parse_program(SourceText(printed));
  ASSERT_TRUE(again.errors.empty());
  EXPECT_EQ(print(again.program), printed);
}

struct Mistake {
  const char* text;
  int line, column;
  const char* message;
};
TEST(Expression, Mistakes) {
  const Mistake cases[] = {
      {"", 1, 1, "no 'return'"},
      {"a = 1", 1, 6, "no 'return'"},
      {"return", 1, 7, "'return' without a value"},
      {"return a +", 1, 11, "unexpected end of text"},
      {"return a +\nb", 1, 11, "unexpected end of line"},
      {"return a b", 1, 10, "unexpected 'b'"},
      {"x = (a\nreturn x", 2, 1, "unexpected 'return'"},
      {"return f(a", 1, 9, "'(' is never closed"},
      {"return [a, b", 1, 8, "'[' is never closed"},
      {"return f(a]", 1, 11, "unexpected ']'"},
      {"return a]", 1, 9, "unexpected ']'"},
      {"return a[]", 1, 10, "unexpected ']'"},
      {"return a[1:2:3:4]", 1, 15, "unexpected ':'"},
      {"return 2x", 1, 8, "malformed number '2x'"},
      {"return 007", 1, 8, "leading zeros"},
      {"return 1__0", 1, 8, "malformed number '1__0'"},
      {"return 9223372036854775808", 1, 8, "does not fit 64 bits"},
      {"return a $ b", 1, 10, "unexpected character '$'"},
      {"return \"abc", 1, 8, "string is not closed"},
      {"return a.b", 1, 9, "unexpected character '.'"},
      {"return a = b", 1, 10, "unexpected '='"},
      {"return +a", 1, 8, "unexpected '+'"},
      {"return f(k=1, a)", 1, 15, "positional argument after a keyword"},
      {"return f(k=1, k=2)", 1, 15, "keyword 'k' is given twice"},
      {"return (a, b)", 1, 10, "unexpected ','"},
      {"return f(a)(b)", 1, 12, "only a function's name can be called"},
      {"return a == b == c", 1, 15, "comparisons cannot be chained"},
      {"inf = 3\nreturn 1", 1, 1, "'inf' is reserved"},
      {"f32 = 3\nreturn 1", 1, 1, "'f32' is reserved"},
      {"a, a = split(x, 2, 0)\nreturn a", 1, 4, "'a' is assigned twice"},
      {"f(x)\nreturn x", 1, 2, "unexpected '('"},
      {"a + b = 3\nreturn a", 1, 3, "unexpected '+'"},
      {"3 = a\nreturn a", 1, 1, "unexpected '3'"},
      {"return a\nreturn b", 2, 1, "statement after 'return'"},
      {"  x = 1 +\n  return x", 1, 10, "unexpected end of line"},
      {"return 'caf\xc3\xa9' $", 1, 15, "unexpected character '$'"},
      {"return a\x01", 1, 9, "unexpected character 0x01"},
  };
  for (const Mistake& m : cases) {
    const ParsedProgram p = parse_program(SourceText(m.text));
    ASSERT_FALSE(p.errors.empty()) << m.text;
    EXPECT_EQ(p.errors[0].at, (SourcePos{m.line, m.column}))
        << m.text << ": " << p.errors[0].message;
    EXPECT_NE(p.errors[0].message.find(m.message), std::string::npos)
        << m.text << ": " << p.errors[0].message;
  }
}

TEST(Expression, GoesOnAfterAMistake) {
  const ParsedProgram p = parse_program(SourceText("a = 1 +\nb = (2\nc = ]\nreturn a"));
  ASSERT_EQ(p.errors.size(), 2U);
  EXPECT_EQ(p.errors[0].at, (SourcePos{1, 8}));
  EXPECT_EQ(p.errors[1].at, (SourcePos{3, 1}));  // the open bracket swallows the line's end
}

TEST(Expression, DepthIsBoundedLengthIsNot) {
  const std::string deep = "return " + std::string(5000, '(') + "a" + std::string(5000, ')');
  ASSERT_EQ(parse_program(SourceText(deep)).errors.size(), 1U);
  EXPECT_EQ(parse_program(SourceText(deep)).errors[0].message, "nested too deeply");
  EXPECT_EQ(parse_program(SourceText("return " + std::string(5000, '-') + "a")).errors[0].message,
            "nested too deeply");
  std::string powers = "return a", chain = "return a";
  for (int i = 0; i < 5000; i++) powers += " ** a", chain += " + a";
  EXPECT_EQ(parse_program(SourceText(powers)).errors[0].message, "nested too deeply");
  EXPECT_TRUE(parse_program(SourceText(chain)).errors.empty());
  std::string huge = "return a";
  for (int i = 0; i < 60000; i++) huge += "+a";
  EXPECT_EQ(parse_program(SourceText(huge)).errors[0].message, "program is too long");
}

TEST(Number, ArithmeticIsPythons) {
  const std::pair<const char*, double> cases[] = {{"7 // 2", 3},
                                                  {"-7 // 2", -4},
                                                  {"7 // -2", -4},
                                                  {"-7 % 3", 2},
                                                  {"7 % -3", -2},
                                                  {"2 ** 10", 1024},
                                                  {"2 ** -1", 0.5},
                                                  {"7 / 2", 3.5},
                                                  {"-7.5 % 2", 0.5},
                                                  {"7 & 3 | 8", 11},
                                                  {"~5", -6},
                                                  {"5 ^ 3", 6},
                                                  {"(1 < 2) + 1", 2},
                                                  {"M * 2 - N", 5},
                                                  {"0 ** 0", 1},
                                                  {"(-1) ** 3", -1},
                                                  {"-9223372036854775807 - 1", -0x1p63},
                                                  {"(-9223372036854775807 - 1) % -1", 0},
                                                  {"true & false", 0},
                                                  {"1.5 // 0.5", 3}};
  for (const auto& [text, expected] : cases) {
    const ParsedProgram p = parse_expression(SourceText(text));
    ASSERT_TRUE(p.errors.empty()) << text;
    const auto r = evaluate(p.program, p.program.statements[0].values[0], {{"M", 4}, {"N", 3}});
    ASSERT_TRUE(std::holds_alternative<Number>(r))
        << text << ": " << std::get<Diagnostic>(r).message;
    EXPECT_EQ(std::get<Number>(r).value(), expected) << text;
  }
}

TEST(Number, Refusals) {
  const Mistake cases[] = {{"1 // 0", 1, 3, "division by zero"},
                           {"2 ** 63", 1, 3, "does not fit 64 bits"},
                           {"9223372036854775807 + 1", 1, 21, "does not fit 64 bits"},
                           {"4611686018427387904 * 2", 1, 21, "does not fit 64 bits"},
                           {"(-9223372036854775807 - 1) // -1", 1, 28, "does not fit 64 bits"},
                           {"-(-9223372036854775807 - 1)", 1, 1, "does not fit 64 bits"},
                           {"1.5 & 1", 1, 5, "'&' needs integers"},
                           {"~1.5", 1, 1, "'~' needs integers"},
                           {"2 @ 3", 1, 3, "'@' needs tensors"},
                           {"MM + 1", 1, 1, "unknown param 'MM'"},
                           {"f(1)", 1, 1, "'f(1)' has no place here"},
                           {"[1]", 1, 1, "has no place here"}};
  for (const Mistake& m : cases) {
    const ParsedProgram p = parse_expression(SourceText(m.text));
    ASSERT_TRUE(p.errors.empty()) << m.text;
    const auto r = evaluate(p.program, p.program.statements[0].values[0], {{"M", 4}, {"N", 3}});
    ASSERT_TRUE(std::holds_alternative<Diagnostic>(r)) << m.text;
    const Diagnostic& d = std::get<Diagnostic>(r);
    EXPECT_EQ(d.at, (SourcePos{m.line, m.column})) << m.text << ": " << d.message;
    EXPECT_NE(d.message.find(m.message), std::string::npos) << m.text << ": " << d.message;
  }
}

}  // namespace
}  // namespace beamline::workloads
