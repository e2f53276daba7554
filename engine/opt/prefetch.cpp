// PREFETCH: hints to the caches. Of the results before a reduction starts; of an operand's next
// tile during the reduction that works on this one, a few lines a step, as otherwise the copy or
// the first reads of each tile wait for memory: its rows lie too far apart for the prefetchers of
// processors, which follow streams.
#include <algorithm>

#include <fmt/format.h>

#include "engine/opt/schedule.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

constexpr int64_t most_a_step = 8;  // hints take the place of loads

UOp minimum(UOp a, UOp b) { return where(a < b, a, b); }

// Runs along `run` begin where lines do, in memory that does.
bool moves_by_lines(UOp at, UOp run, int64_t line) {
  Substitution first;
  for (const Node* n : at.ranges()) {
    const auto step = linear_stride(at, UOp(n));
    if (UOp(n) != run && (!step || *step % line != 0)) return false;
    first.emplace(UOp(n), iconst(0));
  }
  const UOp begin = simplify(substitute(at, first));
  return begin.is_const() && begin.ival() % line == 0;
}

}  // namespace

// Changes no loop: lowering reads it off the applied opts.
std::optional<std::string> KernelSchedule::prefetch(const Opt& opt) {
  if (target_.has_local)
    return fmt::format("PREFETCH is for a processor's caches; {} has none", target_.name);
  if (std::ranges::find(applied_, opt) != applied_.end())
    return fmt::format("{} was applied already", opts_text({opt}));
  if (opt.axis > 0) {
    if (auto why = prefetch_operand(opt)) return why;
  } else if (std::ranges::none_of(toposort(ast_), [](UOp u) { return u.op() == Op::REDUCE; })) {
    return "PREFETCH is for results of a reduction; here is none";
  }
  applied_.push_back(opt);
  return std::nullopt;
}

std::optional<std::string> KernelSchedule::prefetch_operand(const Opt& opt) {
  const int64_t slot = opt.axis;
  const auto found = read_of(opt);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  const UOp read = std::get<UOp>(found);
  UOp gate;
  const UOp at = split_gate(read.src(1), gate);
  if (std::ranges::any_of(toposort(at), [](UOp u) { return u.op() == Op::PARAM; }))
    return fmt::format("operand {} is read where a variable or another operand says", slot);
  for (const Skipping& s : skippings_)
    if (s.begin && at.has_range(s.range))
      return fmt::format("operand {} is read by a loop that skips padding", slot);

  // The next tile: a step of the innermost loop that moves it, around its copy if it has one. What
  // lies inside of that loop and does not move the operand tells which of the lines.
  const auto packed = std::ranges::find(packings_, slot, &Packing::slot);
  UOp next;
  std::vector<UOp> again, written_out;
  bool reduces = false;
  for (UOp r : axes()) {
    const bool moves = at.has_range(r), loop = r.axis_type() == AxisType::WEAK;
    const bool around =
        packed == packings_.end() || std::ranges::find(packed->outer, r) != packed->outer.end();
    reduces |= moves && r.axis_type() == AxisType::REDUCE;
    if (loop && moves && around)
      next = r, again.clear();
    else if (loop && !moves)
      again.push_back(r);
    else if (moves && is_written_out(r))
      written_out.push_back(r);
  }
  if (!reduces) return fmt::format("no loop of a reduction moves operand {}", slot);
  if (!next) return fmt::format("no output loop moves operand {} on to another tile", slot);

  // Lines: of each run of consecutive elements, every so many elements and the last one.
  const auto run =
      std::ranges::find_if(written_out, [&](UOp r) { return linear_stride(at, r) == int64_t{1}; });
  const int64_t line = line_bytes / dtype_bytes(read.dtype());
  const int64_t length = run == written_out.end() ? 1 : size(*run);
  const bool whole = run != written_out.end() && moves_by_lines(at, *run, line);
  const int64_t lines = whole ? (length + line - 1) / line : 1 + (length - 1 + line - 1) / line;
  int64_t count = lines, times = 1, steps = 1;
  for (UOp r : written_out) {
    if (run == written_out.end() || r != *run) count *= size(r);
    if (r.axis_type() == AxisType::UNROLL) steps *= size(r);
  }
  for (UOp r : again) times *= size(r);
  const int64_t a_step = (count + times - 1) / times;
  if (a_step > most_a_step * steps)
    return fmt::format("{} lines would be fetched in {} steps, more than {} each", a_step, steps,
                       most_a_step);
  if (only_asked_) return std::nullopt;

  Prefetch fetched{slot, {}};
  const UOp first = place_among(again) * iconst(a_step);
  for (int64_t i = 0; i < a_step; i++) {
    UOp which = first + iconst(i);
    Substitution to{{next, minimum(next + iconst(1), iconst(size(next) - 1))}};
    // Once all are fetched, one line again and again: that is nearly free.
    if (a_step * times > count) {
      const UOp left = where(which < iconst(count), iconst(1), iconst(0));
      for (UOp r : axes())
        if (r.axis_type() == AxisType::REDUCE) to.emplace(r, r * left);
      which = which * left;
    }
    if (run != written_out.end())
      to.emplace(*run, minimum(which % iconst(lines) * iconst(line), iconst(length - 1)));
    which = which / iconst(lines);
    for (UOp r : written_out) {
      if (run != written_out.end() && r == *run) continue;
      to.emplace(r, which % iconst(size(r)));
      which = which / iconst(size(r));
    }
    fetched.at.push_back(simplify(substitute(at, to)));
  }
  prefetches_.push_back(std::move(fetched));
  return std::nullopt;
}

}  // namespace beamline
