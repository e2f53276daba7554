// SKIP. A reduction of padded values adds nothing where its gates are closed: steps for which they
// are, whatever the other steps of the reduction and of the register tile, are left out.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "engine/opt/schedule.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

bool reads_memory(UOp value) {
  return std::ranges::any_of(toposort(value), [](UOp u) { return u.op() == Op::INDEX; });
}

// What must hold where `value` is not the identity of the reduction by `op`.
std::vector<UOp> needed(UOp value, Op op) {
  std::vector<UOp> out, todo{value};
  while (!todo.empty()) {
    const UOp u = todo.back();
    todo.pop_back();
    if (u.op() == Op::WHERE) {
      std::vector<UOp> condition;
      conjuncts(u.src(0), condition);
      const bool holds = std::ranges::all_of(
          condition, [&](UOp c) { return std::ranges::find(out, c) != out.end(); });
      if (!holds && u.src(2) != reduce_identity(op, u.dtype())) continue;
      if (!holds) out.insert(out.end(), condition.begin(), condition.end());
      todo.push_back(u.src(1));
    } else if (op != Op::ADD) {
      continue;
    } else if (u.op() == Op::MUL) {
      todo.push_back(u.src(1));
      todo.push_back(u.src(0));
    } else if (u.op() == Op::CAST) {
      todo.push_back(u.src(0));
    } else if (u.op() == Op::INDEX) {
      UOp gate;
      split_gate(u.src(1), gate);
      if (gate) conjuncts(gate, out);
    }
  }
  return out;
}

// gate == (0 <= offset + step * r).
struct Bound {
  UOp offset;
  int64_t step = 0;
};
std::optional<Bound> bound_of(UOp gate, UOp r) {
  if (gate.op() != Op::CMPLT || gate.src(0).dtype() != DType::WeakInt) return std::nullopt;
  const UOp left = gate.src(1) - gate.src(0) - iconst(1);
  const auto step = linear_stride(left, r);
  if (!step || *step == 0) return std::nullopt;
  return Bound{simplify(substitute(left, {{r, iconst(0)}})), *step};
}

// The largest that `value` becomes while the ranges `inside` move; null: not a sum of multiples of
// them.
UOp largest(UOp value, const std::vector<UOp>& inside) {
  Substitution extremes;
  for (UOp r : inside) {
    if (!value.has_range(r)) continue;
    const auto step = linear_stride(value, r);
    if (!step) return {};
    extremes.emplace(r, iconst(*step > 0 ? r.vmax() : 0));
  }
  return extremes.empty() ? value : simplify(substitute(value, extremes));
}

UOp minimum(UOp a, UOp b) { return iconst(0) - maximum(iconst(0) - a, iconst(0) - b); }

}  // namespace

std::optional<std::string> KernelSchedule::skip(const Opt& opt) {
  if (target_.has_local)
    return fmt::format("SKIP is for processors; {} has groups of threads", target_.name);
  const std::vector<UOp> list = axes();
  if (opt.axis >= static_cast<int64_t>(list.size()))
    return fmt::format("axis {} does not exist, SKIP has {} axes here", opt.axis, list.size());
  const UOp r = list[static_cast<size_t>(opt.axis)];
  if (r.axis_type() != AxisType::REDUCE && r.axis_type() != AxisType::UNROLL)
    return fmt::format("axis {} is {}; SKIP takes one of a reduction", opt.axis,
                       axis_type_name(r.axis_type()));
  for (const Skipping& s : skippings_)
    if (s.range == r) return fmt::format("axis {} skips padding already", opt.axis);
  const auto sums_over = [](UOp sum, UOp a) {
    for (size_t i = 1; i < sum.nsrc(); i++)
      if (sum.src(i) == a) return true;
    return false;
  };
  UOp sum;
  for (UOp u : toposort(ast_)) {
    if (u.op() != Op::REDUCE || !sums_over(u, r)) continue;
    if (sum) return fmt::format("axis {} is of several reductions", opt.axis);
    sum = u;
  }
  if (!sum) return fmt::format("axis {} is of a matrix product", opt.axis);
  std::vector<UOp> inside;
  for (UOp a : list)
    if (a != r && (is_written_out(a) || sums_over(sum, a))) inside.push_back(a);

  Skipping out{r, {}, {}, {}};
  UOp begin = iconst(0), end = iconst(size(r));
  for (UOp gate : needed(sum.src(0), sum.reduce_op())) {
    if (!gate.has_range(r) || reads_memory(gate)) continue;
    if (is_written_out(r)) {
      const bool known =
          std::ranges::all_of(gate.ranges(), [](const Node* n) { return is_written_out(UOp(n)); });
      if (known) out.gates.push_back(gate);
      continue;
    }
    const auto bound = bound_of(gate, r);
    const UOp offset = bound ? largest(bound->offset, inside) : UOp{};
    if (!offset) continue;
    const UOp by = iconst(std::abs(bound->step));
    if (bound->step > 0)  // r >= -offset / step, rounded up
      begin = maximum(begin, iconst(0) - offset / by);
    else
      end = minimum(end, offset / by + iconst(1));
    if (offset == bound->offset) out.gates.push_back(gate);
  }
  if (!is_written_out(r)) {
    // One step at least, which the gates then close.
    begin = simplify(minimum(begin, iconst(size(r) - 1)));
    const UOp count = simplify(end - begin);
    out.begin = begin;
    out.count = simplify(maximum(count, iconst(1)));
    if (count.vmin() < 1) out.gates.clear();
    if (out.count.is_const(size(r))) out.begin = {};
  }
  if (is_written_out(r) ? out.gates.empty() : !out.begin)
    return fmt::format("nothing that axis {} reads is padded along it where it is known", opt.axis);
  skippings_.push_back(std::move(out));
  applied_.push_back(opt);
  return std::nullopt;
}

}  // namespace beamline
