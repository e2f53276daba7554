#include "workloads/number.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/ir/derive.h"

namespace beamline::workloads {
namespace {

NumberResult overflow() { return std::string("result does not fit 64 bits"); }

NumberResult integer_power(int64_t base, int64_t exponent) {
  int64_t r = 1;
  // Any base but -1, 0, 1 leaves 64 bits before 64 steps.
  if (base == 0 || base == 1) return Number::of(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Number::of(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
  for (int64_t i = 0; i < exponent; i++)
    if (__builtin_mul_overflow(r, base, &r)) return overflow();
  return Number::of(r);
}

NumberResult on_integers(Operator op, const Number& x, const Number& y) {
  const int64_t a = x.integer, b = y.integer;
  const bool both_bool = x.kind == Number::Kind::Bool && y.kind == Number::Kind::Bool;
  int64_t r = 0;
  switch (op) {
    case Operator::Add: return __builtin_add_overflow(a, b, &r) ? overflow() : Number::of(r);
    case Operator::Sub: return __builtin_sub_overflow(a, b, &r) ? overflow() : Number::of(r);
    case Operator::Mul: return __builtin_mul_overflow(a, b, &r) ? overflow() : Number::of(r);
    case Operator::Div:
      if (b == 0) return std::string("division by zero");
      return Number::of(static_cast<double>(a) / static_cast<double>(b));
    case Operator::FloorDiv:
    case Operator::Mod:
      if (b == 0) return std::string("division by zero");
      if (b == -1 && a == std::numeric_limits<int64_t>::min())
        return op == Operator::Mod ? NumberResult(Number::of(int64_t{0})) : overflow();
      return Number::of(op == Operator::Mod ? floor_mod(a, b) : floor_div(a, b));
    case Operator::Pow:
      return b >= 0 ? integer_power(a, b)
                    : Number::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
    case Operator::Or: r = a | b; break;
    case Operator::Xor: r = a ^ b; break;
    case Operator::And: r = a & b; break;
    case Operator::Lt: return Number::boolean(a < b);
    case Operator::Le: return Number::boolean(a <= b);
    case Operator::Gt: return Number::boolean(a > b);
    case Operator::Ge: return Number::boolean(a >= b);
    case Operator::Eq: return Number::boolean(a == b);
    case Operator::Ne: return Number::boolean(a != b);
    default: return fmt::format("'{}' needs tensors", operator_text(op));
  }
  return both_bool ? Number::boolean(r != 0) : Number::of(r);
}

NumberResult on_floats(Operator op, double a, double b) {
  switch (op) {
    case Operator::Add: return Number::of(a + b);
    case Operator::Sub: return Number::of(a - b);
    case Operator::Mul: return Number::of(a * b);
    case Operator::Div: return Number::of(a / b);
    case Operator::FloorDiv: return Number::of(std::floor(a / b));
    case Operator::Mod: {
      const double r = std::fmod(a, b);
      return Number::of(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case Operator::Pow: return Number::of(std::pow(a, b));
    case Operator::Lt: return Number::boolean(a < b);
    case Operator::Le: return Number::boolean(a <= b);
    case Operator::Gt: return Number::boolean(a > b);
    case Operator::Ge: return Number::boolean(a >= b);
    case Operator::Eq: return Number::boolean(a == b);
    case Operator::Ne: return Number::boolean(a != b);
    default: return fmt::format("'{}' needs integers", operator_text(op));
  }
}

}  // namespace

NumberResult apply(Operator op, const Number& a, const Number& b) {
  return a.is_float() || b.is_float() ? on_floats(op, a.value(), b.value()) : on_integers(op, a, b);
}

NumberResult apply(Operator op, const Number& a) {
  if (op == Operator::Neg) {
    if (a.is_float()) return Number::of(-a.real);
    int64_t r = 0;
    return __builtin_sub_overflow(int64_t{0}, a.integer, &r) ? overflow() : Number::of(r);
  }
  if (a.is_float()) return fmt::format("'{}' needs integers", operator_text(op));
  return a.kind == Number::Kind::Bool ? Number::boolean(a.integer == 0) : Number::of(~a.integer);
}

std::variant<Number, Diagnostic> evaluate(const Program& p, int root, const Params& params) {
  std::vector<Number> done(static_cast<size_t>(root) + 1);
  for (size_t i = 0; i < done.size(); i++) {
    const Expr& e = p.exprs[i];
    const auto arg = [&](size_t k) { return done[static_cast<size_t>(e.args[k])]; };
    NumberResult r;
    switch (e.kind) {
      case ExprKind::Int: r = Number::of(e.integer); break;
      case ExprKind::Float: r = Number::of(e.number); break;
      case ExprKind::Bool: r = Number::boolean(e.integer != 0); break;
      case ExprKind::Unary: r = apply(e.op, arg(0)); break;
      case ExprKind::Binary: r = apply(e.op, arg(0), arg(1)); break;
      case ExprKind::Name: {
        std::vector<std::string> names;
        const std::pair<std::string, int64_t>* found = nullptr;
        for (const auto& param : params) {
          if (param.first == e.text) found = &param;
          names.push_back(param.first);
        }
        if (!found)
          return Diagnostic{
              e.at, fmt::format("unknown param '{}'{}", e.text, did_you_mean(e.text, names)),
              names.empty() ? "an integer; there are no params"
                            : "an integer or a param: " + one_of(names)};
        r = Number::of(found->second);
        break;
      }
      default:
        return Diagnostic{
            e.at, fmt::format("'{}' has no place here", print(p, static_cast<int>(i))), "a number"};
    }
    if (const auto* why = std::get_if<std::string>(&r)) return Diagnostic{e.at, *why, ""};
    done[i] = std::get<Number>(r);
  }
  return done.back();
}

}  // namespace beamline::workloads
