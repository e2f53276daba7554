#include "harness/tolerance.h"

#include <algorithm>
#include <cmath>

namespace beamline {

double unit_roundoff(DType t) {
  switch (t) {
    case DType::F64: return 0x1p-53;
    case DType::F32: return 0x1p-24;
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::Fp8e4m3: return 0x1p-4;
    case DType::Fp8e5m2: return 0x1p-3;
    default: return 0;
  }
}

double kernel_tolerance(UOp prepared) {
  double out = 0, computed = 0, reduced = 0;
  for (UOp u : toposort(prepared)) {
    if (u.op() == Op::STORE) out = std::max(out, unit_roundoff(u.src(1).dtype()));
    // Loads are exact; what is computed rounds. Converting to a wider type does not.
    if (ops::alu.has(u.op()) || u.op() == Op::REDUCE ||
        (u.op() == Op::CAST && !lossless(u.src(0).dtype(), u.dtype())))
      computed = std::max(computed, unit_roundoff(u.dtype()));
    if (u.op() != Op::REDUCE || u.reduce_op() == Op::MAX) continue;
    double steps = 1;
    for (const Node* r : u.src(0).ranges())  // its own, and those of reductions around it
      if (UOp(r).axis_type() == AxisType::REDUCE) steps *= static_cast<double>(r->vmax + 1);
    reduced += steps;
  }
  reduced = std::max(reduced, 1.0);
  if (out == 0) return 0;
  return 4 * out + std::max(out, computed) * (16 + 4 * std::sqrt(reduced));
}

}  // namespace beamline
