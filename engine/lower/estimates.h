// Work of a kernel, counted on its prepared AST, so that variants of one kernel are comparable.
#pragma once
#include "engine/ir/uop.h"

namespace beamline {

struct Estimates {
  double flops = 0;  // ALU ops outside index math, MULACC 2, reduce steps included
  double bytes = 0;  // distinct bytes touched per PARAM
};
Estimates estimate(UOp prepared);

}  // namespace beamline
