#include <algorithm>
#include <cstdlib>

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

UOp stage(UOp ast, const Packing& p, int64_t buffer_slot, int64_t vector_lanes) {
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
  UOp to = iconst(0), from = iconst(0), inside;
  const auto loop = [&](int64_t n, AxisType type) {
    ended.push_back(range(n, id++, type));
    return ended.back();
  };
  // Lanes that lie apart in the operand: blocks of it are transposed in registers, along another
  // axis whose elements do not, or along two that go on where each other end.
  const auto step = [&](UOp r) { return linear_stride(load.src(0).src(1), r).value_or(0); };
  const auto plain = [](const Packing::Dim& d) { return d.ranges.size() == 1; };
  const Packing::Dim& lanes = p.dims.back();
  const bool across = plain(lanes) && written_out(lanes.ranges[0]) && vector_lanes > 1 &&
                      lanes.size % vector_lanes == 0 && std::abs(step(lanes.ranges[0])) > 1;
  // The last block begins sooner where they do not divide.
  const auto in_blocks = [&](int64_t length) {
    const UOp block = loop((length + vector_lanes - 1) / vector_lanes, AxisType::LOOP);
    const UOp begin = block * iconst(vector_lanes), last = iconst(length - vector_lanes);
    return (length % vector_lanes == 0 ? begin : where(begin < last, begin, last)) +
           loop(vector_lanes, AxisType::UPCAST);
  };
  UOp rest;  // of two axes: the place along the second
  for (const Packing::Dim& d : p.dims) {
    const Packing::Dim* after = &d == &lanes ? nullptr : &d + 1;
    UOp own = d.ranges[0];
    const bool window = !plain(d);
    const int64_t length = d.size / d.phases;
    const bool goes_on = after && plain(*after) && step(after->ranges[0]) == 1 &&
                         step(own) == after->size && !written_out(own) &&
                         written_out(after->ranges[0]);
    if (rest) {
      own = rest, rest = {};
    } else if (across && !window && goes_on && d.size * after->size >= vector_lanes) {
      const UOp element = in_blocks(d.size * after->size);
      own = element / iconst(after->size), rest = element % iconst(after->size);
    } else if (across && !window && !written_out(own) && step(own) == 1 && length >= vector_lanes) {
      own = in_blocks(length);
    } else if ((window || across) && &d == &lanes && length % vector_lanes == 0) {
      own = loop(vector_lanes, AxisType::UPCAST);
      if (length > vector_lanes)
        own = loop(length / vector_lanes, AxisType::LOOP) * iconst(vector_lanes) + own;
    } else if (window || !written_out(own)) {
      own = loop(length, AxisType::LOOP);
    } else {
      ended.push_back(own);
    }
    UOp element = own;
    if (d.phases > 1) {
      const UOp phase = loop(d.phases, AxisType::LOOP);
      element = own * iconst(d.phases) + phase, own = phase * iconst(length) + own;
    }
    for (UOp r : d.ranges) renamed.emplace(r, iconst(0));
    renamed[d.ranges[0]] = element;
    if (d.used < d.size)
      inside = inside ? inside & (element < iconst(d.used)) : element < iconst(d.used);
    to = to * iconst(d.size) + own, from = from * iconst(d.size) + d.place;
  }
  UOp copied_value = substitute(load, renamed);
  if (inside) {
    const bool gated = copied_value.nsrc() == 3;
    copied_value = make(Op::LOAD, load.dtype(),
                        {copied_value.src(0), gated ? copied_value.src(1) : const_like(load, 0),
                         gated ? copied_value.src(2) & inside : inside});
  }
  // The operand is read in the order in which it lies there: it is in fewer caches than the copy.
  const UOp place = copied_value.src(0).src(1);
  std::ranges::stable_sort(ended, std::greater<>(), [&](UOp r) {
    return written_out(r) ? -1 : std::abs(linear_stride(place, r).value_or(0));
  });
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
  std::vector<UOp> end{make(Op::STORE, DType::Void, {element(p.outer, to), copied_value})};
  end.insert(end.end(), ended.begin(), ended.end());
  const UOp copied = make(Op::END, DType::Void, end);
  const UOp read = make(Op::LOAD, load.dtype(), {element({copied}, from)});
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
    row.which = place_among(expanded);
    const std::vector<UOp> own = ranges_of(u);
    fill.insert(fill.end(), own.begin(), own.end());
    ParamArg arg;
    arg.slot = buffer_slot++;
    arg.addrspace = AddrSpace::Reg;
    const int64_t shape[] = {u.numel() * row.rows};
    address[0] = row.memory = buffer(arg, u.dtype(), shape);
    const UOp memory = address.size() == 1 ? row.memory : make(Op::AFTER, u.dtype(), address);
    const UOp at =
        make(Op::INDEX, u.dtype(), {memory, place_among(own) * iconst(row.rows) + row.which});
    fill[0] = make(Op::STORE, DType::Void, {at, src[0]});
    row.filled = make(Op::END, DType::Void, fill);
    rows.emplace(u, row);
    done.emplace(u, row.memory);  // only reads name it
  }
  return done.at(ast);
}

}  // namespace

UOp stage_operands(UOp ast, const std::vector<Packing>& packings, int64_t vector_lanes) {
  for (size_t i = 0; i < packings.size(); i++)
    ast = stage(ast, packings[i], static_cast<int64_t>(i), vector_lanes);
  return keep_rows(ast, static_cast<int64_t>(packings.size()));
}

}  // namespace beamline
