#include <algorithm>

#include "engine/base/check.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

bool written_out(UOp r) {
  return r.axis_type() == AxisType::UPCAST || r.axis_type() == AxisType::UNROLL;
}

// tile ranges, last one fastest -> element of the buffer
UOp place(const std::vector<UOp>& tile, const Substitution& renamed) {
  UOp at = iconst(0);
  for (UOp r : tile) {
    const auto it = renamed.find(r);
    at = at * iconst(KernelSchedule::size(r)) + (it == renamed.end() ? r : it->second);
  }
  return at;
}

UOp stage(UOp ast, const Packing& p, int64_t buffer_slot) {
  UOp load;
  int64_t id = 0;
  for (UOp u : toposort(ast)) {
    if (u.op() == Op::RANGE) id = std::max(id, u.range_id() + 1);
    if (u.op() == Op::LOAD && u.src(0).src(0).op() == Op::PARAM &&
        u.src(0).src(0).param().slot == p.slot)
      load = u;
  }
  if (!load) return ast;  // simplified away
  // The copy has loops of its own; what is written out anyway it shares with the reader.
  Substitution renamed;
  std::vector<UOp> ended;
  for (UOp r : p.tile) {
    if (!written_out(r)) renamed.emplace(r, range(KernelSchedule::size(r), id++, AxisType::LOOP));
    ended.push_back(written_out(r) ? r : renamed.at(r));
  }
  ParamArg arg;
  arg.slot = buffer_slot;
  arg.addrspace = AddrSpace::Reg;
  const int64_t shape[] = {p.elements()};
  const UOp memory = buffer(arg, load.dtype(), shape);
  const auto element = [&](std::vector<UOp> deps, UOp at) {
    deps.insert(deps.begin(), memory);
    return make(Op::INDEX, memory.dtype(),
                {deps.size() == 1 ? memory : make(Op::AFTER, memory.dtype(), deps), at});
  };
  std::vector<UOp> end{make(Op::STORE, DType::Void,
                            {element(p.outer, place(p.tile, renamed)), substitute(load, renamed)})};
  end.insert(end.end(), ended.begin(), ended.end());
  const UOp copied = make(Op::END, DType::Void, end);
  const UOp read = make(Op::LOAD, load.dtype(), {element({copied}, place(p.tile, {}))});
  return substitute(ast, {{load, read}});
}

}  // namespace

UOp stage_operands(UOp ast, const std::vector<Packing>& packings) {
  for (size_t i = 0; i < packings.size(); i++)
    ast = stage(ast, packings[i], static_cast<int64_t>(i));
  return ast;
}

}  // namespace beamline
