// How an index tuple passes backwards through a movement op: from where the result is read to where
// the operand is read. A tuple carries one validity (null = always valid) for what padding leaves
// out.
#pragma once
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct IndexTuple {
  std::vector<UOp> index;  // one weakint a dim
  UOp valid;               // bool, or null
};

/// The tuple of the operand of movement op `u`; `ended` receives the ranges u repeats its operand
/// over.
IndexTuple through_movement(UOp u, const IndexTuple& out, std::vector<UOp>& ended);
/// The tuple of operand i of a node whose shapes broadcast.
IndexTuple through_broadcast(UOp operand, const IndexTuple& out, std::vector<UOp>& ended);
/// Row-major flat index; gated by the validity.
UOp flat_index(const IndexTuple& t, std::span<const int64_t> shape);

}  // namespace beamline
