// What a schedule does on targets whose threads come in groups with shared memory (engine.md 5.2).
#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/node_map.h"
#include "engine/opt/schedule.h"
#include "engine/rangeify/ranges.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

bool is_group(AxisType t) { return t == AxisType::GROUP_REDUCE; }
bool is_thread(AxisType t) { return is_group(t) || t == AxisType::LOCAL || t == AxisType::WARP; }

}  // namespace

bool needs_local(OptKind kind) {
  return kind == OptKind::LOCAL || kind == OptKind::GROUP || kind == OptKind::GROUPTOP ||
         kind == OptKind::NOLOCALS;
}

// 04 of engine.md 5.1: a range of which a remainder is taken becomes two, the inner one of as many
// steps as the divisor, and the division goes away.
void KernelSchedule::split_ranges() {
  for (bool again = true; again;) {
    again = false;
    for (UOp u : toposort(ast_)) {
      if (u.op() != Op::FLOORMOD || u.src(0).op() != Op::RANGE || !u.src(1).is_const()) continue;
      const UOp r = u.src(0);
      const int64_t c = u.src(1).ival(), n = size(r);
      if (c < 2 || c >= n || n % c != 0) continue;
      Substitution apart;  // ids, to make room for the inner one
      for (UOp x : toposort(ast_))
        if (x.op() == Op::RANGE) apart.emplace(x, range(x.src(0), 2 * x.range_id(), x.axis_type()));
      const UOp whole = apart.at(r);
      ast_ = substitute(ast_, apart);
      const UOp outer = range(n / c, whole.range_id(), r.axis_type()),
                inner = range(c, whole.range_id() + 1, r.axis_type());
      replace({whole, outer * iconst(c) + inner, {outer, inner}, UOp{}, true});
      ast_ = simplify(ast_);
      again = true;
      break;
    }
  }
}

// A thread of a group has no memory for a row: what is read of one is computed where it is read.
void KernelSchedule::recompute_rows() {
  NodeMap<UOp> done;
  for (UOp u : toposort(ast_)) {
    std::vector<UOp> src;
    for (UOp s : u.srcs()) src.push_back(done.at(s));
    if (u.op() == Op::INDEX && src[0].op() == Op::STAGE)
      done.emplace(u, substitute(src[0].src(0), {{src[0].src(1), src[1]}}));
    else
      done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  ast_ = done.at(ast_);
}

// Output loops that every store and every reduction depends on are the grid: what is computed once
// for a row is not computed by each thread of it.
void KernelSchedule::globalize() {
  Substitution grid;
  const std::vector<UOp> order = toposort(ast_);
  for (UOp r : order) {
    if (r.op() != Op::RANGE || r.axis_type() != AxisType::WEAK) continue;
    const bool stored = std::ranges::all_of(
        order, [&](UOp u) { return u.op() != Op::STORE || u.src(0).has_range(r); });
    const bool everywhere = stored && !would_repeat_reduction(order, r);
    if (everywhere) grid.emplace(r, range(r.src(0), r.range_id(), AxisType::GLOBAL));
  }
  if (!grid.empty()) ast_ = substitute(ast_, grid);
}

std::optional<std::string> KernelSchedule::disable_locals(const Opt& opt) {
  for (UOp r : axes())
    if (is_thread(r.axis_type())) return "NOLOCALS comes before LOCAL, GROUP and GROUPTOP";
  if (no_locals_) return "NOLOCALS was applied already";
  no_locals_ = true;
  applied_.push_back(opt);
  return std::nullopt;
}

std::optional<std::string> KernelSchedule::check_padding(int64_t size, int64_t multiple) {
  const int64_t padded = (size + multiple - 1) / multiple * multiple;
  if (size * 4 <= padded)
    return fmt::format("{} would be padded to {}, fourfold or more", size, padded);
  return std::nullopt;
}
// The axis grows to a multiple of the amount; what it gained is gated.
KernelSchedule::Split KernelSchedule::padding(UOp r, int64_t multiple) const {
  const UOp whole =
      range((size(r) + multiple - 1) / multiple * multiple, r.range_id(), r.axis_type());
  return {r, whole, {whole}, UOp{}, false};
}

std::optional<std::string> KernelSchedule::pad_to(const Opt& opt, UOp r) {
  const AxisType t = r.axis_type();
  if (t == AxisType::UPCAST || t == AxisType::UNROLL || t == AxisType::THREAD ||
      t == AxisType::WARP)
    return fmt::format("axis {} is {}; PADTO takes a loop", opt.axis, axis_type_name(t));
  const int64_t n = size(r), k = opt.amount();
  if (k < 2) return "an amount under 2 changes nothing";
  if (n % k == 0) return fmt::format("{} is a multiple of {} already", n, k);
  if (auto why = check_padding(n, k)) return why;
  replace(padding(r, k));
  ast_ = simplify(ast_);
  applied_.push_back(opt);
  return std::nullopt;
}

// Every thread of a group keeps its partial results, for each of its written out values. `grouped`
// is about to become a loop of the group.
std::optional<std::string> KernelSchedule::check_shared_bytes(int64_t amount, int64_t new_groups,
                                                              UOp grouped) const {
  int64_t elements = amount, groups = new_groups, bytes = 0;
  for (UOp a : axes()) {
    const AxisType t = a.axis_type();
    if (is_thread(t) || t == AxisType::UPCAST) elements *= size(a);
    if (is_group(t)) groups *= size(a);
  }
  if (groups <= 1) return std::nullopt;
  for (UOp u : toposort(ast_)) {
    if (u.op() != Op::REDUCE) continue;
    const std::vector<UOp> src = u.srcs();
    const bool shares = std::any_of(src.begin() + 1, src.end(),
                                    [&](UOp r) { return r == grouped || is_group(r.axis_type()); });
    if (shares) bytes += dtype_bytes(u.dtype());
  }
  if (elements * bytes > target_.shared_bytes)
    return fmt::format("{} bytes of shared memory exceed the {} of a group", elements * bytes,
                       target_.shared_bytes);
  return std::nullopt;
}

std::optional<std::string> KernelSchedule::check_local(const Opt& opt, UOp r,
                                                       int64_t amount) const {
  if (no_locals_)
    return fmt::format("NOLOCALS was applied, {} needs them", opt_kind_name(opt.kind));
  const AxisType t = r.axis_type();
  const bool local = opt.kind == OptKind::LOCAL;
  if (local && t != AxisType::GLOBAL && t != AxisType::WEAK)
    return fmt::format("axis {} is {}; LOCAL takes an output axis", opt.axis, axis_type_name(t));
  int64_t threads = amount;
  for (UOp a : axes())
    if (is_thread(a.axis_type())) threads *= size(a);
  if (threads > target_.local_max)
    return fmt::format("{} threads exceed the {} of a group", threads, target_.local_max);
  if (local) return check_shared_bytes(amount, 1);
  if (!applied_.empty() && applied_[0].kind == OptKind::TC)
    return "a warp that uses its tensor cores has no group to reduce across";
  for (UOp u : toposort(ast_)) {
    if (u.op() != Op::REDUCE) continue;
    for (UOp inner : toposort(u.src(0)))
      for (size_t i = 1; inner.op() == Op::REDUCE && i < inner.nsrc(); i++)
        if (inner.src(i) == r) return "the reduction lies within another one";
  }
  return check_shared_bytes(amount, amount, r);
}

}  // namespace beamline
