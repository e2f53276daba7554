// The text of UOps (engine.md appendix G): printing, reading, and the canonical text of a kernel's
// key. Printing what was read gives the same bytes; reading what was printed gives the same node.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "engine/ir/uop.h"

namespace beamline {

/// The argument of a node as its line has it, without the brackets; empty where it has none.
std::string print_argument(UOp u);
/// "uop 1" and one line per node, sources first; the last line is the root.
std::string print_uops(UOp root);
/// The same for a linear list: nodes are numbered by their place; operands must come before their
/// users.
std::string print_linear(std::span<const UOp> list);

struct ParseError {
  int line = 0;    // 1-based
  int column = 0;  // 1-based
  std::string message;
};
/// Reads a text into the current arena. Malformed text of any kind is an error value.
std::variant<UOp, ParseError> parse_uops(std::string_view text);

/// SHA-256 in hex over "uop-key 1\n" and the canonical text: nodes in toposort order; floats as
/// bits; without kernel name, PARAM name and device.
std::string kernel_key(UOp prepared);
/// The same over "tensor-graph 1\n", for a graph of tensors: what its lowering depends on. Slots
/// count, for they say which input is which.
std::string tensor_graph_hash(UOp sink);

/// Unambiguous text of an argument, used to intern it.
std::string extra_text(const Extra& e);

}  // namespace beamline
