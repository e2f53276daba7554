// Row kernels: softmax, the norms, argmax. A reduction over a row whose result only the same row
// needs again is computed by the kernel that needs it, and what is dear and needed by several loops
// over the row is kept in a STAGE of one row: loops over rows outside, and inside one after the
// other the loops over the row. The split depends on sizes alone, never on a device; a target that
// cannot keep a row computes its values again (engine/opt/schedule.h).
#pragma once
#include <unordered_set>

#include "engine/ir/uop.h"

namespace beamline {

/// Limits of a row kernel.
struct RowLimits {
  int64_t row_bytes = int64_t{256} << 10;  // of a row that stays near the core that works on it
  int64_t lone_bytes = int64_t{16} << 10;  // the same where fewer rows than `rows` could go side by
  int64_t rows = 16;                       // side
  int64_t shortest = 4;  // steps of a row: of less, statistics lose their digits too often for a
                         // check of the whole kernel, which each kernel by itself would pass
  int64_t kept_bytes = int64_t{512} << 10;  // of all values that one kernel keeps
};

/// `staged`: SINK over STAGEs, a read of one being INDEX(RESHAPE(STAGE), flat index). STAGEs in
/// `kept` are stored in any case; others may vanish into the one STAGE that reads them.
UOp fuse_rows(UOp staged, const std::unordered_set<UOp, UOpHash>& kept,
              const RowLimits& limits = {});

/// In a kernel (SINK over ENDs): loops over rows go outside, and a value with a transcendental that
/// two loops over the row compute is computed once: STAGE(value, range), read by
/// INDEX(STAGE, place). Idempotent.
UOp share_row_values(UOp kernel, const RowLimits& limits = {});

}  // namespace beamline
