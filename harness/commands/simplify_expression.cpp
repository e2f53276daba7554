// Printer of `ir simplify`'s grammar, and the command for one expression.
#include "harness/commands/simplify_expression.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/ir/arena.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

// Levels of precedence, loosest first.
enum Level { Or, Xor, And, Compare, Sum, Product, Unary, Atom };

struct Text {
  std::string text;
  Level level = Atom;
  int ops = 0;
  bool is_bool = false;
};

class Printer {
 public:
  Text print(UOp u) {
    if (const auto it = done_.find(u); it != done_.end()) return it->second;
    Text t = print_new(u);
    done_.emplace(u, t);
    return t;
  }

 private:
  struct Signed {
    UOp base;
    int64_t coef;
  };

  static std::string wrapped(const Text& t, Level least) {
    return t.level < least ? "(" + t.text + ")" : t.text;
  }
  // A left-associative operator: the right operand must bind tighter.
  static Text binary(const Text& a, std::string_view op, const Text& b, Level level,
                     bool is_bool = false) {
    return {
        fmt::format("{} {} {}", wrapped(a, level), op, wrapped(b, static_cast<Level>(level + 1))),
        level, a.ops + b.ops + 1, is_bool};
  }
  static Text integer(int64_t v) { return {std::to_string(v), Atom, 0, false}; }
  static bool is_number(UOp u) { return u.dtype() == DType::WeakInt; }
  static Text as_number(const Text& t) {
    return {fmt::format("where({}, 1, 0)", t.text), Atom, t.ops + 1, false};
  }

  Text print_new(UOp u) {
    switch (u.op()) {
      case Op::CONST:
        if (u.dtype() == DType::Bool) return {u.ival() ? "true" : "false", Atom, 0, true};
        return integer(u.ival());
      case Op::PARAM: return {u.param().name, Atom, 0, u.dtype() == DType::Bool};
      case Op::CAST: return print(u.src(0));
      case Op::ADD:
      case Op::SUB: return sum(terms(u));
      case Op::MUL: return u.src(1).is_const() ? sum(terms(u)) : product(u);
      case Op::FLOORDIV: return binary(print(u.src(0)), "//", print(u.src(1)), Product);
      case Op::FLOORMOD: return binary(print(u.src(0)), "%", print(u.src(1)), Product);
      case Op::AND: return chain(u, "&", And);
      case Op::OR: return chain(u, "|", Or);
      case Op::XOR: return chain(u, "^", Xor);
      case Op::MAX: return call("max", {print(u.src(0)), print(u.src(1))});
      case Op::WHERE: return call("where", {print(u.src(0)), print(u.src(1)), print(u.src(2))});
      case Op::CMPLT:
        if (u.src(0).is_const()) return compare(u.src(1), ">", u.src(0));
        return compare(u.src(0), "<", u.src(1));
      case Op::CMPEQ: return compare(u.src(0), "==", u.src(1));
      case Op::CMPNE: {
        const UOp x = u.src(0);
        if (!u.src(1).is_const(1) || u.src(1).dtype() != DType::Bool)
          return compare(x, "!=", u.src(1));
        if (x.op() == Op::CMPLT)
          return x.src(0).is_const() ? compare(x.src(1), "<=", x.src(0))
                                     : compare(x.src(0), ">=", x.src(1));
        const Text t = print(x);
        return {"!" + wrapped(t, Unary), Unary, t.ops + 1, true};
      }
      default: CHECK(!"an op the grammar has no text for"); return {};
    }
  }
  Text compare(UOp a, std::string_view op, UOp b) {
    return binary(print(a), op, print(b), Compare, true);
  }
  static Text call(std::string_view name, std::initializer_list<Text> args) {
    Text r{std::string(name) + "(", Atom, 1, true};
    size_t i = 0;
    for (const Text& t : args) {
      if (i > 0) r.text += ", ";
      r.text += t.text;
      r.ops += t.ops;
      if (!(name == "where" && i == 0)) r.is_bool &= t.is_bool;
      i++;
    }
    r.text += ")";
    return r;
  }
  Text chain(UOp u, std::string_view op, Level level) {
    std::vector<UOp> right;  // along the left spine, without recursion
    UOp left = u;
    for (; left.op() == u.op(); left = left.src(0)) right.push_back(left.src(1));
    Text t = print(left);
    for (; !right.empty(); right.pop_back()) {
      const Text r = print(right.back());
      t = binary(t, op, r, level, t.is_bool && r.is_bool);
    }
    return t;
  }
  Text product(UOp u) {
    std::vector<UOp> right;
    UOp left = u;
    for (; left.op() == Op::MUL && !left.src(1).is_const(); left = left.src(0))
      right.push_back(left.src(1));
    Text t = print(left);
    for (; !right.empty(); right.pop_back()) {
      const Text r = print(right.back());
      t = binary(t, "*", r, Product, t.is_bool && r.is_bool);
    }
    return t;
  }

  // The addends of u, multiples by constants taken apart; constants have the base null.
  static std::vector<Signed> terms(UOp u) {
    std::vector<Signed> out, stack{{u, 1}};
    while (!stack.empty()) {
      const auto [v, coef] = stack.back();
      stack.pop_back();
      int64_t k = 0;
      if (v.op() == Op::ADD || (v.op() == Op::SUB && coef == 1)) {
        stack.push_back({v.src(1), v.op() == Op::SUB ? -coef : coef});
        stack.push_back({v.src(0), coef});
      } else if (v.op() == Op::MUL && v.src(1).is_const() &&
                 !__builtin_mul_overflow(coef, v.src(1).ival(), &k) &&
                 (v.src(0).op() != Op::ADD || v == u)) {
        if (v.src(0).op() == Op::ADD)
          out.push_back({v.src(0), k});
        else
          stack.push_back({v.src(0), k});
      } else if (v.is_const() && is_number(v) && !__builtin_mul_overflow(coef, v.ival(), &k)) {
        out.push_back({UOp(), k});
      } else {
        out.push_back({v, coef});
      }
    }
    return out;
  }

  struct Addend {
    Text text;
    bool minus = false;
  };
  // base * |coef| with its sign; -max(-a, -b) is min(a, b).
  Addend addend(const Signed& s) {
    if (!s.base) {
      if (s.coef == std::numeric_limits<int64_t>::min()) return {integer(s.coef)};
      return {integer(s.coef < 0 ? -s.coef : s.coef), s.coef < 0};
    }
    Text t = print(s.base);
    bool minus = s.coef < 0;
    if (s.base.op() == Op::MAX && minus) {
      const UOp a = simplify(s.base.src(0) * iconst(-1)), b = simplify(s.base.src(1) * iconst(-1));
      const Text least = call("min", {print(a), print(b)});
      if (least.ops <= t.ops) t = least, minus = false;
    }
    if (s.coef == 1 || s.coef == -1) return {t, minus};
    if (s.coef == std::numeric_limits<int64_t>::min())
      return minus ? Addend{binary(t, "*", integer(s.coef), Product)}
                   : Addend{binary(binary(t, "*", integer(-1), Product), "*", integer(s.coef),
                                   Product)};
    return {binary(t, "*", integer(s.coef < 0 ? -s.coef : s.coef), Product), minus};
  }
  Text sum(const std::vector<Signed>& all) {
    std::vector<Addend> parts;
    std::vector<bool> used(all.size());
    for (size_t i = 0; i < all.size(); i++) {
      if (used[i]) continue;
      std::vector<Signed> group{all[i]};  // terms under one factor: (a + b) * 4
      const int64_t k = all[i].coef;
      for (size_t j = i + 1; j < all.size() && all[i].base && k != 1 && k != -1 &&
                             k != std::numeric_limits<int64_t>::min();
           j++)
        if (!used[j] && all[j].base && (all[j].coef == k || all[j].coef == -k))
          group.push_back(all[j]), used[j] = true;
      if (group.size() == 1) {
        parts.push_back(addend(group[0]));
        continue;
      }
      for (Signed& s : group) s.coef = s.coef == k ? 1 : -1;
      parts.push_back({binary(sum(group), "*", integer(k < 0 ? -k : k), Product), k < 0});
    }
    if (parts.size() == 1) return parts[0].minus ? negative(parts[0].text, all) : parts[0].text;
    auto head = std::ranges::find(parts, false, &Addend::minus);
    if (head == parts.end()) head = parts.begin();
    Text t = head->minus ? negated(head->text) : head->text;
    for (auto p = parts.begin(); p != parts.end(); ++p) {
      if (p == head) continue;
      // `bool + bool` would be read as `|`.
      const Text right = !p->minus && t.is_bool && p->text.is_bool ? as_number(p->text) : p->text;
      t = binary(t, p->minus ? "-" : "+", right, Sum);
    }
    return t;
  }
  static Text negated(const Text& t) {
    if (t.level == Atom && t.text[0] >= '0' && t.text[0] <= '9')
      return {"-" + t.text, Atom, 0, false};
    return {"-" + wrapped(t, Unary), Unary, t.ops + 1, false};
  }
  // A lone negative term: x * -3, not -(x * 3).
  Text negative(const Text& t, const std::vector<Signed>& all) {
    if (all.size() == 1 && all[0].base && all[0].coef < -1)
      return binary(print(all[0].base), "*", integer(all[0].coef), Product);
    return negated(t);
  }

  std::unordered_map<UOp, Text, UOpHash> done_;
};

struct Names : Trace {
  std::vector<std::string> names;
  void rewrote(const Rule& rule, UOp, UOp, double) override {
    if (std::ranges::find(names, rule.name) == names.end()) names.emplace_back(rule.name);
  }
};

std::string_view trimmed(std::string_view s) {
  const size_t from = s.find_first_not_of(" \t\r\n"), to = s.find_last_not_of(" \t\r\n");
  return from == std::string_view::npos ? std::string_view{} : s.substr(from, to - from + 1);
}

}  // namespace

std::string print_expression(UOp u, int* ops) {
  const Text t = Printer().print(u);
  if (ops) *ops = t.ops;
  return t.text;
}

std::variant<SimplifyResult, ExpressionError> simplify_text(
    std::span<const ExpressionVariable> variables, std::string_view expr) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto parsed = parse_expression(variables, expr);
  if (const auto* error = std::get_if<ExpressionError>(&parsed)) return *error;
  const auto& [root, ops] = std::get<ParsedExpression>(parsed);

  SimplifyResult r;
  r.expr = expr;
  r.ops_before = ops;
  Names fired;
  const UOp u = simplify(root, sym_matcher(), &fired);
  r.simplified = print_expression(u, &r.ops_after);
  // Moving a divisor into a branch can make it a literal 0, which the grammar refuses.
  const bool reads =
      std::holds_alternative<ParsedExpression>(parse_expression(variables, r.simplified));
  if (r.ops_after > ops || !reads) r.simplified = trimmed(expr), r.ops_after = ops;
  r.vmin = std::max(root.vmin(), u.vmin()), r.vmax = std::min(root.vmax(), u.vmax());
  r.rules = std::move(fired.names);
  return r;
}

}  // namespace beamline
