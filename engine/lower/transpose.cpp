#include "engine/base/check.h"
#include "engine/lower/passes.h"

namespace beamline {
namespace {

// Lane i of the result is lane from[i] of the first vector, or of the second where second[i].
UOp shuffle(UOp a, UOp b, const std::vector<int64_t>& from, const std::vector<bool>& second) {
  std::vector<UOp> lanes;
  for (size_t i = 0; i < from.size(); i++)
    lanes.push_back(make(Op::INDEX, a.dtype(), {second[i] ? b : a, iconst(from[i])}));
  return stack(lanes);
}

}  // namespace

std::vector<UOp> transpose_registers(std::vector<UOp> rows) {
  const size_t n = rows.size(), width = static_cast<size_t>(rows.at(0).shape()[0]);
  CHECK((n & (n - 1)) == 0 && width % n == 0);
  // Exchanges the off-diagonal blocks of size s within blocks of 2s, for every s.
  for (size_t s = n / 2; s > 0; s /= 2)
    for (size_t i = 0; i < n; i++) {
      if (i & s) continue;
      std::vector<int64_t> low(width), high(width);
      std::vector<bool> low_second(width), high_second(width);
      for (size_t l = 0; l < width; l++) {
        const bool upper = (l & s) != 0;
        low[l] = static_cast<int64_t>(upper ? l - s : l);
        high[l] = static_cast<int64_t>(upper ? l : l + s);
        low_second[l] = high_second[l] = upper;
      }
      const UOp a = rows[i], b = rows[i + s];
      rows[i] = shuffle(a, b, low, low_second);
      rows[i + s] = shuffle(a, b, high, high_second);
    }
  return rows;
}

}  // namespace beamline
