// The reference's rules for targets whose threads come in groups (engine.md 5.3), in their order.
#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <tuple>

#include "engine/ir/tensor_core.h"
#include "engine/opt/heuristic.h"

namespace beamline {
namespace {

bool is_output(UOp r) {
  const AxisType t = r.axis_type();
  return t == AxisType::GLOBAL || t == AxisType::LOCAL || t == AxisType::WEAK;
}
UOp flat_index(UOp access) {
  UOp at = access.src(1);
  while (at.op() == Op::WHERE && at.src(2).is_invalid()) at = at.src(1);
  return at;
}

class GroupHeuristic {
 public:
  GroupHeuristic(UOp ast, const Target& target, const GroupLimits& limits)
      : schedule_(ast, target), target_(target), limits_(limits) {}

  Opts run() {
    if (tensor_core() || rows_times_vector() || group()) return schedule_.applied();
    write_out_masked();
    write_out_reused();
    unroll();
    if (size_of({AxisType::UPCAST, AxisType::UNROLL}) == 1 && !outputs().empty())
      apply(OptKind::UPCAST, outputs().back(), limits_.unroll_part);
    threads();
    return schedule_.applied();
  }

 private:
  // By `amount`, or not at all: also where it does not divide.
  bool apply(OptKind kind, UOp r, int64_t amount) {
    const std::vector<UOp> list = schedule_.axes_for(kind);
    const auto at = std::ranges::find(list, r);
    return at != list.end() && KernelSchedule::size(r) % amount == 0 &&
           !schedule_.apply({kind, at - list.begin(), {amount}});
  }
  bool apply_first(OptKind kind, UOp r, std::span<const int64_t> amounts) {
    return r && std::ranges::any_of(amounts, [&](int64_t a) { return apply(kind, r, a); });
  }
  std::vector<UOp> outputs() const {
    std::vector<UOp> out;
    for (UOp r : schedule_.axes())
      if (is_output(r)) out.push_back(r);
    return out;
  }
  int64_t size_of(std::initializer_list<AxisType> types) const {
    int64_t n = 1;
    for (UOp r : schedule_.axes())
      if (std::ranges::find(types, r.axis_type()) != types.end()) n *= KernelSchedule::size(r);
    return n;
  }
  int64_t output_size() const {
    int64_t n = 1;
    for (UOp r : outputs()) n *= KernelSchedule::size(r);
    return n;
  }
  std::vector<UOp> accesses() const {
    std::vector<UOp> out;
    for (UOp u : toposort(schedule_.ast()))
      if (u.op() == Op::INDEX) out.push_back(u);
    return out;
  }
  // What a split left of the loop with this id.
  UOp loop(int64_t id) const {
    for (UOp r : outputs())
      if (r.range_id() == id && r.axis_type() == AxisType::GLOBAL) return r;
    return {};
  }

  bool tensor_core() {
    if (target_.tensor_cores == TensorCoreUse::Off || tensor_cores(target_).empty()) return false;
    const auto use = static_cast<int64_t>(target_.tensor_cores);
    for (int64_t choice = 0; choice < 3; choice++) {
      if (schedule_.apply({OptKind::TC, choice, {-1, 0, use}})) continue;
      const auto [n, m] = schedule_.matrix_axes();
      apply_first(OptKind::UPCAST, loop(m), limits_.tile);
      apply_first(OptKind::UPCAST, loop(n), limits_.tile);
      apply_first(OptKind::LOCAL, loop(n), limits_.warps);
      return true;
    }
    return false;
  }

  // A vector along the reduction, each element of it used by many rows of a matrix.
  bool rows_times_vector() {
    const std::vector<UOp> reduces = schedule_.axes_for(OptKind::GROUP);
    if (reduces.empty() || KernelSchedule::size(reduces[0]) % limits_.rows_group != 0) return false;
    UOp product;
    for (UOp u : toposort(schedule_.ast()))
      if (u.op() == Op::REDUCE && u.reduce_op() == Op::ADD && !product) product = u.src(0);
    if (!product || product.op() != Op::MUL || product.src(0).op() != Op::INDEX ||
        product.src(1).op() != Op::INDEX)
      return false;
    const auto within = [&](UOp vector, UOp matrix) {
      const UOp v = flat_index(vector), m = flat_index(matrix);
      return stride_along(v, reduces[0]) == 1 &&
             std::ranges::all_of(v.ranges(), [&](const Node* r) { return m.has_range(UOp(r)); });
    };
    if (!within(product.src(0), product.src(1)) && !within(product.src(1), product.src(0)))
      return false;
    for (UOp r : outputs()) {
      if (KernelSchedule::size(r) % (limits_.rows_local * limits_.rows_upcast) != 0) continue;
      if (!apply(OptKind::GROUP, reduces[0], limits_.rows_group)) return false;
      const int64_t id = r.range_id();
      apply(OptKind::LOCAL, r, limits_.rows_local);
      if (const UOp rest = loop(id)) apply(OptKind::UPCAST, rest, limits_.rows_upcast);
      return true;
    }
    return false;
  }

  bool group() {
    if (output_size() > limits_.few_outputs) return false;
    const std::vector<UOp> reduces = schedule_.axes_for(OptKind::GROUPTOP);
    return std::ranges::any_of(
        std::span(reduces).first(std::min<size_t>(3, reduces.size())),
        [&](UOp r) { return apply(OptKind::GROUPTOP, r, limits_.group_top); });
  }

  // A short axis that a gate depends on: written out, the gate is known.
  void write_out_masked() {
    std::vector<UOp> chosen;
    int64_t product = 1;
    const std::vector<UOp> order = toposort(schedule_.ast());
    for (UOp r : outputs()) {
      const bool gated = std::ranges::any_of(
          order, [&](UOp u) { return u.op() == Op::WHERE && u.src(0).has_range(r); });
      const int64_t n = KernelSchedule::size(r);
      if (!gated || n > limits_.masked_axis || product * n > limits_.masked_product) continue;
      chosen.push_back(r);
      product *= n;
    }
    for (size_t i = chosen.size(); i-- > 0;)
      apply(OptKind::UPCAST, chosen[i], KernelSchedule::size(chosen[i]));
  }

  // An axis along which something that was loaded is used again.
  void write_out_reused() {
    std::vector<int64_t> done;
    while (output_size() >= limits_.many_outputs &&
           size_of({AxisType::UPCAST, AxisType::UNROLL}) < limits_.most_upcast) {
      using Rank = std::tuple<int64_t, int64_t, size_t, int64_t>;  // uses, strides, axis, amount
      std::optional<Rank> best;
      const std::vector<UOp> all = outputs(), reads = accesses();
      std::vector<UOp> held;
      for (UOp r : schedule_.axes())
        if (r.axis_type() == AxisType::UPCAST || r.axis_type() == AxisType::UNROLL)
          held.push_back(r);
      for (size_t i = 0; i < all.size(); i++) {
        const UOp r = all[i];
        if (std::ranges::find(done, r.range_id()) != done.end()) continue;
        const bool reused = std::ranges::any_of(reads, [&](UOp u) {
          const UOp at = flat_index(u);
          return !at.has_range(r) &&
                 std::ranges::all_of(held, [&](UOp h) { return at.has_range(h); });
        });
        if (!reused) continue;
        int64_t uses = 0, strides = 0;
        for (UOp u : reads) {
          uses += flat_index(u).has_range(r);
          strides += stride_along(flat_index(u), r).value_or(0);
        }
        for (int64_t amount : {3, 4})
          if (KernelSchedule::size(r) % amount == 0) {
            const Rank rank{uses, strides, i, amount};
            if (!best || rank < *best) best = rank;
          }
      }
      if (!best) return;
      const auto [uses, strides, axis, amount] = *best;
      done.push_back(all[axis].range_id());
      if (!apply(OptKind::UPCAST, all[axis], amount)) return;
    }
  }

  void unroll() {
    const int64_t held = size_of({AxisType::UPCAST, AxisType::UNROLL});
    const bool none = size_of({AxisType::UNROLL}) == 1;
    if ((held > limits_.unroll_part && !none) || held >= limits_.unroll_below) return;
    std::vector<UOp> reduces = schedule_.axes_for(OptKind::UNROLL);
    if (reduces.empty()) return;
    const int64_t n = KernelSchedule::size(reduces.back());
    if (n > limits_.unroll_all) {
      apply(OptKind::UNROLL, reduces.back(), limits_.unroll_part);
      return;
    }
    apply(OptKind::UNROLL, reduces.back(), n);
    reduces = schedule_.axes_for(OptKind::UNROLL);
    if (n > limits_.unroll_both || reduces.empty()) return;
    const int64_t second = KernelSchedule::size(reduces.back());
    if (second <= limits_.unroll_both) apply(OptKind::UNROLL, reduces.back(), second);
  }

  // Axes along which something is used again first, inner ones first.
  void threads() {
    struct Choice {
      UOp range;
      size_t axis = 0;
      bool reused = false;
      int64_t amount = 0;
    };
    std::vector<Choice> all;
    const std::vector<UOp> loops = outputs(), reads = accesses();
    for (size_t i = 0; i < loops.size(); i++) {
      if (loops[i].axis_type() == AxisType::LOCAL) continue;
      const bool reused =
          std::ranges::any_of(reads, [&](UOp u) { return !flat_index(u).has_range(loops[i]); });
      all.push_back({loops[i], i, reused});
    }
    std::ranges::sort(all, std::greater<>(),
                      [](const Choice& c) { return std::pair(c.reused, c.axis); });
    int64_t product = 1;
    std::vector<Choice> chosen;
    for (Choice c : all) {
      for (int64_t amount : {32, 16, 8, 4, 3, 2}) {
        if (amount == 32 && c.axis != 0) continue;
        if (KernelSchedule::size(c.range) % amount != 0 || product * amount > limits_.local_threads)
          continue;
        c.amount = amount;
        break;
      }
      if (c.amount == 0 || static_cast<int64_t>(chosen.size()) == limits_.local_axes) continue;
      product *= c.amount;
      chosen.push_back(c);
    }
    std::ranges::sort(chosen, {}, &Choice::axis);
    for (const Choice& c : chosen) apply(OptKind::LOCAL, c.range, c.amount);
  }

  KernelSchedule schedule_;
  const Target& target_;
  const GroupLimits& limits_;
};

}  // namespace

Opts group_heuristic(UOp ast, const Target& target, const GroupLimits& limits) {
  return GroupHeuristic(ast, target, limits).run();
}

}  // namespace beamline
