// A sum of products as TC opts see it. Private to engine/opt.
#pragma once
#include <optional>

#include "engine/ir/tensor_core.h"
#include "engine/ir/uop.h"

namespace beamline {

/// sum over the ranges of a * b, both off unless `gate` (null: always on).
struct Product {
  UOp reduce, gate, a, b;
};

/// The operand of a sum as a product; `gate` may depend on steps of the sum only.
std::optional<Product> product_of(UOp reduce);

/// u as a value of type t, if it is one, or is the widening of one.
UOp narrowed(UOp u, DType t);

}  // namespace beamline
