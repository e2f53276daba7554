#include <algorithm>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"

namespace beamline {
namespace {

struct Access {
  UOp memory, node;
  bool writes;
  bool awaited = false;  // nothing goes on behind it before all are there
};

std::vector<Access> shared_accesses(const std::vector<UOp>& order) {
  std::vector<Access> out;
  for (UOp u : order) {
    if (u.op() != Op::LOAD && u.op() != Op::STORE) continue;
    if (const UOp m = memory_of(u.src(0)); m.addrspace() == AddrSpace::Local)
      out.push_back({m, u, u.op() == Op::STORE});
  }
  return out;
}

// One step of the loop writes what another thread may still read in the step before.
bool written_again(const std::vector<Access>& accesses, UOp loop) {
  return std::ranges::any_of(accesses, [&](const Access& w) {
    return w.writes && w.node.has_range(loop) &&
           std::ranges::any_of(accesses, [&](const Access& r) {
             return !r.writes && !r.awaited && r.memory == w.memory && r.node.has_range(loop);
           });
  });
}

}  // namespace

UOp add_implicit_barriers(UOp ast) {
  const std::vector<UOp> order = toposort(ast);
  std::vector<Access> accesses = shared_accesses(order);
  if (accesses.empty()) return ast;
  NodeMap<UOp> done;
  for (UOp u : order) {
    const Provenance::Of from(u);
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    size_t last = 0;  // the innermost such loop: what waits there waits for those around it, too
    for (size_t i = 1; u.op() == Op::END && i < u.nsrc(); i++)
      if (written_again(accesses, u.src(i))) last = i;
    if (last > 0) {
      std::vector<UOp> inner{src[0]};
      inner.insert(inner.end(), src.begin() + static_cast<std::ptrdiff_t>(last) + 1, src.end());
      src[0] = make(Op::BARRIER, DType::Void,
                    {inner.size() == 1 ? inner[0] : make(Op::END, DType::Void, inner)});
      src.resize(last + 1);
      for (Access& a : accesses) a.awaited |= a.node.has_range(u.src(last));
    }
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  return done.at(ast);
}

}  // namespace beamline
