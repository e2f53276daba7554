// Numbers of the compute language before they meet a tensor: literals, params, and arithmetic on
// them. Integers are 64-bit and never wrap; what would leave 64 bits is refused. Semantics are
// Python's.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/expression.h"

namespace beamline::workloads {

struct Number {
  enum class Kind { Bool, Int, Float };
  Kind kind = Kind::Int;
  int64_t integer = 0;  // Bool as 0 or 1
  double real = 0;      // Float
  static Number of(int64_t v) { return {Kind::Int, v, 0}; }
  static Number of(double v) { return {Kind::Float, 0, v}; }
  static Number boolean(bool v) { return {Kind::Bool, v, 0}; }
  bool is_float() const { return kind == Kind::Float; }
  double value() const { return is_float() ? real : static_cast<double>(integer); }
};

/// The result, or why there is none.
using NumberResult = std::variant<Number, std::string>;
NumberResult apply(Operator op, const Number& a, const Number& b);
NumberResult apply(Operator op, const Number& a);

/// Params of an instance, in file order.
using Params = std::vector<std::pair<std::string, int64_t>>;

/// Evaluates node `root` of a program that uses nothing but numbers and params.
std::variant<Number, Diagnostic> evaluate(const Program& p, int root, const Params& params);

}  // namespace beamline::workloads
