// Reader of `ir simplify`'s grammar: recursive descent, one function a level of precedence.
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "engine/rules/rules.h"
#include "harness/commands/simplify_expression.h"

namespace beamline {
namespace {

struct Failure {
  ExpressionError error;
};
constexpr int max_depth = 200;

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  [[noreturn]] void fail(std::string message, size_t at) const {
    throw Failure{{static_cast<int>(at) + 1, std::move(message)}};
  }
  [[noreturn]] void fail(std::string message) const { fail(std::move(message), at_); }
  void skip() {
    while (at_ < text_.size() && is_blank(text_[at_])) at_++;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("expected '{}'{}", token, found()));
  }
  std::string found() {
    if (done()) return ", found the end";
    return fmt::format(", found '{}'", text_.substr(at_, 1));
  }
  std::string_view name() {
    skip();
    const size_t from = at_;
    while (at_ < text_.size() && (starts_name(text_[at_]) || (at_ > from && is_digit(text_[at_]))))
      at_++;
    return text_.substr(from, at_ - from);
  }
  int64_t integer(bool negative) {
    skip();
    const size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) at_++;
    const std::string digits = (negative ? "-" : "") + std::string(text_.substr(from, at_ - from));
    int64_t v = 0;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (at_ == from) fail("expected an integer" + found());
    if (ec != std::errc()) fail("integer does not fit 64 bits", from);
    if (at_ < text_.size() && starts_name(text_[at_])) fail("a name starts right after an integer");
    return v;
  }
  size_t at() {
    skip();
    return at_;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::span<const ExpressionVariable> variables, std::string_view text)
      : variables_(variables), in_(text) {}

  ParsedExpression run() {
    const UOp u = either();
    if (!in_.done()) in_.fail("expected an operator" + in_.found());
    return {u, ops_};
  }

 private:
  static bool is_bool(UOp u) { return u.dtype() == DType::Bool; }
  static UOp number(UOp u) { return is_bool(u) ? cast(u, DType::WeakInt) : u; }
  UOp bitwise(Op op, UOp a, UOp b) {
    ops_++;
    return is_bool(a) && is_bool(b) ? alu(op, {a, b}) : alu(op, {number(a), number(b)});
  }
  UOp either() {
    UOp u = exclusive();
    while (in_.take("|")) u = bitwise(Op::OR, u, exclusive());
    return u;
  }
  UOp exclusive() {
    UOp u = both();
    while (in_.take("^")) u = bitwise(Op::XOR, u, both());
    return u;
  }
  UOp both() {
    UOp u = comparison();
    while (in_.take("&")) u = bitwise(Op::AND, u, comparison());
    return u;
  }
  UOp comparison() {
    UOp u = sum();
    for (;;) {
      Op op = Op::CMPLT;
      bool swapped = false, negated = false;
      if (in_.take("<="))
        swapped = negated = true;  // a <= b is !(b < a)
      else if (in_.take("<"))
        swapped = false;
      else if (in_.take(">="))
        negated = true;
      else if (in_.take(">"))
        swapped = true;
      else if (in_.take("=="))
        op = Op::CMPEQ;
      else if (in_.take("!="))
        op = Op::CMPNE;
      else
        return u;
      ops_++;
      UOp v = sum();
      const bool equality = op != Op::CMPLT && is_bool(u) && is_bool(v);
      if (!equality) u = number(u), v = number(v);
      u = swapped ? v < u : alu(op, {u, v});
      if (negated) u = logical_not(u);
    }
  }
  UOp sum() {
    UOp u = product();
    for (;;) {
      if (in_.take("+")) {
        ops_++;
        const UOp v = product();
        u = is_bool(u) && is_bool(v) ? u | v : number(u) + number(v);
      } else if (in_.take("-")) {
        ops_++;
        u = number(u) - number(product());
      } else {
        return u;
      }
    }
  }
  UOp product() {
    UOp u = unary();
    for (;;) {
      const size_t at = in_.at();
      if (in_.take("*")) {
        ops_++;
        const UOp v = unary();
        u = is_bool(u) && is_bool(v) ? u & v : number(u) * number(v);
        continue;
      }
      const bool divides = in_.take("//");
      if (!divides && !in_.take("%")) return u;
      ops_++;
      const UOp v = number(unary());
      if (simplify(v).is_const(0)) in_.fail("division by zero", at);
      u = divides ? number(u) / v : number(u) % v;
    }
  }
  UOp unary() {
    if (++depth_ > max_depth) in_.fail("nested too deeply");
    const UOp u = unary_inside();
    depth_--;
    return u;
  }
  UOp unary_inside() {
    if (in_.take("-")) {
      if (is_digit(in_.peek())) return iconst(in_.integer(/*negative=*/true));
      ops_++;
      return number(unary()) * iconst(-1);
    }
    if (in_.peek() == '!') {
      const size_t at = in_.at();
      in_.take("!");
      ops_++;
      const UOp u = unary();
      if (!is_bool(u)) in_.fail("'!' needs a bool; compare the integer with 0", at);
      return logical_not(u);
    }
    return primary();
  }
  UOp primary() {
    if (in_.take("(")) {
      const UOp u = either();
      in_.expect(")");
      return u;
    }
    if (is_digit(in_.peek())) return iconst(in_.integer(/*negative=*/false));
    const size_t at = in_.at();
    const std::string_view name = in_.name();
    if (name.empty()) in_.fail("expected a value" + in_.found());
    if (in_.peek() == '(') return call(name, at);
    if (name == "true" || name == "false") return bool_const(name == "true");
    for (const ExpressionVariable& v : variables_)
      if (v.name == name)
        return variable(v.name, v.vmin, v.vmax, v.is_bool ? DType::Bool : DType::WeakInt);
    in_.fail(fmt::format("unknown name '{}'", name), at);
  }
  UOp call(std::string_view name, size_t at) {
    const size_t arity = name == "where" ? 3 : name == "min" || name == "max" ? 2 : 0;
    if (arity == 0) in_.fail(fmt::format("unknown function '{}'", name), at);
    in_.expect("(");
    UOp a[3];
    size_t condition_at = in_.at();
    for (size_t i = 0; i < arity; i++) {
      if (i > 0) in_.expect(",");
      a[i] = either();
    }
    in_.expect(")");
    ops_++;
    if (arity == 3) {
      if (!is_bool(a[0])) in_.fail("the condition of where is not a bool", condition_at);
      return is_bool(a[1]) && is_bool(a[2]) ? where(a[0], a[1], a[2])
                                            : where(a[0], number(a[1]), number(a[2]));
    }
    if (is_bool(a[0]) && is_bool(a[1])) return name == "max" ? a[0] | a[1] : a[0] & a[1];
    if (name == "max") return maximum(number(a[0]), number(a[1]));
    const UOp minus = iconst(-1);
    return maximum(number(a[0]) * minus, number(a[1]) * minus) * minus;
  }

  std::span<const ExpressionVariable> variables_;
  Reader in_;
  int ops_ = 0;
  int depth_ = 0;
};

ExpressionVariable read_variable(Reader& in) {
  ExpressionVariable v;
  const size_t at = in.at();
  v.name = in.name();
  if (v.name.empty()) in.fail("expected the name of a variable" + in.found());
  for (std::string_view word : {"true", "false", "min", "max", "where", "bool"})
    if (v.name == word) in.fail(fmt::format("'{}' is no name for a variable", v.name), at);
  in.expect("=");
  if (starts_name(in.peek())) {
    const size_t type_at = in.at();
    if (in.name() != "bool") in.fail("expected bounds 'lo..hi' or 'bool'", type_at);
    v.is_bool = true, v.vmax = 1;
    return v;
  }
  const size_t bounds_at = in.at();
  v.vmin = in.integer(in.take("-"));
  in.expect("..");
  v.vmax = in.integer(in.take("-"));
  if (v.vmin > v.vmax) in.fail(fmt::format("bounds {}..{} are empty", v.vmin, v.vmax), bounds_at);
  return v;
}

}  // namespace

std::variant<std::vector<ExpressionVariable>, ExpressionError> parse_variables(
    std::string_view text) {
  std::vector<ExpressionVariable> out;
  Reader in(text);
  try {
    if (in.done()) return out;
    do {
      const size_t at = in.at();
      ExpressionVariable v = read_variable(in);
      for (const ExpressionVariable& o : out)
        if (o.name == v.name) in.fail(fmt::format("'{}' is given twice", v.name), at);
      out.push_back(std::move(v));
    } while (in.take(","));
    if (!in.done()) in.fail("expected ','" + in.found());
  } catch (const Failure& f) {
    return f.error;
  }
  return out;
}

std::variant<ParsedExpression, ExpressionError> parse_expression(
    std::span<const ExpressionVariable> variables, std::string_view text) {
  try {
    return Parser(variables, text).run();
  } catch (const Failure& f) {
    return f.error;
  }
}

}  // namespace beamline
