// prepare(): the last step before a kernel is named by its key: symbolic simplification, sums that
// need no loop (collapse.h), merging of adjacent ranges, then PARAM slots and range ids renumbered
// by first visit. Idempotent.
#pragma once
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct Prepared {
  UOp ast;
  std::vector<int64_t> slots;  // new slot -> the slot it had
};
Prepared prepare(UOp kernel);

}  // namespace beamline
