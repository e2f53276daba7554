// TILE of a reduce axis. The first block begins with the identity and never reads the result, the
// others go on with what the block before has stored; what follows the reduction, the last one
// does.
#include <algorithm>

#include <fmt/format.h>

#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {

std::optional<std::string> KernelSchedule::check_blocks() const {
  if (target_.has_local)
    return fmt::format("a reduction in blocks is for a processor's caches; {} has none",
                       target_.name);
  if (in_blocks_) return "the reduction is in blocks already";
  if (std::ranges::find(applied_, OptKind::STREAM, &Opt::kind) != applied_.end())
    return "a reduction in blocks reads its result again: no STREAM";
  std::vector<UOp> stores, reduces;
  const std::vector<UOp> order = toposort(ast_);
  for (UOp u : order) {
    if (u.op() == Op::STAGE) return "a reduction in blocks is not for kernels that keep rows";
    if (u.op() == Op::STORE) stores.push_back(u);
    if (u.op() == Op::REDUCE) reduces.push_back(u);
  }
  if (stores.size() != 1 || reduces.size() != 1)
    return fmt::format(
        "a reduction in blocks is for kernels of one store and one reduction; here are {} and {}",
        stores.size(), reduces.size());
  const UOp at = stores[0].src(0), sum = reduces[0];
  if (sum.dtype() != at.dtype())
    return fmt::format("a sum of {} cannot wait in a result of {}", dtype_name(sum.dtype()),
                       dtype_name(at.dtype()));
  for (const Node* n : sum.ranges())
    if (!at.has_range(UOp(n))) return "a loop around the reduction does not move in the result";
  for (UOp u : order)
    if (u.op() == Op::INDEX && u != at && memory_of(u) == memory_of(at))
      return "the kernel reads its result";
  return std::nullopt;
}

bool KernelSchedule::over_blocks(UOp r) const {
  if (!in_blocks_ || r.axis_type() != AxisType::WEAK) return false;
  return std::ranges::none_of(toposort(ast_),
                              [&](UOp u) { return u.op() == Op::STORE && u.src(0).has_range(r); });
}

void KernelSchedule::reduce_in_blocks(UOp r, int64_t k) {
  const int64_t n = size(r), count = (n + k - 1) / k;
  // Ids order the axes: the others make room for the outermost.
  Substitution renumbered;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::RANGE)
      renumbered.emplace(u, range(u.src(0), u.range_id() + 1, u.axis_type()));
  r = renumbered.at(r);
  ast_ = substitute(ast_, renumbered);
  const UOp block = range(count, 0, AxisType::WEAK), part = range(k, r.range_id(), r.axis_type());
  replace({r, block * iconst(k) + part, {part}, {}, n % k == 0});

  UOp store, sum;
  for (UOp u : toposort(ast_)) {
    if (u.op() == Op::STORE) store = u;
    if (u.op() == Op::REDUCE) sum = u;
  }
  const UOp at = store.src(0), again = iconst(0) < block;
  UOp valid;
  const UOp place = split_gate(at.src(1), valid);
  const UOp before = make(Op::INDEX, at.dtype(),
                          {at.src(0), where(valid ? valid & again : again, place, invalid())});
  const Op op = sum.reduce_op();
  const UOp so_far = alu(op, {where(again, before, reduce_identity(op, sum.dtype())), sum});
  UOp value = substitute(store.src(1), {{sum, so_far}});
  if (value != so_far) value = where(iconst(count - 2) < block, value, so_far);
  // One store: one END, or no loop of the output at all.
  const UOp all = ast_.src(0);
  std::vector<UOp> ended{make(Op::STORE, DType::Void, {at, value}), block};
  for (size_t i = 1; i < all.nsrc() && all.op() == Op::END; i++) ended.push_back(all.src(i));
  ast_ = simplify(rebuild(ast_, std::vector<UOp>{make(Op::END, DType::Void, ended)}));
  in_blocks_ = true;
}

}  // namespace beamline
