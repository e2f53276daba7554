#include <algorithm>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rangeify/ranges.h"
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

// A row of values in a buffer of the thread's own, one for each of the written out values that the
// row depends on: filled by the row's loops inside of all others, then read by its place.
UOp keep_rows(UOp ast, int64_t buffer_slot) {
  struct Row {
    UOp memory, filled, which;
    int64_t rows = 1;
  };
  NodeMap<Row> rows;
  NodeMap<UOp> done;
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    std::vector<UOp> src;
    for (UOp s : u.srcs()) src.push_back(done.at(s));
    if (u.op() == Op::INDEX && memory_of(u).op() == Op::STAGE) {
      const Row& row = rows.at(memory_of(u));
      done.emplace(u, make(Op::INDEX, row.memory.dtype(),
                           {make(Op::AFTER, row.memory.dtype(), {row.memory, row.filled}),
                            src[1] * iconst(row.rows) + row.which}));
      continue;
    }
    if (u.op() != Op::STAGE) {
      const bool seen_flat = u.op() == Op::RESHAPE;
      done.emplace(u, seen_flat ? src[0] : src == u.srcs() ? u : rebuild(u, src));
      continue;
    }
    Row row;
    std::vector<UOp> fill{UOp{}}, address{UOp{}};
    std::vector<UOp> expanded;
    for (const Node* n : u.ranges()) (written_out(UOp(n)) ? expanded : address).push_back(UOp(n));
    for (UOp r : expanded) row.rows *= KernelSchedule::size(r);
    row.which = place(expanded, {});
    const std::vector<UOp> own = ranges_of(u);
    fill.insert(fill.end(), own.begin(), own.end());
    ParamArg arg;
    arg.slot = buffer_slot++;
    arg.addrspace = AddrSpace::Reg;
    const int64_t shape[] = {u.numel() * row.rows};
    address[0] = row.memory = buffer(arg, u.dtype(), shape);
    const UOp memory = address.size() == 1 ? row.memory : make(Op::AFTER, u.dtype(), address);
    const UOp at =
        make(Op::INDEX, u.dtype(), {memory, place(own, {}) * iconst(row.rows) + row.which});
    fill[0] = make(Op::STORE, DType::Void, {at, src[0]});
    row.filled = make(Op::END, DType::Void, fill);
    rows.emplace(u, row);
    done.emplace(u, row.memory);  // only reads name it
  }
  return done.at(ast);
}

}  // namespace

UOp stage_operands(UOp ast, const std::vector<Packing>& packings) {
  for (size_t i = 0; i < packings.size(); i++)
    ast = stage(ast, packings[i], static_cast<int64_t>(i));
  return keep_rows(ast, static_cast<int64_t>(packings.size()));
}

}  // namespace beamline
