#include <algorithm>

#include "engine/opt/heuristic.h"
#include "engine/rangeify/ranges.h"

namespace beamline {
namespace {

// Loops that may be split: of the output, and none inside of which something is computed that does
// not depend on them. Those of which every thread gets as much come first, then long ones, then
// outer ones.
std::vector<int64_t> loops_to_split(const KernelSchedule& s, int64_t threads,
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
  std::ranges::stable_sort(out, {}, [&](int64_t i) {
    const int64_t n = KernelSchedule::size(axes[static_cast<size_t>(i)]);
    const bool even = n % threads == 0 || n >= threads * limits.uneven_steps;
    return even ? 0 : -(n / threads);
  });
  return out;
}

}  // namespace

Opts across_threads(UOp ast, const Opts& opts, const Target& target, double flops, double bytes,
                    const ThreadLimits& limits) {
  const double ns = std::max(flops / limits.flops_per_ns, bytes / limits.bytes_per_ns);
  const auto threads = static_cast<int64_t>(std::min<double>(target.threads, ns / limits.least_ns));
  if (threads < 2 || target.has_local) return opts;
  // What moves loops comes before PACK.
  const auto pack = std::ranges::find(opts, OptKind::PACK, &Opt::kind);
  const Opts before(opts.begin(), pack);
  const auto schedule = apply_opts(ast, before, target);
  if (!std::holds_alternative<KernelSchedule>(schedule)) return opts;
  for (int64_t axis : loops_to_split(std::get<KernelSchedule>(schedule), threads, limits)) {
    Opts out = before;
    out.push_back({OptKind::THREAD, axis, {threads}});
    out.insert(out.end(), pack, opts.end());
    if (std::holds_alternative<KernelSchedule>(apply_opts(ast, out, target))) return out;
  }
  return opts;
}

}  // namespace beamline
