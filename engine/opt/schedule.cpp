#include "engine/opt/schedule.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"
#include "engine/rules/verify.h"

namespace beamline {
namespace {

// Order of axis types from the outermost loop inwards (engine.md 5.2).
int position(AxisType t) {
  switch (t) {
    case AxisType::DEVICE: return -2;
    case AxisType::WEAK:
    case AxisType::LOOP:
    case AxisType::PLACEHOLDER: return -1;
    case AxisType::THREAD:
    case AxisType::GLOBAL: return 0;
    case AxisType::WARP: return 1;
    case AxisType::LOCAL:
    case AxisType::GROUP_REDUCE: return 2;
    case AxisType::UPCAST: return 3;
    case AxisType::REDUCE: return 4;
    default: return 5;
  }
}

// A kept row is read by its place, whatever loops have become of the one that fills it.
UOp one_dimension(UOp memory) {
  if (memory.op() != Op::STAGE || memory.shape().size() == 1) return memory;
  const int64_t n[] = {memory.numel()};
  return make(Op::RESHAPE, memory.dtype(), {memory, dims(n)});
}

constexpr int64_t max_unroll = 64;
constexpr int64_t max_thread_amount = 256;

}  // namespace

KernelSchedule::KernelSchedule(UOp ast, const Target& target) : ast_(ast), target_(target) {
  CHECK(ast.op() == Op::SINK);
  if (!target.has_local) return;
  recompute_rows();
  split_ranges();
  globalize();
}

int64_t KernelSchedule::size(UOp r) { return r.vmax() + 1; }

std::vector<UOp> KernelSchedule::axes() const {
  std::vector<UOp> out;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::RANGE && size(u) > 1) out.push_back(u);
  std::ranges::sort(out, {},
                    [](UOp r) { return std::pair(position(r.axis_type()), r.range_id()); });
  return out;
}

std::vector<UOp> KernelSchedule::axes_for(OptKind kind) const {
  std::vector<UOp> out;
  for (UOp r : axes()) {
    const AxisType t = r.axis_type();
    const bool reduces = t == AxisType::REDUCE || t == AxisType::GROUP_REDUCE;
    if (kind == OptKind::UNROLL                               ? reduces
        : kind == OptKind::GROUP || kind == OptKind::GROUPTOP ? t == AxisType::REDUCE
                                                              : true)
      out.push_back(r);
  }
  return out;
}

UOp KernelSchedule::shift_to(UOp r, int64_t k, AxisType type, bool top) {
  const int64_t n = size(r);
  const int64_t outer = (n + k - 1) / k;
  int64_t id = 0;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::RANGE) id = std::max(id, u.range_id() + 1);
  const UOp rest = outer == 1 ? UOp{} : range(outer, r.range_id(), r.axis_type());
  const UOp part = range(k, id, type);
  const UOp value = outer == 1 ? part : top ? part * iconst(outer) + rest : rest * iconst(k) + part;
  // A part that stays a loop is the innermost of them: its id says so, and the END must agree.
  const bool loop = type == r.axis_type();
  Split split{r, value, {}, loop ? part : UOp{}, n % k == 0};
  if (rest) split.parts.push_back(rest);
  if (!loop) split.parts.push_back(part);
  replace(split);
  ast_ = simplify(ast_);
  return part;
}

void KernelSchedule::replace(const Split& split, UOp* follow) {
  const auto& [r, value, parts, last, divides] = split;
  const int64_t n = size(r);
  const UOp inside = divides ? UOp{} : value < iconst(n);
  const UOp clamped = divides ? value : where(inside, value, iconst(n - 1));

  // Reads that move by one or two elements a step can become lanes and keep a mask; others read a
  // clamped place, whose value is never used. What is written is always gated, also where it is
  // read: another thread may be writing the clamped place.
  const auto written = [&](UOp memory) {
    return std::ranges::any_of(toposort(ast_), [&](UOp s) {
      return s.op() == Op::STORE && memory_of(s.src(0)) == memory;
    });
  };
  Substitution done;
  for (UOp u : toposort(ast_)) {
    if (u == r) {
      done.emplace(u, value);
      continue;
    }
    std::vector<UOp> src;
    bool ended = false;
    for (size_t i = 0; i < u.nsrc(); i++) {
      const bool ends = (u.op() == Op::END || u.op() == Op::REDUCE || u.op() == Op::STAGE) &&
                        i > 0 && u.src(i) == r;
      if (!ends) {
        src.push_back(done.at(u.src(i)));
        continue;
      }
      src.insert(src.end(), parts.begin(), parts.end());
      ended = true;
    }
    if (ended && last) src.push_back(last);
    if (!divides && u.op() == Op::REDUCE && ended)
      src[0] = where(inside, src[0], reduce_identity(u.reduce_op(), u.dtype()));
    if (u.op() == Op::INDEX) src[0] = one_dimension(src[0]);
    UOp built = u.op() == Op::RESHAPE ? one_dimension(src[0])
                : src == u.srcs()     ? u
                                      : rebuild(u, src);
    if (!divides && u.op() == Op::INDEX && u.src(1).has_range(r)) {
      UOp valid;
      const UOp flat = split_gate(u.src(1), valid);
      const bool stored = written(memory_of(u));
      UOp index = substitute(flat, {{r, value}});
      UOp gate = valid ? substitute(valid, {{r, value}}) : UOp{};
      const auto stride = stride_along(flat, r);
      if (stored || stride == 1 || stride == 2)
        gate = gate ? gate & inside : inside;
      else
        index = substitute(flat, {{r, clamped}}),
        gate = valid ? substitute(valid, {{r, clamped}}) : UOp{};
      built = make(Op::INDEX, u.dtype(), {src[0], gate ? where(gate, index, invalid()) : index});
    }
    done.emplace(u, built);
  }
  if (follow) *follow = done.at(*follow);
  ast_ = done.at(ast_);
}

std::optional<std::string> KernelSchedule::check_registers(UOp r, int64_t amount) const {
  // Accumulated and expanded values must have a chance of staying in registers; twice their number
  // is where spilling always loses.
  std::unordered_set<UOp, UOpHash> together{r};
  int64_t elements = amount, kept = 0;
  for (UOp u : toposort(ast_)) {
    if (u.has_range(r))
      for (const Node* n : u.ranges()) together.insert(UOp(n));
    if (u.op() != Op::STAGE) continue;
    int64_t rows = u.has_range(r) ? amount : 1;  // one for every value that is written out
    for (const Node* n : u.ranges())
      if (UOp(n).axis_type() == AxisType::UPCAST && !(UOp(n) == r)) rows *= size(UOp(n));
    kept += rows * u.numel() * dtype_bytes(u.dtype());
  }
  for (UOp a : axes())
    if (a.axis_type() == AxisType::UPCAST && a != r && together.contains(a)) elements *= size(a);
  if (kept > max_private_bytes)
    return fmt::format("kept rows of {} bytes exceed the {} that a thread has for them", kept,
                       max_private_bytes);
  const int64_t limit = int64_t{2} * target_.vector_registers * target_.vector_bytes / 4;
  if (elements > limit)
    return fmt::format("{} values a step exceed {}, twice what the vector registers hold", elements,
                       limit);
  return std::nullopt;
}

std::optional<std::string> KernelSchedule::check_split(const Opt& opt, UOp r, int64_t k) const {
  const int64_t n = size(r);
  const AxisType t = r.axis_type();
  const auto wrong_axis = [&](std::string_view takes) {
    return fmt::format("axis {} is {}; {} takes {}", opt.axis, axis_type_name(t),
                       opt_kind_name(opt.kind), takes);
  };
  if (k < 2) return "an amount of 1 changes nothing";
  // Lanes may reach beyond a short axis, to a whole number of vectors.
  const int64_t vector = target_.masked_tails ? target_.lanes(DType::F32) : 1;
  const int64_t most = opt.kind == OptKind::UPCAST ? (n + vector - 1) / vector * vector : n;
  if (k > most) return fmt::format("amount {} exceeds the axis of {}", k, n);
  if (!target_.masked_tails && n % k != 0) return fmt::format("{} does not divide {}", k, n);
  if (over_blocks(r))
    return fmt::format("axis {} is the loop over the blocks of the reduction; they follow in turn",
                       opt.axis);
  switch (opt.kind) {
    case OptKind::LOCAL:
    case OptKind::GROUP:
    case OptKind::GROUPTOP: return check_local(opt, r, k);
    case OptKind::UPCAST:
      if (auto why = check_shared_bytes(k, 1)) return why;
      if (t != AxisType::WEAK && t != AxisType::GLOBAL && t != AxisType::LOCAL &&
          t != AxisType::LOOP)
        return wrong_axis("an output axis");
      return check_registers(r, k);
    case OptKind::TILE:
      if (t != AxisType::WEAK && t != AxisType::GLOBAL && t != AxisType::REDUCE)
        return wrong_axis("an output or a reduce loop");
      if (k == n) return fmt::format("a tile of all {} is the loop itself", n);
      return t == AxisType::REDUCE ? check_blocks() : std::nullopt;
    case OptKind::UNROLL:
      if (k > max_unroll) return fmt::format("UNROLL is limited to {}", max_unroll);
      return std::nullopt;
    case OptKind::THREAD:
      if (t != AxisType::WEAK) return wrong_axis("an output loop");
      if (k > target_.threads || k > max_thread_amount)
        return fmt::format("{} threads exceed the {} allowed", k, target_.threads);
      for (UOp a : axes())
        if (a.axis_type() == AxisType::THREAD) return "the kernel is split over threads already";
      for (UOp u : toposort(ast_))
        if (u.op() == Op::STORE && !u.src(0).has_range(r))
          return "a store does not depend on the axis";
      return std::nullopt;
    default: CHECK(false && "unhandled opt"); return std::nullopt;
  }
}

void KernelSchedule::split(OptKind kind, UOp r, int64_t k) {
  switch (kind) {
    case OptKind::LOCAL: shift_to(r, k, AxisType::LOCAL, false); return;
    case OptKind::GROUP: shift_to(r, k, AxisType::GROUP_REDUCE, false); return;
    case OptKind::GROUPTOP: shift_to(r, k, AxisType::GROUP_REDUCE, true); return;
    case OptKind::UPCAST: shift_to(r, k, AxisType::UPCAST, false); return;
    case OptKind::UNROLL: shift_to(r, k, AxisType::UNROLL, false); return;
    case OptKind::THREAD: shift_to(r, k, AxisType::THREAD, true); return;
    case OptKind::TILE:
      if (r.axis_type() == AxisType::REDUCE)
        reduce_in_blocks(r, k);
      else
        shift_to(r, k, r.axis_type(), false);
      return;
    default: CHECK(false && "unhandled opt");
  }
}

std::optional<std::string> KernelSchedule::apply(const Opt& opt) {
  if (opt.kind == OptKind::STREAM) return stream(opt);
  if (opt.kind == OptKind::PREFETCH) return prefetch(opt);
  if (!prefetches_.empty()) return "PREFETCH of an operand comes last";
  if (opt.kind == OptKind::PACK) return pack(opt);
  if (opt.kind == OptKind::LAYOUT) return lay_out(opt);
  if (opt.kind == OptKind::SKIP) return skip(opt);
  if (!packings_.empty() || !layouts_.empty() || !skippings_.empty())
    return "what splits or moves loops comes before PACK, LAYOUT and SKIP";
  if (opt.kind == OptKind::TC) return use_tensor_core(opt);
  if (needs_local(opt.kind) && !target_.has_local)
    return fmt::format("{} needs a target with local memory, {} has none", opt_kind_name(opt.kind),
                       target_.name);
  if (opt.kind == OptKind::NOLOCALS) return disable_locals(opt);
  if (opt.kind == OptKind::SWAP) return swap_loops(opt);
  if (opt.kind == OptKind::PADTO && target_.masked_tails)
    return "PADTO is not needed here: amounts need not divide";
  const std::vector<UOp> list = axes_for(opt.kind);
  if (opt.axis >= static_cast<int64_t>(list.size()))
    return fmt::format("axis {} does not exist, {} has {} axes here", opt.axis,
                       opt_kind_name(opt.kind), list.size());
  const UOp r = list[static_cast<size_t>(opt.axis)];
  if (opt.kind == OptKind::PADTO) return pad_to(opt, r);
  const int64_t k = opt.amount() == 0 ? size(r) : opt.amount();
  if (auto why = check_split(opt, r, k)) return why;
  if (!only_asked_) split(opt.kind, r, k);
  applied_.push_back({opt.kind, opt.axis, {k}});
  return std::nullopt;
}

std::optional<Opt> KernelSchedule::legal(const Opt& opt) const {
  KernelSchedule trial = *this;
  trial.only_asked_ = true;
  if (trial.apply(opt)) return std::nullopt;
  return trial.applied_.back();
}

std::variant<KernelSchedule, OptRefusal> apply_opts(UOp ast, const Opts& opts,
                                                    const Target& target) {
  KernelSchedule s(ast, target);
  for (size_t i = 0; i < opts.size(); i++)
    if (auto why = s.apply(opts[i])) return OptRefusal{i, *why};
  return s;
}

std::string describe_axes(const KernelSchedule& s, bool color) {
  std::string out;
  const auto code = [](AxisType t) {
    switch (t) {
      case AxisType::THREAD: return "\033[34m";
      case AxisType::UPCAST: return "\033[33m";
      case AxisType::REDUCE: return "\033[31m";
      case AxisType::UNROLL: return "\033[35m";
      default: return "\033[36m";
    }
  };
  const std::vector<UOp> all = s.axes(), reduces = s.axes_for(OptKind::UNROLL);
  for (size_t i = 0; i < all.size(); i++) {
    const UOp r = all[i];
    const auto at = std::ranges::find(reduces, r);
    const std::string unroll =
        at == reduces.end() ? "" : fmt::format("  UNROLL axis {}", at - reduces.begin());
    out += fmt::format("{}{:>3}  {:>8}  {}{}{}\n", color ? code(r.axis_type()) : "", i,
                       KernelSchedule::size(r), axis_type_name(r.axis_type()),
                       color ? "\033[0m" : "", unroll);
  }
  return out;
}

bool is_written_out(UOp range) {
  return range.axis_type() == AxisType::UPCAST || range.axis_type() == AxisType::UNROLL;
}

UOp split_gate(UOp index, UOp& valid) {
  valid = UOp{};
  for (; index.op() == Op::WHERE && index.src(2).is_invalid(); index = index.src(1))
    valid = valid ? valid & index.src(0) : index.src(0);
  return index;
}

void conjuncts(UOp gate, std::vector<UOp>& out) {
  std::vector<UOp> todo{gate};
  while (!todo.empty()) {
    const UOp u = todo.back();
    todo.pop_back();
    if (u.op() == Op::AND)
      todo.push_back(u.src(0)), todo.push_back(u.src(1));
    else
      out.push_back(u);
  }
}

std::optional<int64_t> linear_stride(UOp index, UOp r) {
  int64_t stride = 0;
  std::vector<std::pair<UOp, int64_t>> todo{{index, 1}};
  while (!todo.empty()) {
    const auto [u, factor] = todo.back();
    todo.pop_back();
    if (!u.has_range(r)) continue;
    if (u == r) {
      stride += factor;
    } else if (u.op() == Op::ADD) {
      todo.emplace_back(u.src(0), factor);
      todo.emplace_back(u.src(1), factor);
    } else if (u.op() == Op::MUL && u.src(1).is_const() && std::abs(factor) < (1 << 20) &&
               std::abs(u.src(1).ival()) < (int64_t{1} << 40)) {
      todo.emplace_back(u.src(0), factor * u.src(1).ival());
    } else {
      return std::nullopt;
    }
  }
  return stride;
}

std::optional<int64_t> stride_along(UOp index, UOp r) {
  // Sums and multiples of ranges, nearly always.
  if (const auto linear = linear_stride(index, r)) return linear;
  const UOp step = simplify(substitute(index, {{r, r + iconst(1)}}) - index);
  return step.is_const() ? std::optional(step.ival()) : std::nullopt;
}

bool unit_stride(UOp index, UOp r) { return stride_along(index, r) == 1; }

}  // namespace beamline
