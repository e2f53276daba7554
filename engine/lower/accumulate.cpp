#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

// What a matrix product of nothing else is added to, its unit adds; steps that are written out it
// takes one after another.
UOp added_to_product(UOp product, UOp sum, const std::vector<UOp>& unrolled) {
  std::vector<UOp> src = product.srcs();
  CHECK(src[2].is_const(0));
  src[2] = sum;
  src.insert(src.end(), unrolled.begin(), unrolled.end());
  return rebuild(product, src);
}

// For every store into memory whose place is known where the reduction starts: for all of its
// values that are written out together.
std::vector<UOp> hints(const std::vector<UOp>& order, UOp reduction) {
  std::vector<UOp> out;
  for (UOp u : order) {
    if (u.op() != Op::STORE || memory_of(u.src(0)).op() != Op::PARAM) continue;
    const bool known = std::ranges::all_of(
        u.src(0).ranges(), [&](const Node* r) { return reduction.has_range(UOp(r)); });
    if (known) out.push_back(make(Op::NOOP, DType::Void, {u.src(0)}));
  }
  return out;
}

// What is fetched in each step of a reduction over `loops`: of operands that these move, inside of
// all other loops that do. Passes may have given the schedule's ranges another end.
std::vector<UOp> hints(const std::vector<UOp>& order, const std::vector<Prefetch>& prefetches,
                       UOp reduction, const std::vector<UOp>& loops) {
  if (prefetches.empty()) return {};
  std::unordered_map<int64_t, UOp> ranges, params;  // by id, by slot
  for (UOp u : order) {
    if (u.op() == Op::RANGE) ranges.emplace(u.range_id(), u);
    if (u.op() == Op::PARAM) params.emplace(u.param().slot, u);
  }
  std::vector<UOp> out;
  for (const Prefetch& f : prefetches) {
    const auto memory = params.find(f.slot);
    if (memory == params.end()) continue;  // simplified away
    for (UOp at : f.at) {
      Substitution now;
      for (const Node* n : at.ranges())
        if (const auto r = ranges.find(UOp(n).range_id()); r != ranges.end())
          now.emplace(UOp(n), r->second);
      at = substitute(at, now);
      bool moves = false, inside = true;
      for (const Node* n : at.ranges()) {
        const bool loop = std::ranges::find(loops, UOp(n)) != loops.end();
        moves |= loop, inside &= loop || reduction.has_range(UOp(n));
      }
      if (moves && inside)
        out.push_back(make(Op::NOOP, DType::Void,
                           {make(Op::INDEX, memory->second.dtype(), {memory->second, at})}));
    }
  }
  return out;
}

}  // namespace

UOp reduce_to_accumulator(UOp ast, const std::vector<UOp>& lanes, bool prefetch,
                          const std::vector<Prefetch>& prefetches) {
  const auto is_lane = [&](UOp r) { return std::ranges::find(lanes, r) != lanes.end(); };
  NodeMap<UOp> done;
  const std::vector<UOp> order = toposort(ast);
  int64_t next_slot = 0, next_range = 0;  // after those of packed operands
  for (UOp u : order) {
    if (u.op() == Op::BUFFER) next_slot = std::max(next_slot, u.param().slot + 1);
    if (u.op() == Op::RANGE) next_range = std::max(next_range, u.range_id() + 1);
  }
  std::unordered_set<UOp, UOpHash> ended;
  for (UOp u : order) {
    const Provenance::Of from(u);
    std::vector<UOp> src;
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    if (u.op() != Op::REDUCE) {
      done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
      continue;
    }
    const Op op = u.reduce_op();
    // Sums over the same steps are loops of their own, each where it is needed.
    if (!std::ranges::all_of(std::span(src).subspan(1), [&](UOp r) { return is_written_out(r); })) {
      Substitution renamed;
      for (size_t i = 1; i < src.size(); i++)
        if (!is_written_out(src[i]) && !ended.insert(src[i]).second)
          renamed.emplace(src[i], range(src[i].src(0), next_range++, src[i].axis_type()));
      if (!renamed.empty())
        for (UOp& s : src) s = substitute(s, renamed);
    }
    std::vector<UOp> loops, unrolled;
    UOp reduced_lanes;
    for (size_t i = 1; i < src.size(); i++) {
      if (is_lane(src[i]))
        reduced_lanes = src[i];
      else
        (is_written_out(src[i]) ? unrolled : loops).push_back(src[i]);
    }
    const bool product = op == Op::ADD && src[0].op() == Op::WMMA && src[0].src(2).is_const(0);
    if (loops.empty()) {
      UOp sum = rebuild(u, src);
      if (product) sum = added_to_product(src[0], src[0].src(2), unrolled);
      if (product && reduced_lanes) sum = reduce(op, sum, std::vector<UOp>{reduced_lanes}, 0);
      done.emplace(u, sum);
      continue;
    }
    // One register for each value of the open expanded axes; the lane axis is innermost.
    std::vector<UOp> open, outer;
    for (const Node* n : u.ranges()) (is_written_out(UOp(n)) ? open : outer).push_back(UOp(n));
    if (reduced_lanes) open.push_back(reduced_lanes);
    std::ranges::sort(open, {}, [&](UOp r) { return std::pair(is_lane(r), r.range_id()); });
    std::vector<UOp> before = outer;
    if (prefetch)
      for (UOp hint : hints(order, u)) before.push_back(hint);
    int64_t size = 1;
    UOp at = iconst(0);
    for (size_t i = open.size(); i-- > 0;) {
      at = open[i] * iconst(size) + at;
      size *= open[i].vmax() + 1;
    }
    ParamArg arg;
    arg.slot = next_slot++;
    arg.addrspace = AddrSpace::Reg;
    const int64_t shape[] = {size};
    const UOp acc = buffer(arg, u.dtype(), shape);
    const auto after = [&](std::vector<UOp> deps) {
      deps.insert(deps.begin(), acc);
      return deps.size() == 1 ? acc : make(Op::AFTER, acc.dtype(), deps);
    };
    const UOp init =
        make(Op::STORE, DType::Void,
             {make(Op::INDEX, acc.dtype(), {after(before), at}), reduce_identity(op, u.dtype())});
    std::vector<UOp> deps{init};
    deps.insert(deps.end(), loops.begin(), loops.end());
    for (UOp hint : hints(order, prefetches, u, loops)) deps.push_back(hint);
    const UOp place = make(Op::INDEX, acc.dtype(), {after(deps), at});
    const UOp step = unrolled.empty() || product ? src[0] : reduce(op, src[0], unrolled, 0);
    const UOp so_far = make(Op::LOAD, acc.dtype(), {place});
    const UOp update =
        make(Op::STORE, DType::Void,
             {place, product ? added_to_product(step, so_far, unrolled) : alu(op, {so_far, step})});
    std::vector<UOp> end{update};
    end.insert(end.end(), loops.begin(), loops.end());
    const UOp total =
        make(Op::LOAD, acc.dtype(),
             {make(Op::INDEX, acc.dtype(), {after({make(Op::END, DType::Void, end)}), at})});
    done.emplace(u, reduced_lanes ? reduce(op, total, std::vector<UOp>{reduced_lanes}, 0) : total);
  }
  return done.at(ast);
}

}  // namespace beamline
