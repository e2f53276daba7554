// What a node's operands imply: its shape, integer bounds, address space and open ranges.
// Pure functions; a malformed combination is reported as text, so that a parser can refuse it.
#pragma once
#include <string>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct Derived {
  bool shaped = false;
  Ints shape;
  const Node* shared_shape =
      nullptr;  // an operand that has exactly this shape, then `shape` is empty
  int64_t vmin = 0, vmax = 0;
  AddrSpace addrspace = AddrSpace::None;
  std::vector<const Node*> ranges;      // by id
  const Node* shared_ranges = nullptr;  // an operand that has exactly these ranges; else null
  std::string error;                    // empty when the combination is well formed
};

/// Derives everything for a node that is about to be created. Bounds use 128-bit arithmetic; what
/// leaves the dtype's bounds falls back to them. Floats have bounds only as the dtype's integers:
/// unused.
Derived derive(Op op, DType dtype, std::span<const UOp> src, int64_t val, const Extra* ext);

/// NumPy broadcasting, right aligned; false when two dims differ and neither is 1.
bool broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b, Ints& out);

/// Floor division and modulo on integers; b != 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);
/// Result of an integer ALU op on constants, or nothing if it leaves 64 bits, divides by zero or is
/// not an integer op. Comparisons give 0 or 1.
std::optional<int64_t> fold_int(Op op, int64_t a, int64_t b = 0, int64_t c = 0);

}  // namespace beamline
