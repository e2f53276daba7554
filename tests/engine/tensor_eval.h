// The tensor-level evaluator with plain doubles in and out, as the tables of the tests have them.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/interpret/tensor.h"

namespace beamline::test {

struct Tensor {
  Ints shape;
  std::vector<double> data;
};

inline int64_t numel(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

inline Ints unravel(int64_t flat, std::span<const int64_t> shape) {
  Ints at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}
// Element of t at a right-aligned index of a shape it broadcasts to.
inline double element(const Tensor& t, std::span<const int64_t> at) {
  int64_t flat = 0;
  const size_t skip = at.size() - t.shape.size();
  for (size_t i = 0; i < t.shape.size(); i++)
    flat = flat * t.shape[i] + (t.shape[i] == 1 ? 0 : at[i + skip]);
  return t.data[static_cast<size_t>(flat)];
}

inline TensorValue as_value(const Tensor& t, DType dtype) {
  TensorValue v(dtype, t.shape);
  for (size_t i = 0; i < t.data.size(); i++) {
    if (is_float(dtype))
      v.reals[i] = round_to(dtype, t.data[i]);
    else
      v.wholes[i] = wrap_to(dtype, static_cast<int64_t>(t.data[i]));
  }
  return v;
}
inline Tensor as_tensor(const TensorValue& v) {
  Tensor t{v.shape, {}};
  for (size_t i = 0; i < v.size(); i++) t.data.push_back(v.number(i));
  return t;
}

/// The values of the roots of a SINK (or of one node), inputs by slot.
inline std::vector<Tensor> evaluate(UOp root, const std::vector<Tensor>& inputs) {
  std::vector<TensorValue> values(inputs.size());
  for (UOp u : toposort(root))
    if (u.op() == Op::PARAM) {
      const auto slot = static_cast<size_t>(u.param().slot);
      values.at(slot) = as_value(inputs.at(slot), u.dtype());
    }
  std::vector<Tensor> out;
  for (const TensorValue& v : evaluate_tensors(root, values)) out.push_back(as_tensor(v));
  return out;
}

}  // namespace beamline::test
