// The expressions of `ir simplify`: text to UOps and back (grammar in product.md), and one call
// that does the whole command for one expression. Bad input is a value with a column; nothing here
// throws. Thread safety: every call has its own arena.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct ExpressionError {
  int column = 0;  // 1-based, in bytes
  std::string message;
};
/// A variable with inclusive bounds; a bool has 0 and 1.
struct ExpressionVariable {
  std::string name;
  bool is_bool = false;
  int64_t vmin = 0, vmax = 0;
};
/// "a=0..7,b=-3..3,p=bool"; blanks are allowed, the empty text is no variables.
std::variant<std::vector<ExpressionVariable>, ExpressionError> parse_variables(
    std::string_view text);

struct ParsedExpression {
  UOp root;     // weakint or bool, in the current arena
  int ops = 0;  // operators and calls written; a literal, negative or not, counts none
};
std::variant<ParsedExpression, ExpressionError> parse_expression(
    std::span<const ExpressionVariable> variables, std::string_view text);

/// u in the same grammar; reads back to a node of equal value. `ops` receives what parsing would
/// count. u is made of variables, constants, arithmetic, comparisons, WHERE and bool casts.
std::string print_expression(UOp u, int* ops = nullptr);

struct SimplifyResult {
  std::string expr;        // as given
  std::string simplified;  // never more operations than expr
  int64_t vmin = 0, vmax = 0;
  int ops_before = 0, ops_after = 0;
  std::vector<std::string> rules;  // that fired, in the order of their first use
};
std::variant<SimplifyResult, ExpressionError> simplify_text(
    std::span<const ExpressionVariable> variables, std::string_view expr);

}  // namespace beamline
