#include "engine/lower/estimates.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace beamline {
namespace {

double iterations(UOp u) {
  double n = 1;
  for (const Node* r : u.ranges()) n *= static_cast<double>(r->vmax + 1);
  return n;
}

}  // namespace

Estimates estimate(UOp prepared) {
  Estimates e;
  std::unordered_map<UOp, double, UOpHash> touched;
  std::unordered_set<UOp, UOpHash> values;
  std::vector<UOp> todo;
  for (UOp u : toposort(prepared)) {
    if (u.op() == Op::STORE) todo.push_back(u.src(1));
    if (u.op() != Op::INDEX || u.src(0).op() != Op::PARAM) continue;
    const double n = std::min(iterations(u.src(1)), static_cast<double>(u.src(0).numel()));
    double& most = touched[u.src(0)];
    most = std::max(most, n);
  }
  while (!todo.empty()) {
    const UOp u = todo.back();
    todo.pop_back();
    if (!values.insert(u).second) continue;
    if (u.op() == Op::INDEX) {
      if (const UOp row = memory_of(u); row.op() == Op::STAGE) todo.push_back(row.src(0));
      continue;
    }
    for (size_t i = 0; i < (u.op() == Op::REDUCE ? 1 : u.nsrc()); i++) todo.push_back(u.src(i));
    const bool index_math =
        u.dtype() == DType::WeakInt || (u.nsrc() > 0 && u.src(0).dtype() == DType::WeakInt);
    if (u.op() == Op::REDUCE)
      e.flops += iterations(u.src(0));
    else if (ops::alu.has(u.op()) && !index_math)
      e.flops += iterations(u) * (u.op() == Op::MULACC ? 2 : 1);
  }
  for (UOp u : toposort(prepared))  // a fixed order of addition
    if (const auto it = touched.find(u); it != touched.end())
      e.bytes += it->second * dtype_bytes(u.dtype());
  return e;
}

}  // namespace beamline
