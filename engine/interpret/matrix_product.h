// What a warp computes together with its tensor cores. Which thread holds which element is written
// out here for every instruction, and does not come from the tables that schedules are made by: a
// mistake in either shows as a wrong product.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/tensor_core.h"

namespace beamline {

/// One number of a value: integers and bools in i, floats in f.
struct Lane {
  int64_t i = 0;
  double f = 0;
};

/// The operands that the threads of a warp hold, and where their results go: by lane, then element.
struct WarpValues {
  std::vector<const Lane*> a, b, c;
  std::vector<Lane*> d;
};

/// The same by a processor: D(i) = sum over k of A(i, k) * B(i, k) + C(i) for each of the lanes; a
/// factor of k elements is that of every lane.
struct LaneValues {
  size_t lanes = 1;
  const Lane *a = nullptr, *b = nullptr, *c = nullptr;
  size_t a_elements = 0, b_elements = 0, c_elements = 0;
  Lane* d = nullptr;
};
/// Products are summed and rounded as below. The instruction for bf16 rounds every step and takes
/// denormals for zeros.
void multiply_lanes(const TensorCore& core, const LaneValues& values);

/// D = A * B + C. Products are summed exactly as doubles (integers: wrapping), steps in order, and
/// rounded once. The error says what is inconsistent: elements that the hardware wants twice and
/// that differ.
std::optional<std::string> multiply_matrices(const TensorCore& core, const WarpValues& values);

}  // namespace beamline
