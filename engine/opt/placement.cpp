// Opts that move loops or data and split nothing: SWAP, PACK, STREAM, PREFETCH.
#include <algorithm>

#include <fmt/format.h>

#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"
#include "engine/rules/verify.h"

namespace beamline {

// Exchanges the places of two loops among those that end together: their ids, which order the axes,
// and their positions in the ENDs or REDUCEs, which order the loops.
std::optional<std::string> KernelSchedule::swap_loops(const Opt& opt) {
  const std::vector<UOp> list = axes();
  const int64_t i = opt.axis, j = opt.arg.at(0);
  if (i >= j) return fmt::format("SWAP takes the outer axis first, not {} and {}", i, j);
  if (j >= static_cast<int64_t>(list.size()))
    return fmt::format("axis {} does not exist, SWAP has {} axes here", j, list.size());
  const UOp a = list[static_cast<size_t>(i)], b = list[static_cast<size_t>(j)];
  const AxisType t = a.axis_type();
  if (t != b.axis_type() || (t != AxisType::WEAK && t != AxisType::GLOBAL && t != AxisType::REDUCE))
    return fmt::format(
        "SWAP exchanges two output loops or two reduce loops; axis {} is {}, {} is {}", i,
        axis_type_name(t), j, axis_type_name(b.axis_type()));
  const std::vector<UOp> order = toposort(ast_);
  const auto ends = [](UOp u, UOp r) {
    for (size_t k = 1; k < u.nsrc(); k++)
      if (u.src(k) == r) return true;
    return false;
  };
  for (UOp u : order)
    if ((u.op() == Op::END || u.op() == Op::REDUCE) && ends(u, a) != ends(u, b))
      return fmt::format("axes {} and {} do not end together", i, j);
  if (only_asked_) {
    applied_.push_back(opt);
    return std::nullopt;
  }
  const UOp moved_a = range(a.src(0), b.range_id(), t), moved_b = range(b.src(0), a.range_id(), t);
  Substitution done;
  for (UOp u : order) {
    if (u == a || u == b) {
      done.emplace(u, u == a ? moved_a : moved_b);
      continue;
    }
    std::vector<UOp> src;
    const bool ending = u.op() == Op::END || u.op() == Op::REDUCE;
    for (size_t k = 0; k < u.nsrc(); k++) {
      const UOp s = u.src(k);
      src.push_back(!ending || k == 0 ? done.at(s)
                    : s == a          ? moved_b
                    : s == b          ? moved_a
                                      : done.at(s));
    }
    done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
  }
  ast_ = simplify(done.at(ast_));
  applied_.push_back(opt);
  return std::nullopt;
}

int64_t Packing::elements() const {
  int64_t n = 1;
  for (UOp r : tile) n *= KernelSchedule::size(r);
  return n;
}

// The tile is what the operand's index covers inside the first `level` output loops.
std::optional<std::string> KernelSchedule::pack(const Opt& opt) {
  const int64_t slot = opt.axis, level = opt.arg.at(0);
  for (const Packing& p : packings_)
    if (p.slot == slot) return fmt::format("operand {} is packed already", slot);
  std::vector<UOp> reads;
  int stores = 0;
  for (UOp u : toposort(ast_)) {
    stores += u.op() == Op::STORE;
    if (u.op() == Op::STORE && u.src(0).src(0).param().slot == slot)
      return fmt::format("operand {} is written", slot);
    if (u.op() == Op::INDEX && u.src(0).op() == Op::PARAM && u.src(0).param().slot == slot)
      reads.push_back(u);
  }
  // The loops around the packing would have to be those of the store that reads it.
  if (stores != 1) return fmt::format("PACK is for kernels of one store; here are {}", stores);
  if (reads.size() != 1)
    return fmt::format("PACK needs an operand that is read at one place; {} is read at {}", slot,
                       reads.size());
  const UOp index = reads[0].src(1);
  Packing p{slot, {}, {}};
  int64_t loops = 0;
  bool reused = false;
  for (UOp r : axes()) {
    const AxisType t = r.axis_type();
    const bool loop = t == AxisType::WEAK;
    if (t == AxisType::THREAD || (loop && loops < level))
      p.outer.push_back(r);
    else if (index.has_range(r))
      p.tile.push_back(r);
    else
      reused |= loop;
    loops += loop;
  }
  if (level > loops) return fmt::format("there are {} output loops, not {}", loops, level);
  if (!reused) return "no output loop deeper than the packing reads the tile again";
  if (p.tile.empty()) return "the operand does not move inside of the packing";
  const int64_t bytes = p.elements() * dtype_bytes(reads[0].dtype());
  if (bytes > max_private_bytes)
    return fmt::format("a tile of {} bytes exceeds the {} that a thread has for it", bytes,
                       max_private_bytes);
  // Written out axes last, and last of these the one that may become lanes: of consecutive elements
  // in what is stored, else in the operand. What a lane multiplies at once lies side by side.
  const UOp flat = index.op() == Op::WHERE ? index.src(1) : index;
  std::vector<UOp> stored;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::STORE) {
      UOp gate;
      stored.push_back(split_gate(u.src(0).src(1), gate));
    }
  std::ranges::stable_sort(p.tile, {}, [&](UOp r) {
    if (step_of_lanes(ast_, r)) return 4;
    if (r.axis_type() != AxisType::UPCAST && r.axis_type() != AxisType::UNROLL) return 0;
    if (std::ranges::any_of(stored, [&](UOp at) { return unit_stride(at, r); })) return 3;
    return unit_stride(flat, r) ? 2 : 1;
  });
  packings_.push_back(std::move(p));
  applied_.push_back(opt);
  return std::nullopt;
}

// Changes no loop: the renderer reads it off the applied opts.
std::optional<std::string> KernelSchedule::stream(const Opt& opt) {
  if (target_.has_local)
    return fmt::format("STREAM is for stores past a processor's caches; {} has none", target_.name);
  if (std::ranges::find(applied_, opt) != applied_.end()) return "STREAM was applied already";
  if (in_blocks_) return "a reduction in blocks reads its result again: no STREAM";
  applied_.push_back(opt);
  return std::nullopt;
}

// Changes no loop either: lowering reads it off the applied opts.
std::optional<std::string> KernelSchedule::prefetch(const Opt& opt) {
  if (target_.has_local)
    return fmt::format("PREFETCH is for a processor's caches; {} has none", target_.name);
  if (std::ranges::find(applied_, opt) != applied_.end()) return "PREFETCH was applied already";
  if (std::ranges::none_of(toposort(ast_), [](UOp u) { return u.op() == Op::REDUCE; }))
    return "PREFETCH is for results of a reduction; here is none";
  applied_.push_back(opt);
  return std::nullopt;
}

}  // namespace beamline
