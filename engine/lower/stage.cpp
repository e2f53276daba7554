#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rangeify/ranges.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

// The loops of a copy. What is written out anyway it shares with the reader; but lanes that lie
// apart in the operand are read in blocks that are transposed in registers, along another axis
// whose elements do not, or along two of which one goes on where the other ends.
class CopyLoops {
 public:
  CopyLoops(const Packing& p, UOp load, int64_t id, int64_t vector_lanes)
      : dims_(p.dims), index_(load.src(0).src(1)), id_(id), vector_(vector_lanes) {
    const Packing::Dim& lanes = dims_.back();
    across_ = load.nsrc() == 1 && plain(lanes) && is_written_out(lanes.ranges[0]) && vector_ > 1 &&
              lanes.size % vector_ == 0 && std::abs(step(lanes.ranges[0])) > 1;
  }

  UOp loop(int64_t n, AxisType type) {
    ended.push_back(range(n, id_++, type));
    return ended.back();
  }

  // The place along dimension i; in order.
  UOp along(size_t i) {
    const Packing::Dim& d = dims_[i];
    const UOp r = d.ranges[0];
    const int64_t length = d.size / d.phases;
    const bool last = i + 1 == dims_.size();
    if (rest_) return std::exchange(rest_, {});
    if (across_ && plain(d) && !is_written_out(r)) {
      if (!last && continues(r, dims_[i + 1]) && d.size * dims_[i + 1].size >= vector_) {
        const UOp n = iconst(dims_[i + 1].size), element = in_blocks(d.size * dims_[i + 1].size);
        rest_ = element % n;
        return element / n;
      }
      if (step(r) == 1 && length >= vector_) return in_blocks(length);
    }
    if ((!plain(d) || across_) && last && length % vector_ == 0) {
      const UOp lanes = loop(vector_, AxisType::UPCAST);
      return length == vector_ ? lanes
                               : loop(length / vector_, AxisType::LOOP) * iconst(vector_) + lanes;
    }
    if (!plain(d) || !is_written_out(r)) return loop(length, AxisType::LOOP);
    ended.push_back(r);
    return r;
  }

  std::vector<UOp> ended;

 private:
  static bool plain(const Packing::Dim& d) { return d.ranges.size() == 1; }
  int64_t step(UOp r) const { return linear_stride(index_, r).value_or(0); }
  bool continues(UOp r, const Packing::Dim& next) const {
    return plain(next) && is_written_out(next.ranges[0]) && step(next.ranges[0]) == 1 &&
           step(r) == next.size;
  }
  // The last block begins sooner where they do not divide.
  UOp in_blocks(int64_t length) {
    const UOp block = loop((length + vector_ - 1) / vector_, AxisType::LOOP);
    const UOp begin = block * iconst(vector_), last = iconst(length - vector_);
    return (length % vector_ == 0 ? begin : where(begin < last, begin, last)) +
           loop(vector_, AxisType::UPCAST);
  }

  const std::vector<Packing::Dim>& dims_;
  UOp index_, rest_;  // of two axes, the place along the second
  int64_t id_, vector_;
  bool across_ = false;
};

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
  CopyLoops loops(p, load, id, vector_lanes);
  Substitution renamed;
  UOp to = iconst(0), from = iconst(0), inside;
  for (size_t i = 0; i < p.dims.size(); i++) {
    const Packing::Dim& d = p.dims[i];
    UOp own = loops.along(i), element = own;
    if (d.phases > 1) {
      const UOp phase = loops.loop(d.phases, AxisType::LOOP);
      element = own * iconst(d.phases) + phase, own = phase * iconst(d.size / d.phases) + own;
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
  std::ranges::stable_sort(loops.ended, std::greater<>(), [&](UOp r) {
    return is_written_out(r) ? -1 : std::abs(linear_stride(place, r).value_or(0));
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
  end.insert(end.end(), loops.ended.begin(), loops.ended.end());
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
    for (const Node* n : u.ranges())
      (is_written_out(UOp(n)) ? expanded : address).push_back(UOp(n));
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
