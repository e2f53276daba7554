#include <algorithm>

#include "engine/opt/heuristic.h"
#include "engine/rangeify/ranges.h"

namespace beamline {
namespace {

// Loops that may be split: of the output, and none inside of which something is computed that does
// not depend on them. Those of which every thread gets as much come first, then long ones, then
// outer ones; but of a product that copies and fetches nothing the inner one, which reads one
// factor again and again: it is less for each thread then.
std::vector<int64_t> loops_to_split(const KernelSchedule& s, int64_t threads, bool copies,
                                    const ThreadLimits& limits) {
  const std::vector<UOp> axes = s.axes();
  std::vector<UOp> order = toposort(s.ast());
  // What a product by lanes sums of one factor alone is little beside the product.
  std::erase_if(order, [](UOp u) { return u.op() == Op::REDUCE && u.src(0).op() == Op::WMMA; });
  std::vector<int64_t> out;
  for (size_t i = 0; i < axes.size(); i++) {
    const UOp r = axes[i];
    if (r.axis_type() == AxisType::WEAK && KernelSchedule::size(r) >= threads &&
        !would_repeat_reduction(order, r))
      out.push_back(static_cast<int64_t>(i));
  }
  const auto loops = std::ranges::count(axes, AxisType::WEAK, &UOp::axis_type);
  if (!copies && loops == 2 && std::ranges::find(order, Op::REDUCE, &UOp::op) != order.end())
    std::ranges::reverse(out);
  std::ranges::stable_sort(out, {}, [&](int64_t i) {
    const int64_t n = KernelSchedule::size(axes[static_cast<size_t>(i)]);
    const bool even = n % threads == 0 || n >= threads * limits.uneven_steps;
    return even ? 0 : -(n / threads);
  });
  return out;
}

// The axes that SKIP names have other numbers in `split`, and of the loops around what PACK copies
// one may be the threads'.
Opts renumbered(Opts opts, const KernelSchedule& whole, const KernelSchedule& split) {
  const std::vector<UOp> from = whole.axes(), to = split.axes();
  const auto is_loop = [](UOp r) { return r.axis_type() == AxisType::WEAK; };
  const auto still_loop = [&](UOp r) {
    return std::ranges::any_of(
        to, [&](UOp now) { return is_loop(now) && now.range_id() == r.range_id(); });
  };
  for (Opt& o : opts) {
    if (o.kind == OptKind::SKIP) {
      const auto at = std::ranges::find(to, from.at(static_cast<size_t>(o.axis)));
      if (at != to.end()) o.axis = at - to.begin();
    } else if (o.kind == OptKind::PACK) {
      int64_t level = 0, loops = 0;
      for (UOp r : from)
        if (is_loop(r) && loops++ < o.amount()) level += still_loop(r);
      o.arg = {level};
    }
  }
  return opts;
}

}  // namespace

Opts across_threads(UOp ast, const Opts& opts, const Target& target, double flops, double bytes,
                    const ThreadLimits& limits) {
  const double ns = std::max(flops / limits.flops_per_ns, bytes / limits.bytes_per_ns);
  const auto threads = static_cast<int64_t>(std::min<double>(target.threads, ns / limits.least_ns));
  if (threads < 2 || target.has_local) return opts;
  // What splits loops comes before what moves data.
  const auto moves = std::ranges::find_if(opts, [](const Opt& o) {
    return o.kind == OptKind::PACK || o.kind == OptKind::LAYOUT || o.kind == OptKind::SKIP ||
           (o.kind == OptKind::PREFETCH && o.axis > 0);
  });
  const Opts before(opts.begin(), moves);
  const auto schedule = apply_opts(ast, before, target);
  if (!std::holds_alternative<KernelSchedule>(schedule)) return opts;
  const bool copies = std::ranges::any_of(moves, opts.end(), [](const Opt& o) {
    return o.kind == OptKind::PACK || o.kind == OptKind::PREFETCH;
  });
  for (int64_t axis : loops_to_split(std::get<KernelSchedule>(schedule), threads, copies, limits)) {
    Opts out = before;
    out.push_back({OptKind::THREAD, axis, {threads}});
    const auto split = apply_opts(ast, out, target);
    if (!std::holds_alternative<KernelSchedule>(split)) continue;
    const Opts rest = renumbered({moves, opts.end()}, std::get<KernelSchedule>(schedule),
                                 std::get<KernelSchedule>(split));
    out.insert(out.end(), rest.begin(), rest.end());
    if (std::holds_alternative<KernelSchedule>(apply_opts(ast, out, target))) return out;
  }
  return opts;
}

}  // namespace beamline
