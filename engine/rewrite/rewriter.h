// graph_rewrite: applies a matcher over a graph to a fixed point, with an explicit stack.
// Default: rules see rewritten operands, and a replacement is rewritten again. bottom_up: rules see
// the original node before its operands are visited. walk: each original node once, replacements
// are final. The body of a FUNCTION or CALL (its first operand) is left alone unless asked for.
#pragma once
#include <stdexcept>
#include <unordered_map>

#include "engine/rewrite/rule.h"

namespace beamline {

struct RewriteOptions {
  bool bottom_up = false;
  bool walk = false;
  bool enter_calls = false;
  Trace* trace = nullptr;
  int limit = 10000;  // rewrites that may come of one original node before a loop is reported
};

/// Thrown when rules do not terminate; names the rules that fired last.
struct RewriteLoop : std::logic_error {
  using std::logic_error::logic_error;
};

UOp graph_rewrite(UOp root, const MatcherBase& rules, void* ctx = nullptr,
                  const RewriteOptions& = {});

using Substitution = std::unordered_map<UOp, UOp, UOpHash>;
/// Replaces nodes by others everywhere; what is put in is not searched again.
UOp substitute(UOp root, const Substitution& map);

}  // namespace beamline
