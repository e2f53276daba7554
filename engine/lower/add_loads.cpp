#include <algorithm>
#include <bit>
#include <tuple>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/ir/tensor_core.h"
#include "engine/lower/passes.h"
#include "engine/opt/schedule.h"

namespace beamline {

UOp widen_floats(UOp ast) {
  NodeMap<UOp> done;
  const auto wide = [](DType t) { return is_float(t) ? DType::F64 : t; };
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    UOp v;
    if (u.op() == Op::CONST && is_float(u.dtype()))
      v = fconst(u.fval(), DType::F64);
    else if (u.op() == Op::INDEX && is_float(u.dtype()) && memory_of(u).op() != Op::STAGE)
      v = cast(make(u.op(), u.dtype(), src), DType::F64);
    else if (u.op() == Op::STORE) {
      const UOp at = u.src(0), p = at.src(0);
      const UOp out = make(p.op(), wide(p.dtype()), p.srcs(), p.node()->val, p.node()->ext);
      src[0] = make(Op::INDEX, out.dtype(), {out, done.at(at.src(1))});
      v = make(u.op(), u.dtype(), src);
    } else if (u.op() == Op::CAST)
      v = cast(src[0], wide(u.dtype()));
    else
      v = make(u.op(), u.op() == Op::PARAM ? u.dtype() : wide(u.dtype()), src, u.node()->val,
               u.node()->ext);
    done.emplace(u, v);
  }
  return done.at(ast);
}

namespace {

// WHERE(c, x, a) around a read x whose gate implies c: the read alone, with a where it is off. The
// condition is then evaluated where the read is, and not where its value is used.
bool absorbs(UOp u) {
  if (u.op() != Op::WHERE || u.src(1).op() != Op::INDEX || !u.src(2).is_const() ||
      u.src(2).dtype() != u.src(1).dtype() || u.dtype() == DType::Bool)
    return false;
  const UOp at = u.src(1).src(1);
  if (at.op() != Op::WHERE || !at.src(2).is_invalid()) return false;
  std::vector<UOp> gate, condition;
  conjuncts(at.src(0), gate);
  conjuncts(u.src(0), condition);
  return std::ranges::all_of(condition,
                             [&](UOp c) { return std::ranges::find(gate, c) != gate.end(); });
}

}  // namespace

UOp add_loads(UOp ast) {
  NodeMap<UOp> value;                  // a node as a value; an INDEX as a LOAD
  const auto split = [&](UOp index) {  // (buffer, index) and the gate, or null
    UOp at = index.src(1), gate;
    for (; at.op() == Op::WHERE && at.src(2).is_invalid(); at = at.src(1))
      gate = gate ? gate & value.at(at.src(0)) : value.at(at.src(0));
    return std::pair(make(Op::INDEX, index.dtype(), {value.at(index.src(0)), value.at(at)}), gate);
  };
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    if (u.op() == Op::INDEX) {
      const auto [at, gate] = split(u);
      value.emplace(u, gate ? make(Op::LOAD, u.dtype(), {at, const_like(u, 0), gate})
                            : make(Op::LOAD, u.dtype(), {at}));
      continue;
    }
    if (absorbs(u)) {
      const auto [at, gate] = split(u.src(1));
      value.emplace(u, make(Op::LOAD, u.dtype(), {at, u.src(2), gate}));
      continue;
    }
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(value.at(u.src(i)));
    if (u.op() == Op::STORE) {
      const auto [at, gate] = split(u.src(0));
      src[0] = at;
      if (gate) src.push_back(gate);
    }
    value.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  return value.at(ast);
}

std::vector<UOp> choose_lanes(UOp ast, int64_t vector_lanes) {
  // For lanes count accesses of consecutive elements, and half those of every other one; against
  // them those with another stride. What lies in a reduction happens most often, the vectors of an
  // axis that does not divide are partly empty, and a scatter costs more than a gather.
  constexpr int often = 8;
  const auto lanes_of_piece = [&](int64_t n) {
    const int64_t whole = n / vector_lanes, rest = n % vector_lanes;
    return static_cast<double>(n) /
           static_cast<double>(whole + std::popcount(static_cast<uint64_t>(rest)));
  };
  struct Candidate {
    UOp axis;
    double score = 0;
    bool consecutive = false;
  };
  std::vector<Candidate> all;
  const std::vector<UOp> order = toposort(ast);
  UOp step;  // of a product by lanes: they are that many elements apart, with its own between
  for (UOp u : order) {
    if (u.op() == Op::WMMA && !tensor_core(u.text())->shape->by_lane())
      return {};  // its threads hold their elements one by one
    if (u.op() == Op::WMMA) step = u.src(3);
    if (u.op() == Op::RANGE &&
        (u.axis_type() == AxisType::UPCAST || u.axis_type() == AxisType::UNROLL))
      all.push_back({u});
  }
  std::erase_if(all, [&](const Candidate& c) { return c.axis == step; });
  const auto count = [&](UOp index, bool store) {
    int weight = 1;
    for (const Node* n : index.ranges()) {
      const AxisType t = UOp(n).axis_type();
      if (t == AxisType::REDUCE || t == AxisType::UNROLL) weight = often;
    }
    for (Candidate& c : all) {
      if (!index.has_range(c.axis)) continue;
      auto stride = stride_along(index, c.axis);
      if (step && stride == step.vmax() + 1 && unit_stride(index, step)) stride = 1;
      const double lanes = lanes_of_piece(c.axis.vmax() + 1);
      c.consecutive |= stride == 1;
      c.score += lanes * (stride == 1             ? 2 * weight
                          : stride == 2 && !store ? weight
                          : store                 ? -4 * weight
                                                  : -2 * weight);
    }
  };
  for (UOp u : order)
    if (u.op() == Op::STORE || u.op() == Op::LOAD) count(u.src(0).src(1), u.op() == Op::STORE);
  std::erase_if(all, [](const Candidate& c) { return !c.consecutive; });
  std::ranges::stable_sort(all, std::greater<>(), [](const Candidate& c) {
    return std::tuple(c.score, c.axis.axis_type() == AxisType::UPCAST, c.axis.vmax());
  });
  std::vector<UOp> lanes;
  for (const Candidate& c : all) {
    const auto together = [&](UOp lane) {
      return std::ranges::any_of(order,
                                 [&](UOp u) { return u.has_range(c.axis) && u.has_range(lane); });
    };
    if (std::ranges::none_of(lanes, together)) lanes.push_back(c.axis);
  }
  return lanes;
}

}  // namespace beamline
