#include "engine/opt/actions.h"

#include <algorithm>

namespace beamline {
namespace {

constexpr int64_t upcasts[] = {2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 32, 48, 64, 0};
constexpr int64_t unrolls[] = {2, 4, 8, 16, 32, 64, 0};
constexpr int64_t threads[] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64};
constexpr int64_t tiles[] = {2, 3, 4, 8, 16};
// Of targets whose threads come in groups.
constexpr int64_t locals[] = {2, 3, 4, 8, 13, 16, 29, 32};
constexpr int64_t group_tops[] = {13, 16, 28, 29, 32, 49, 64, 256};
constexpr int64_t groups[] = {4, 8, 16, 0};
constexpr int64_t paddings[] = {4, 8, 16, 32};
constexpr int64_t max_axes = 8;
constexpr int64_t stream_bytes = int64_t{1} << 20;
constexpr int64_t most_choices = 9;  // of axes of a matrix product

}  // namespace

Opts legal_actions(UOp ast, const Opts& so_far, const Target& target) {
  Opts out;
  const auto base = apply_opts(ast, so_far, target);
  const auto* schedule = std::get_if<KernelSchedule>(&base);
  if (!schedule) return out;
  const auto offer = [&](OptKind kind, std::span<const int64_t> amounts) {
    const std::vector<UOp> axes = schedule->axes_for(kind);
    for (int64_t axis = 0; axis < std::min<int64_t>(max_axes, static_cast<int64_t>(axes.size()));
         axis++)
      for (int64_t amount : amounts) {
        // The whole axis is written 0; its number would be the same candidate twice.
        if (amount != 0 && amount == KernelSchedule::size(axes[static_cast<size_t>(axis)]))
          continue;
        KernelSchedule trial = *schedule;
        if (!trial.apply({kind, axis, {amount}})) out.push_back(trial.applied().back());
      }
  };
  if (so_far.empty() && target.tensor_cores != TensorCoreUse::Off)
    for (int64_t choice = 0; choice < most_choices; choice++) {
      KernelSchedule trial = *schedule;
      if (!trial.apply({OptKind::TC, choice, {-1, 2, static_cast<int64_t>(target.tensor_cores)}}))
        out.push_back(trial.applied().back());
    }
  offer(OptKind::UPCAST, upcasts);
  offer(OptKind::UNROLL, unrolls);
  offer(OptKind::THREAD, threads);
  offer(OptKind::TILE, tiles);
  if (target.has_local) {
    offer(OptKind::LOCAL, locals);
    offer(OptKind::GROUPTOP, group_tops);
    offer(OptKind::GROUP, groups);
    offer(OptKind::PADTO, paddings);
    KernelSchedule trial = *schedule;
    if (!trial.apply({OptKind::NOLOCALS, 0, {}})) out.push_back({OptKind::NOLOCALS, 0, {}});
  }
  const auto count = std::min<int64_t>(max_axes, static_cast<int64_t>(schedule->axes().size()));
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = i + 1; j < count; j++) {
      const Opt swap{OptKind::SWAP, i, {j}};
      if (!so_far.empty() && so_far.back() == swap) continue;  // there and back
      KernelSchedule trial = *schedule;
      if (!trial.apply(swap)) out.push_back(swap);
    }
  int64_t loops = 0;
  for (UOp r : schedule->axes()) loops += r.axis_type() == AxisType::WEAK;
  std::vector<int64_t> slots;
  for (UOp u : toposort(schedule->ast()))
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global) slots.push_back(u.param().slot);
  std::ranges::sort(slots);
  for (int64_t slot : slots)
    for (int64_t level = 0; level <= std::min(loops, max_axes); level++) {
      const Opt pack{OptKind::PACK, slot, {level}};
      KernelSchedule trial = *schedule;
      if (!trial.apply(pack)) out.push_back(pack);
    }
  // Only results that leave the inner caches anyway.
  int64_t stored = 0;
  for (UOp u : toposort(schedule->ast()))
    if (u.op() == Op::STORE) stored += u.src(0).src(0).numel() * dtype_bytes(u.src(0).dtype());
  KernelSchedule trial = *schedule;
  if (stored >= stream_bytes && !trial.apply({OptKind::STREAM, 0, {}}))
    out.push_back({OptKind::STREAM, 0, {}});
  return out;
}

std::string_view action_set_name() { return "cpu-6"; }

}  // namespace beamline
