#include "engine/opt/actions.h"

#include <algorithm>

namespace beamline {
namespace {

constexpr int64_t upcasts[] = {2,  3,  4,  5,  6,  7,  8,  9,  12,  13,  14, 16,
                               20, 24, 28, 32, 48, 64, 80, 96, 128, 256, 0};
constexpr int64_t unrolls[] = {2, 4, 8, 16, 32, 64, 0};
constexpr int64_t threads[] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64};
constexpr int64_t tiles[] = {2, 3, 4, 8, 16, 32, 64};
constexpr int64_t reduce_tiles[] = {32,  64,  128, 256,
                                    512, 768, 1024};  // elements, however they are unrolled
// Of targets whose threads come in groups.
constexpr int64_t locals[] = {2, 3, 4, 8, 13, 16, 29, 32};
constexpr int64_t group_tops[] = {13, 16, 28, 29, 32, 49, 64, 256};
constexpr int64_t groups[] = {4, 8, 16, 0};
constexpr int64_t paddings[] = {4, 8, 16, 32};
constexpr int64_t max_axes = 8;
constexpr int64_t most_apart = 32;  // rows written out that do not lie side by side
constexpr int64_t few = 32;  // blocks of so many are offered for twice as many iterations only
constexpr int64_t stream_bytes = int64_t{1} << 20, prefetch_bytes = int64_t{2} << 20,
                  ahead_bytes = int64_t{1} << 18;
constexpr int64_t most_choices = 9;  // of axes of a matrix product

}  // namespace

Opts legal_actions(UOp ast, const Opts& so_far, const Target& target) {
  Opts out;
  const auto base = apply_opts(ast, so_far, target);
  const auto* schedule = std::get_if<KernelSchedule>(&base);
  if (!schedule) return out;
  const auto try_opt = [&](const Opt& opt) {
    if (const auto legal = schedule->legal(opt)) out.push_back(*legal);
  };
  // Of a processor's long vectors: side by side elements of an operand or of a result.
  std::vector<UOp> places;
  for (UOp u : toposort(schedule->ast()))
    if (u.op() == Op::INDEX) places.push_back(u.src(1));
  const auto beside = [&](UOp r) {
    return std::ranges::any_of(places, [&](UOp at) {
      UOp gate;
      return at.has_range(r) && unit_stride(split_gate(at, gate), r);
    });
  };
  const auto offer = [&](OptKind kind, std::span<const int64_t> amounts) {
    const std::vector<UOp> axes = schedule->axes_for(kind);
    for (int64_t axis = 0; axis < std::min<int64_t>(max_axes, static_cast<int64_t>(axes.size()));
         axis++) {
      const UOp r = axes[static_cast<size_t>(axis)];
      const bool only_few = kind == OptKind::UPCAST && !target.has_local && !beside(r);
      for (int64_t amount : amounts) {
        // The whole axis is written 0; its number would be the same candidate twice.
        if (amount != 0 && amount == KernelSchedule::size(r)) continue;
        if (!only_few || amount <= most_apart) try_opt({kind, axis, {amount}});
      }
    }
  };
  const std::vector<UOp> axes = schedule->axes();
  const auto count = std::min<int64_t>(max_axes, static_cast<int64_t>(axes.size()));
  if (so_far.empty() && target.tensor_cores != TensorCoreUse::Off)
    for (int64_t choice = 0; choice < most_choices; choice++)
      try_opt({OptKind::TC, choice, {-1, 2, static_cast<int64_t>(target.tensor_cores)}});
  offer(OptKind::UPCAST, upcasts);
  offer(OptKind::UNROLL, unrolls);
  offer(OptKind::THREAD, threads);
  int64_t unrolled = 1, loops = 0;
  for (UOp r : axes) {
    if (r.axis_type() == AxisType::UNROLL) unrolled *= KernelSchedule::size(r);
    loops += r.axis_type() == AxisType::WEAK;
  }
  for (int64_t axis = 0; axis < count; axis++) {
    const UOp r = axes[static_cast<size_t>(axis)];
    const int64_t n = KernelSchedule::size(r);
    if (r.axis_type() == AxisType::REDUCE)
      for (int64_t amount : reduce_tiles)
        try_opt({OptKind::TILE, axis, {(amount + unrolled - 1) / unrolled}});
    else
      for (int64_t amount : tiles)
        if (amount < few || amount * 2 <= n) try_opt({OptKind::TILE, axis, {amount}});
  }
  if (target.has_local) {
    offer(OptKind::LOCAL, locals);
    offer(OptKind::GROUPTOP, group_tops);
    offer(OptKind::GROUP, groups);
    offer(OptKind::PADTO, paddings);
    try_opt({OptKind::NOLOCALS, 0, {}});
  }
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = i + 1; j < count; j++) {
      const Opt swap{OptKind::SWAP, i, {j}};
      if (so_far.empty() || !(so_far.back() == swap)) try_opt(swap);  // there and back
    }
  std::vector<int64_t> slots, large;
  int64_t stored = 0;
  for (UOp u : toposort(schedule->ast())) {
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global) {
      slots.push_back(u.param().slot);
      if (u.numel() * dtype_bytes(u.dtype()) >= ahead_bytes) large.push_back(u.param().slot);
    }
    if (u.op() == Op::STORE) stored += u.src(0).src(0).numel() * dtype_bytes(u.src(0).dtype());
  }
  std::ranges::sort(slots);
  for (int64_t axis = 0; axis < static_cast<int64_t>(axes.size()); axis++)
    try_opt({OptKind::SKIP, axis, {}});
  for (int64_t slot : slots) try_opt({OptKind::LAYOUT, slot, {}});
  for (int64_t slot : slots)
    for (int64_t level = 0; level <= std::min(loops, max_axes); level++)
      try_opt({OptKind::PACK, slot, {level}});
  // Only results that leave the inner caches anyway.
  if (stored >= stream_bytes) try_opt({OptKind::STREAM, 0, {}});
  if (stored >= prefetch_bytes) try_opt({OptKind::PREFETCH, 0, {}});
  std::ranges::sort(large);
  for (int64_t slot : large)
    if (slot > 0) try_opt({OptKind::PREFETCH, slot, {}});
  return out;
}

std::string_view action_set_name() { return "cpu-8"; }

}  // namespace beamline
