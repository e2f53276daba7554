// How a kernel uses one of its axes, and the arithmetic of blocks and register tiles: what the
// heuristic decides by.
#pragma once
#include "engine/opt/heuristic.h"

namespace beamline {

struct AxisUse {
  size_t axis = 0;  // index in the list of its kind
  UOp range;
  int64_t size = 0;
  // Loads of the innermost work: inside the reduction where there is one.
  int unit_loads = 0;      // move by one element along the axis
  int even_loads = 0;      // move by two
  int strided_loads = 0;   // move otherwise
  int constant_loads = 0;  // do not move: a value used again
  bool unit_store = false;
};

/// Of range r, the one of that index in its list; of a kernel that reduces, the loads inside of the
/// reduction count.
AxisUse use_of(UOp ast, UOp r, size_t axis, bool reducing);

int64_t blocks(int64_t size, int64_t amount);
/// The row count that leaves the last block fullest, larger first.
int64_t balanced(int64_t size, int64_t most);
/// At most so many to a block, or down to half, such that the last block is nearly as full as the
/// others.
int64_t evenly(int64_t count, int64_t most);
/// Enough lanes for a whole axis: whole vectors, or the power of two that holds it.
int64_t lanes_for(int64_t size, int64_t lanes);

/// The greatest amount up to `most` that a target without masks can split an axis of that size by:
/// whole vectors, else what divides; 1 if nothing does.
int64_t dividing(int64_t size, int64_t most, int64_t lanes);

/// The target adds a product in the instruction that multiplies; one that says nothing of itself is
/// taken to.
bool fuses(const Target& target);

struct Tile {
  int64_t width = 1, rows = 1;
  double time = 0;  // cycles, of a step of the reduction
};
/// The register tile with the least estimated time for one step of the reduction over the whole
/// output: arithmetic and loads on their ports, loop overhead. With `whole_rows` only rows that
/// divide.
Tile best_tile(int64_t columns, int64_t rows, int64_t lanes, bool whole_rows, const Target& target,
               const HeuristicLimits& limits);

}  // namespace beamline
