#include "workloads/expression.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/ir/dtype.h"
#include "workloads/tokens.h"

namespace beamline::workloads {
namespace {

using Kind = Token::Kind;

constexpr int deepest = 200;  // brackets and prefix operators; the parser recurses on these only
constexpr size_t most_nodes = 50'000;

struct Level {
  std::string_view symbol;
  Operator op;
  int level;
};
// Python's, loosest first; unary and power follow in code.
constexpr Level levels[] = {
    {"<", Operator::Lt, 0},    {"<=", Operator::Le, 0},       {">", Operator::Gt, 0},
    {">=", Operator::Ge, 0},   {"==", Operator::Eq, 0},       {"!=", Operator::Ne, 0},
    {"|", Operator::Or, 1},    {"^", Operator::Xor, 2},       {"&", Operator::And, 3},
    {"+", Operator::Add, 4},   {"-", Operator::Sub, 4},       {"*", Operator::Mul, 5},
    {"/", Operator::Div, 5},   {"//", Operator::FloorDiv, 5}, {"%", Operator::Mod, 5},
    {"@", Operator::MatMul, 5}};
constexpr int tightest = 5;

constexpr std::array<std::string_view, 19> operator_texts = {
    "|", "^", "&", "<",  "<=", ">", ">=", "==", "!=", "+",
    "-", "*", "/", "//", "%",  "@", "**", "-",  "~"};

struct Stop {};  // unwinds to the statement after its first mistake; never leaves this file

class Parser {
 public:
  explicit Parser(const SourceText& text) : tokens_(tokenize(text)) {}

  ParsedProgram program() {
    bool returned = false;
    while (skip_newlines(), peek().kind != Kind::End) {
      const SourcePos at = peek().at;
      try {
        if (returned) fail(at, "statement after 'return'", "nothing after it");
        returned = peek().name("return");
        statement();
        if (peek().kind != Kind::End) expect_newline();
      } catch (Stop) {
        open_.clear(), depth_ = 0;
        while (peek().kind != Kind::Newline && peek().kind != Kind::End) next_++;
        // One mistake after the return is enough: the rest would repeat it.
        if (returned) break;
      }
    }
    if (out_.errors.empty() && !returned)
      out_.errors.push_back(
          {peek().at, "no 'return'", "'return' and one or more values as the last line"});
    return std::move(out_);
  }

  ParsedProgram single() {
    try {
      skip_newlines();
      Statement s;
      s.at = peek().at;
      s.values = {expression()};
      finish(std::move(s), 0);
      skip_newlines();
      if (peek().kind != Kind::End) unexpected("an operator or the end");
    } catch (Stop) {
    }
    return std::move(out_);
  }

  ParsedType type() {
    ParsedType t;
    t.at = peek().at;
    try {
      if (peek().kind != Kind::Name) unexpected("a dtype and dims, e.g. \"f32[M, K]\"");
      t.dtype = take().text;
      Statement s;
      s.at = peek().at;
      if (peek().is("[")) {
        open();
        while (!peek().is("]")) {
          s.values.push_back(expression());
          if (!peek().is("]")) expect(",", "',' or ']'");
        }
        close("]");
      }
      finish(std::move(s), 0);
      if (peek().kind != Kind::End) unexpected("the end");
    } catch (Stop) {
    }
    t.dims = std::move(out_.program);
    t.errors = std::move(out_.errors);
    return t;
  }

 private:
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[std::min(next_++, tokens_.size() - 1)]; }
  void skip_newlines() {
    while (peek().kind == Kind::Newline) next_++;
  }

  [[noreturn]] void fail(SourcePos at, std::string message, std::string expected = "") {
    out_.errors.push_back({at, std::move(message), std::move(expected)});
    throw Stop{};
  }
  [[noreturn]] void unexpected(std::string expected) {
    const Token& t = peek();
    if (t.kind == Kind::Bad) fail(t.at, t.text);
    if (t.kind == Kind::End && !open_.empty())
      fail(open_.back()->at, fmt::format("'{}' is never closed", open_.back()->text));
    fail(t.at, "unexpected " + describe(t), std::move(expected));
  }
  void expect(std::string_view symbol, const std::string& expected) {
    if (!peek().is(symbol)) unexpected(expected);
    next_++;
  }
  void expect_newline() {
    if (peek().kind != Kind::Newline) unexpected("an operator or the end of the line");
    next_++;
  }
  void open() {
    if (++depth_ > deepest)
      fail(peek().at, "nested too deeply", fmt::format("at most {} levels", deepest));
    open_.push_back(&take());
  }
  void close(std::string_view symbol) {
    expect(symbol, fmt::format("',' or '{}'", symbol));
    open_.pop_back(), depth_--;
  }

  int add(Expr e) {
    if (out_.program.exprs.size() >= most_nodes)
      fail(e.at, "program is too long", fmt::format("at most {} nodes", most_nodes));
    out_.program.exprs.push_back(std::move(e));
    return static_cast<int>(out_.program.exprs.size()) - 1;
  }
  int leaf(ExprKind kind, const Token& t) {
    Expr e;
    e.kind = kind, e.at = t.at, e.integer = t.integer, e.number = t.number, e.text = t.text;
    return add(std::move(e));
  }
  void finish(Statement s, int first) {
    s.first = first, s.last = static_cast<int>(out_.program.exprs.size()) - 1;
    out_.program.statements.push_back(std::move(s));
  }

  void statement() {
    const int first = static_cast<int>(out_.program.exprs.size());
    Statement s;
    s.at = peek().at;
    if (peek().name("return")) {
      next_++;
      if (peek().kind == Kind::Newline || peek().kind == Kind::End)
        fail(peek().at, "'return' without a value", "one or more values");
      s.values.push_back(expression());
      while (peek().is(",")) {
        next_++;
        s.values.push_back(expression());
      }
      return finish(std::move(s), first);
    }
    do {
      const Token& t = peek();
      if (t.kind != Kind::Name || (!s.targets.empty() && peek(1).is("(")))
        unexpected("'name = expression' or 'return'");
      if (is_reserved(t.text))
        fail(t.at, fmt::format("'{}' is reserved and cannot be assigned", t.text), "another name");
      for (const AssignedName& o : s.targets)
        if (o.name == t.text)
          fail(t.at, fmt::format("'{}' is assigned twice in one statement", t.text),
               "different names");
      s.targets.push_back({t.text, t.at});
      next_++;
    } while (peek().is(",") && ++next_ > 0);
    if (!peek().is("=")) unexpected("'=' after the name");
    next_++;
    s.values = {expression()};
    finish(std::move(s), first);
  }

  int expression() { return binary(0); }

  int binary(int level) {
    if (level > tightest) return unary();
    int left = binary(level + 1);
    for (bool compared = false;;) {
      const Token& t = peek();
      const auto* l = std::ranges::find_if(
          levels, [&](const Level& x) { return x.level == level && t.is(x.symbol); });
      if (l == std::end(levels)) return left;
      if (level == 0 && compared)
        fail(t.at, "comparisons cannot be chained", "'(a < b) & (b < c)'");
      compared = true;
      next_++;
      const int right = binary(level + 1);
      Expr e;
      e.kind = ExprKind::Binary, e.op = l->op, e.at = t.at, e.args = {left, right};
      left = add(std::move(e));
    }
  }

  int unary() {
    const Token& t = peek();
    if (!t.is("-") && !t.is("~")) return power();
    next_++;
    if (++depth_ > deepest)
      fail(t.at, "nested too deeply", fmt::format("at most {} levels", deepest));
    Expr e;
    e.kind = ExprKind::Unary, e.op = t.is("-") ? Operator::Neg : Operator::Invert, e.at = t.at;
    e.args = {unary()};
    depth_--;
    return add(std::move(e));
  }

  int power() {
    const int base = postfix();
    const Token& t = peek();
    if (!t.is("**")) return base;
    next_++;
    if (++depth_ > deepest)
      fail(t.at, "nested too deeply", fmt::format("at most {} levels", deepest));
    Expr e;
    e.kind = ExprKind::Binary, e.op = Operator::Pow, e.at = t.at;
    e.args = {base, unary()};
    depth_--;
    return add(std::move(e));
  }

  int postfix() {
    int value = primary();
    while (peek().is("[")) {
      Expr e;
      e.kind = ExprKind::Subscript, e.at = peek().at, e.args = {value};
      open();
      if (peek().is("]")) unexpected("an index");
      while (!peek().is("]")) {
        e.args.push_back(item());
        if (!peek().is("]")) expect(",", "',' or ']'");
      }
      close("]");
      value = add(std::move(e));
    }
    if (peek().is("(")) fail(peek().at, "only a function's name can be called", "an operator");
    return value;
  }

  int item() {
    const Token& t = peek();
    if (t.is("...")) return next_++, leaf(ExprKind::Ellipsis, t);
    Expr e;
    e.kind = ExprKind::Slice, e.at = t.at, e.args = {-1, -1, -1};
    const auto ends = [&] { return peek().is(":") || peek().is(",") || peek().is("]"); };
    if (!ends()) e.args[0] = expression();
    if (!peek().is(":")) return e.args[0] >= 0 ? e.args[0] : (unexpected("an index"), -1);
    for (size_t i = 1; i < 3 && peek().is(":"); i++) {
      next_++;
      if (!ends()) e.args[i] = expression();
    }
    if (peek().is(":")) unexpected("at most 'begin:end:step'");
    return add(std::move(e));
  }

  int call(const Token& name) {
    Expr e;
    e.kind = ExprKind::Call, e.at = name.at, e.text = name.text;
    open();
    while (!peek().is(")")) {
      if (peek().kind == Kind::Name && peek(1).is("=")) {
        Keyword k{peek().text, peek().at, -1};
        for (const Keyword& o : e.keywords)
          if (o.name == k.name)
            fail(k.at, fmt::format("keyword '{}' is given twice", k.name), "it once");
        next_ += 2;
        k.value = expression();
        e.keywords.push_back(std::move(k));
      } else {
        if (!e.keywords.empty() && peek().kind != Kind::Bad)
          fail(peek().at, "positional argument after a keyword", "'name=value'");
        e.args.push_back(expression());
      }
      if (!peek().is(")")) expect(",", "',' or ')'");
    }
    close(")");
    return add(std::move(e));
  }

  int primary() {
    const Token& t = peek();
    switch (t.kind) {
      case Kind::Int: return next_++, leaf(ExprKind::Int, t);
      case Kind::Float: return next_++, leaf(ExprKind::Float, t);
      case Kind::Text: return next_++, leaf(ExprKind::Text, t);
      case Kind::Name: return next_++, name(t);
      default: break;
    }
    if (t.is("(")) {
      open();
      const int value = expression();
      if (peek().is(",")) unexpected("')'; a list is written with '[' and ']'");
      expect(")", "an operator or ')'");
      open_.pop_back(), depth_--;
      return value;
    }
    if (t.is("[")) {
      Expr e;
      e.kind = ExprKind::List, e.at = t.at;
      open();
      while (!peek().is("]")) {
        e.args.push_back(expression());
        if (!peek().is("]")) expect(",", "',' or ']'");
      }
      close("]");
      return add(std::move(e));
    }
    unexpected("a value");
  }

  int name(const Token& t) {
    Token copy = t;
    if (t.text == "true" || t.text == "false")
      return copy.integer = t.text == "true", leaf(ExprKind::Bool, copy);
    if (t.text == "none") return leaf(ExprKind::None, t);
    if (t.text == "newaxis") return leaf(ExprKind::NewAxis, t);
    if (t.text == "inf" || t.text == "nan") {
      copy.number = t.text == "inf" ? HUGE_VAL : NAN;
      return leaf(ExprKind::Float, copy);
    }
    if (t.text == "return")
      fail(t.at, "unexpected 'return'", open_.empty() ? "a value" : "a value or a closing bracket");
    if (peek().is("(")) return call(t);
    return leaf(ExprKind::Name, t);
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
  std::vector<const Token*> open_;  // brackets not closed yet
  ParsedProgram out_;
};

}  // namespace

std::string_view operator_text(Operator op) { return operator_texts[static_cast<size_t>(op)]; }

bool is_reserved(std::string_view name) {
  constexpr std::string_view words[] = {"return", "inf", "nan", "true", "false", "none", "newaxis"};
  return std::ranges::find(words, name) != std::end(words) || dtype_from_name(name).has_value();
}

bool is_identifier(std::string_view s) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !s.empty() && letter(s[0]) &&
         std::ranges::all_of(s, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

ParsedProgram parse_program(const SourceText& text) { return Parser(text).program(); }
ParsedProgram parse_expression(const SourceText& text) { return Parser(text).single(); }
ParsedType parse_type(const SourceText& text) { return Parser(text).type(); }

}  // namespace beamline::workloads
