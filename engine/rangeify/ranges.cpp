#include "engine/rangeify/ranges.h"

#include <algorithm>
#include <unordered_set>

namespace beamline {

int64_t size_of(UOp range) { return range.vmax() + 1; }

std::vector<UOp> ranges_of(UOp u) {
  std::vector<UOp> out;
  for (size_t i = 1; i < u.nsrc(); i++)
    if (u.src(i).op() == Op::RANGE) out.push_back(u.src(i));
  return out;
}

std::vector<UOp> closed_walk(UOp root) {
  std::vector<UOp> out;
  std::unordered_set<UOp, UOpHash> seen;
  std::vector<std::pair<UOp, bool>> todo{{root, false}};
  while (!todo.empty()) {
    const auto [u, visited] = todo.back();
    todo.pop_back();
    if (visited) {
      out.push_back(u);
      continue;
    }
    if (!seen.insert(u).second) continue;
    todo.emplace_back(u, true);
    if (u.op() == Op::STAGE) continue;
    for (size_t i = u.nsrc(); i-- > 0;) todo.emplace_back(u.src(i), false);
  }
  return out;
}

bool would_repeat_reduction(std::span<const UOp> nodes, UOp r) {
  return std::ranges::any_of(nodes, [&](UOp u) { return u.op() == Op::REDUCE && !u.has_range(r); });
}

bool is_dear(UOp u) {
  constexpr OpSet dear = Op::EXP2 | Op::LOG2 | Op::SIN;
  return dear.has(u.op());
}

}  // namespace beamline
