#include <algorithm>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

// r becomes `value`, and the reductions over it go over `steps`; their values count where `gate` is
// open, if there is one.
UOp over_other_steps(UOp ast, UOp r, UOp steps, UOp value, UOp gate) {
  NodeMap<UOp> done;
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    if (u == r) {
      done.emplace(u, value);
      continue;
    }
    std::vector<UOp> src;
    bool reduces = false;
    for (size_t i = 0; i < u.nsrc(); i++) {
      const bool ends = u.op() == Op::REDUCE && i > 0 && u.src(i) == r;
      src.push_back(ends ? steps : done.at(u.src(i)));
      reduces |= ends;
    }
    if (reduces && gate) src[0] = where(gate, src[0], reduce_identity(u.reduce_op(), u.dtype()));
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  return done.at(ast);
}

}  // namespace

UOp skip_padding(UOp ast, const std::vector<Skipping>& skippings, const std::vector<UOp>& lanes) {
  for (const Skipping& s : skippings) {
    if (s.begin) {
      Substitution open;
      for (UOp g : s.gates) open.emplace(g, bool_const(true));
      const UOp steps = range(s.count, s.range.range_id(), s.range.axis_type());
      ast = over_other_steps(substitute(ast, open), s.range, steps, s.begin + steps, {});
      continue;
    }
    UOp gate;
    for (UOp g : s.gates)
      if (std::ranges::none_of(lanes, [&](UOp lane) { return g.has_range(lane); }))
        gate = gate ? gate & g : g;
    if (gate) ast = over_other_steps(ast, s.range, s.range, s.range, gate);
  }
  return ast;
}

}  // namespace beamline
