// A node's pieces, one for each value of the expanded axes that it depends on. Private to expand().
#pragma once
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/ir/node_map.h"

namespace beamline {

class Expander {
 public:
  Expander(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes, size_t max_pieces);
  std::optional<UOp> run();

 private:
  struct Axis {
    UOp range;
    std::vector<UOp> values;  // a constant, or for a lane axis a vector of constants, per step
  };
  struct Pieces {
    std::vector<size_t> axes;  // ascending
    std::vector<UOp> at;       // last axis fastest
  };

  // Whole vectors first, then powers of two.
  static void cut(int64_t n, int64_t width, std::vector<UOp>& out);
  void keep(UOp u, Pieces p);
  size_t combinations(std::span<const size_t> axes) const;
  // The piece of u for combination `c` of `axes`, a superset of its own.
  UOp piece(UOp u, std::span<const size_t> axes, size_t c);
  std::vector<size_t> axes_of(std::span<const UOp> nodes);
  void each(UOp u);
  // An axis that is no lanes, along which an index moves by one element: its steps, and how far
  // apart they are among the combinations of `axes`. No steps: there is none.
  struct Along {
    size_t count = 0, stride = 1;
  };
  Along consecutive(const std::vector<size_t>& axes, UOp index) const;
  // A load whose lanes lie apart, along another written-out axis of consecutive elements: vectors
  // are loaded along that axis and transposed in registers.
  bool transposed(UOp u);
  // The other way round: a store whose lanes lie apart. Its values are transposed in registers, and
  // runs along the axis of consecutive elements are stored.
  bool stored_across(UOp u);
  // Rows of vectors as runs of `run` elements, one for each of the vectors' lanes.
  void run_of_stores(UOp u, std::span<const size_t> axes, const std::vector<size_t>& row,
                     size_t run, std::vector<UOp>& stores);
  void store(UOp u);
  // What a product by lanes will read together is written together.
  bool interleaved_stores(UOp u, std::span<const size_t> axes, std::vector<UOp>& stores);
  // What each lane multiplies lies side by side; a factor that has no lanes is that of all.
  void products_by_lane(UOp u);
  // The place among pieces over `axes`, by the digit of every axis.
  size_t place(std::span<const size_t> axes, const std::vector<size_t>& digits) const;
  // Sets the digits of `axes` to combination c of them.
  void at_combination(std::span<const size_t> axes, size_t c, std::vector<size_t>& digits) const;
  // A matrix product: an operand's elements side by side, one node for all elements of the result.
  void product(UOp u);
  // ADD(accumulator, REDUCE[ADD](v)): one chain of additions onto the accumulator, which fuses with
  // products.
  UOp chained(UOp u) const;
  // Folds r's operand over r's axes, onto `start` where there is one; lanes are summed last.
  void fold(UOp u, UOp r, UOp start);
  // A value that is the same in every lane still counts once a lane.
  UOp repeat(UOp v, std::span<const size_t> all, size_t c) const;

  std::vector<UOp> order_;
  size_t max_pieces_, total_ = 0;
  std::vector<Axis> axes_;
  std::unordered_map<UOp, size_t, UOpHash> axis_of_;
  size_t step_ = SIZE_MAX;                    // the axis of what lanes multiply at once
  std::unordered_set<UOp, UOpHash> factors_;  // what leads to them
  NodeMap<Pieces> pieces_;
};

}  // namespace beamline
