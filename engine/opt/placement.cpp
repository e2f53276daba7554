// Opts that move loops or data and split nothing: SWAP, PACK, LAYOUT, STREAM.
#include <algorithm>

#include <fmt/format.h>

#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"
#include "engine/rules/verify.h"

namespace beamline {
namespace {

// Steps of the loops that lie between masked lanes, or read an element again.
constexpr int64_t max_layout_growth = 4;
// Several candidates' layouts of one operand exist at the same time.
constexpr int64_t max_layout_bytes = int64_t{1} << 29;

// Comparisons of integers that a gate is made of; nothing, if it is made of something else.
std::optional<std::vector<UOp>> comparisons(UOp gate) {
  std::vector<UOp> out;
  for (UOp u : toposort(gate)) {
    if (u.dtype() != DType::Bool || u.is_const()) continue;
    const bool compares = u.op() == Op::CMPLT && u.src(0).dtype() == DType::WeakInt;
    const bool combines =
        std::ranges::all_of(u.srcs(), [](UOp s) { return s.dtype() == DType::Bool; });
    if (!compares && !combines) return std::nullopt;
    if (compares) out.push_back(u);
  }
  return out;
}

// Of a tile's ranges those that move over the same elements, each set from its smallest step on:
// index and gates see nothing of them but where they are together. Ranges that one gate bounds do
// not overlap with those that another does.
std::vector<std::vector<UOp>> overlapping(const std::vector<UOp>& tile, UOp index) {
  UOp valid;
  const UOp flat = split_gate(index, valid);
  const auto gates = valid ? comparisons(valid) : std::vector<UOp>();
  if (!gates) return {};
  std::vector<UOp> rest = tile;
  std::vector<std::vector<UOp>> bounded;
  for (UOp g : *gates) {
    std::vector<UOp> now;
    for (UOp r : tile)
      if (g.has_range(r)) now.push_back(r);
    std::erase_if(bounded, [&](const std::vector<UOp>& other) {
      const bool shared =
          std::ranges::any_of(other, [&](UOp r) { return std::ranges::find(now, r) != now.end(); });
      for (UOp r : other)
        if (shared && std::ranges::find(now, r) == now.end()) now.push_back(r);
      return shared;
    });
    if (!now.empty()) bounded.push_back(now);
  }
  for (const auto& set : bounded)
    for (UOp r : set) std::erase(rest, r);
  bounded.push_back(rest);
  std::vector<std::vector<UOp>> out;
  for (std::vector<UOp>& set : bounded) {
    std::vector<std::pair<int64_t, UOp>> steps;
    for (UOp r : set) {
      const auto step = linear_stride(flat, r);
      if (!step || *step <= 0) return {};
      steps.emplace_back(*step, r);
    }
    std::ranges::stable_sort(steps, {}, [](const auto& s) { return s.first; });
    int64_t extent = 0;  // in elements, of those taken together
    for (const auto& [step, r] : steps) {
      const bool joins =
          extent > 0 && step % *linear_stride(flat, out.back()[0]) == 0 && step < extent;
      if (!joins) out.emplace_back(), extent = *linear_stride(flat, r);
      out.back().push_back(r);
      extent += step * (KernelSchedule::size(r) - 1);
    }
  }
  for (const auto& together : out)
    for (UOp g : *gates)
      for (UOp r : together) {
        const auto step = [&](UOp of) {
          const auto a = linear_stride(g.src(0), of), b = linear_stride(g.src(1), of);
          return a && b ? std::optional(*a - *b) : std::nullopt;
        };
        const auto first = step(together[0]), own = step(r);
        if (!first || !own) return {};
        // A sum of multiples is above 0 where one of them is, whatever the factors.
        if (g.src(0).is_const(0) && g.src(1).vmin() >= 0 && *first < 0 && *own < 0) continue;
        if (*first * *linear_stride(flat, r) != *own * *linear_stride(flat, together[0])) return {};
      }
  // Largest steps outermost.
  std::ranges::stable_sort(out, std::greater<>(),
                           [&](const auto& s) { return *linear_stride(flat, s[0]); });
  return out;
}

}  // namespace

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
  for (const Dim& d : dims)
    if (n <= max_private_bytes) n *= d.size;  // more is too many anyway
  return n;
}

UOp place_among(const std::vector<UOp>& ranges, const Substitution& renamed) {
  UOp at = iconst(0);
  for (UOp r : ranges) {
    const auto it = renamed.find(r);
    at = at * iconst(KernelSchedule::size(r)) + (it == renamed.end() ? r : it->second);
  }
  return at;
}

std::variant<UOp, std::string> KernelSchedule::only_read(const Opt& opt) const {
  const int64_t slot = opt.axis;
  for (const Packing& p : packings_)
    if (p.slot == slot) return fmt::format("operand {} is packed already", slot);
  for (const Layout& l : layouts_)
    if (l.slot == slot) return fmt::format("operand {} is laid out already", slot);
  return read_of(opt);
}

std::variant<UOp, std::string> KernelSchedule::read_of(const Opt& opt) const {
  const int64_t slot = opt.axis;
  std::vector<UOp> reads;
  for (UOp u : toposort(ast_)) {
    if (u.op() == Op::STORE && u.src(0).src(0).param().slot == slot)
      return fmt::format("operand {} is written", slot);
    if (u.op() == Op::INDEX && u.src(0).op() == Op::PARAM && u.src(0).param().slot == slot)
      reads.push_back(u);
  }
  if (reads.size() != 1)
    return fmt::format("{} needs an operand that is read at one place; {} is read at {}",
                       opt_kind_name(opt.kind), slot, reads.size());
  return reads[0];
}

// Lanes are of consecutive elements in what is stored, else in the operand. What a lane multiplies
// at once lies side by side.
void KernelSchedule::sort_tile(std::vector<UOp>& tile, UOp index, DType given) const {
  const UOp flat = index.op() == Op::WHERE ? index.src(1) : index;
  std::vector<UOp> stored;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::STORE) {
      UOp gate;
      stored.push_back(split_gate(u.src(0).src(1), gate));
    }
  const int64_t lanes = target_.lanes(given);
  std::ranges::stable_sort(tile, {}, [&](UOp r) {
    const bool steps = r.axis_type() == AxisType::UNROLL;
    if (step_of_lanes(ast_, r)) return 5;
    if (r.axis_type() != AxisType::UPCAST && !steps) return 0;
    if (std::ranges::any_of(stored, [&](UOp at) { return unit_stride(at, r); })) return 4;
    if (steps && size(r) < lanes) return 1;  // too few for a vector
    return unit_stride(flat, r) ? 3 : 2;
  });
}

std::vector<Packing::Dim> KernelSchedule::dims_of(std::vector<UOp> tile, UOp index, DType t) const {
  sort_tile(tile, index, t);
  const int64_t lanes = target_.lanes(t);
  std::vector<Packing::Dim> plain, windows;
  for (const std::vector<UOp>& together : overlapping(tile, index)) {
    if (together.size() == 1) continue;
    UOp valid;
    const UOp flat = split_gate(index, valid);
    const int64_t step = *linear_stride(flat, together[0]);
    Packing::Dim d{together, iconst(0), 1, 0, 1};
    for (UOp r : together) {
      const int64_t times = *linear_stride(flat, r) / step;
      d.place = d.place + r * iconst(times);
      d.used += times * (size(r) - 1);
      if (r.axis_type() == AxisType::UPCAST && size(r) % lanes == 0) d.phases = times;
      std::erase(tile, r);
    }
    d.size = d.used;
    windows.push_back(std::move(d));
  }
  for (UOp r : tile) plain.push_back({{r}, r, size(r), size(r), 1});
  for (Packing::Dim& d : windows) {
    // Elements that lie side by side: whole vectors of them are copied.
    const int64_t whole = d.phases * (&d == &windows.back() ? lanes : 1);
    d.size = (d.used + whole - 1) / whole * whole;
    if (d.phases > 1)
      d.place = d.place % iconst(d.phases) * iconst(d.size / d.phases) + d.place / iconst(d.phases);
  }
  plain.insert(plain.end(), windows.begin(), windows.end());
  return plain;
}

// The tile is what the operand's index covers inside the first `level` output loops.
std::optional<std::string> KernelSchedule::pack(const Opt& opt) {
  const int64_t slot = opt.axis, level = opt.arg.at(0);
  const auto found = only_read(opt);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  // The loops around the packing would have to be those of the store that reads it.
  const auto stores = std::ranges::count(toposort(ast_), Op::STORE, &UOp::op);
  if (stores != 1) return fmt::format("PACK is for kernels of one store; here are {}", stores);
  const UOp read = std::get<UOp>(found), index = read.src(1);
  Packing p{slot, {}, {}};
  std::vector<UOp> tile;
  int64_t loops = 0;
  bool reused = false;
  for (UOp r : axes()) {
    const AxisType t = r.axis_type();
    const bool loop = t == AxisType::WEAK;
    if (t == AxisType::THREAD || (loop && loops < level))
      p.outer.push_back(r);
    else if (index.has_range(r))
      tile.push_back(r);
    else
      reused |= loop;
    loops += loop;
  }
  if (level > loops) return fmt::format("there are {} output loops, not {}", loops, level);
  p.dims = dims_of(tile, index, read.dtype());
  reused |= std::ranges::any_of(p.dims, [](const auto& d) { return d.ranges.size() > 1; });
  // A loop over the tile moves less than the reduction inside of it does: read as it lies, it is
  // copied from whole pages.
  UOp gate;
  const UOp flat = split_gate(index, gate);
  const auto steps = [&](AxisType t) {
    std::vector<int64_t> out;
    for (UOp r : tile)
      if (r.axis_type() == t) out.push_back(linear_stride(flat, r).value_or(0));
    return out;
  };
  for (int64_t outer : steps(AxisType::WEAK))
    for (int64_t inner : steps(AxisType::REDUCE)) reused |= outer > 0 && outer < inner;
  if (!reused)
    return "no output loop deeper than the packing reads the tile again, or in another order";
  if (tile.empty()) return "the operand does not move inside of the packing";
  const int64_t bytes = p.elements() * dtype_bytes(read.dtype());
  if (bytes > max_private_bytes)
    return fmt::format("a tile of {} bytes exceeds the {} that a thread has for it", bytes,
                       max_private_bytes);
  packings_.push_back(std::move(p));
  applied_.push_back(opt);
  return std::nullopt;
}

// Every range that moves the operand is a dimension of the new one, in the order of the loops.
std::optional<std::string> KernelSchedule::lay_out(const Opt& opt) {
  const int64_t slot = opt.axis;
  if (target_.has_local)
    return fmt::format("LAYOUT is for processors; {} has groups of threads", target_.name);
  const auto found = only_read(opt);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  const UOp read = std::get<UOp>(found), given = read.src(0);
  if (!given.param().constant) return fmt::format("operand {} is no constant", slot);
  for (UOp u : toposort(read.src(1)))
    if (u.op() == Op::PARAM)
      return fmt::format("operand {} is read where a variable or another operand says", slot);
  std::vector<UOp> tile;
  int64_t elements = 1;
  const int64_t most = max_layout_growth * given.numel();
  for (UOp r : axes())
    if (read.src(1).has_range(r) && elements <= most) tile.push_back(r), elements *= size(r);
  if (tile.empty()) return fmt::format("operand {} does not move", slot);
  if (elements > most)
    return fmt::format("{} elements or more are more than {} times the operand's {}", elements,
                       max_layout_growth, given.numel());
  if (elements * dtype_bytes(given.dtype()) > max_layout_bytes)
    return fmt::format("a layout of {} bytes exceeds the {} there are for each",
                       elements * dtype_bytes(given.dtype()), max_layout_bytes);
  sort_tile(tile, read.src(1), read.dtype());
  const int64_t shape[] = {elements};
  ParamArg written, as_given;
  as_given.slot = 1;
  Substitution renamed;
  std::vector<UOp> end{UOp{}};
  for (size_t i = 0; i < tile.size(); i++) {
    end.push_back(range(size(tile[i]), static_cast<int64_t>(i), AxisType::WEAK));
    renamed.emplace(tile[i], end.back());
  }
  const auto element = [&](UOp memory, UOp at) {
    return make(Op::INDEX, memory.dtype(), {memory, at});
  };
  const int64_t given_shape[] = {given.numel()};
  const UOp from = element(param(as_given, given.dtype(), given_shape),
                           substitute(read.src(1), renamed)),
            to = element(param(written, given.dtype(), shape), place_among(tile, renamed));
  end[0] = make(Op::STORE, DType::Void, {to, from});
  layouts_.push_back(
      {slot, simplify(make(Op::SINK, DType::Void, {make(Op::END, DType::Void, end)}))});
  ast_ = simplify(substitute(
      ast_, {{read, element(param(given.param(), given.dtype(), shape), place_among(tile))}}));
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

}  // namespace beamline
