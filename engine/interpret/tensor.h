// The meaning of tensor graphs: every node's values, computed node by node. Plain, and independent
// of rangeify and everything after it: what kernels compute is compared with it. Floats are
// doubles, rounded to their type after every node (Rounding::Typed) or never (Rounding::Wide, the
// oracle in double precision); integers wrap to their width. Work is the number of elements of all
// nodes, those of reductions' operands included: ask before evaluating.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// One value per element in row-major order: `reals` of floats, `wholes` of integers and bools.
struct TensorValue {
  DType dtype = DType::Void;
  Ints shape;
  std::vector<double> reals;
  std::vector<int64_t> wholes;

  TensorValue() = default;
  TensorValue(DType t, std::span<const int64_t> dims);  // zeros
  size_t size() const { return is_float(dtype) ? reals.size() : wholes.size(); }
  double number(size_t i) const;  // u64 as unsigned
};

enum class Rounding : uint8_t { Typed, Wide };

/// Elements that evaluating the graph computes.
int64_t evaluation_work(UOp root);
/// The values of a SINK's operands, or of one node. `inputs` by PARAM slot; each has the dtype and
/// shape of its PARAM. CHECKs that the graph holds nothing but tensor ops.
std::vector<TensorValue> evaluate_tensors(UOp root, std::span<const TensorValue> inputs,
                                          Rounding rounding = Rounding::Typed);
/// One node from the values of its operands, for walks of one's own.
TensorValue evaluate_node(UOp u, std::span<const TensorValue* const> operands, Rounding rounding);

}  // namespace beamline
