#include "tests/programs/opts.h"

#include <algorithm>

#include "engine/ir/tensor_core.h"

namespace beamline::fuzz {
namespace {

constexpr int64_t amounts[] = {0, 2, 2, 3, 4, 4, 5, 7, 8, 8, 13, 16, 32};

constexpr OptKind of_cpus[] = {OptKind::UPCAST, OptKind::UNROLL, OptKind::THREAD,   OptKind::TILE,
                               OptKind::SWAP,   OptKind::PACK,   OptKind::UPCAST,   OptKind::UNROLL,
                               OptKind::STREAM, OptKind::TILE,   OptKind::PREFETCH, OptKind::LAYOUT,
                               OptKind::SKIP};
constexpr OptKind of_groups[] = {OptKind::UPCAST,   OptKind::UNROLL, OptKind::LOCAL,
                                 OptKind::GROUP,    OptKind::PADTO,  OptKind::GROUPTOP,
                                 OptKind::NOLOCALS, OptKind::SWAP,   OptKind::TILE,
                                 OptKind::LOCAL,    OptKind::THREAD, OptKind::PACK};

}  // namespace

Opts random_opts(UOp ast, const Target& target, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<int64_t>(random() % n); };
  KernelSchedule s(ast, target);
  const std::span<const OptKind> kinds =
      target.has_local ? std::span<const OptKind>(of_groups) : std::span<const OptKind>(of_cpus);
  if (target.has_local && random() % 4 != 0)
    for (int64_t choice = 2; choice >= 0; choice--)
      s.apply({OptKind::TC, choice, {-1, 2, 1 + below(2)}});
  if (!target.has_local && !tensor_cores(target).empty() && random() % 8 != 0) {
    // The first that fits, or another; shape alone less often.
    const Ints arg{below(2) ? -1 : below(3), 2, below(4) ? 1 : 2};
    for (int64_t choice = below(3); choice >= 0 && s.applied().empty(); choice--)
      s.apply({OptKind::TC, choice, arg});
  }
  const auto wanted = static_cast<size_t>(below(most_opts + 1));
  for (int tries = 0; tries < 40 && s.applied().size() < wanted; tries++) {
    Opt o{kinds[random() % kinds.size()], 0, {amounts[random() % std::size(amounts)]}};
    if (o.kind == OptKind::NOLOCALS && random() % 4 != 0) continue;  // it forbids the most
    const bool moves_data = o.kind == OptKind::PACK || o.kind == OptKind::LAYOUT;
    if (moves_data && s.applied().size() + 1 < wanted && random() % 4 != 0) continue;
    const size_t axes = std::max<size_t>(1, s.axes_for(o.kind).size());
    o.axis = below(axes);
    if (o.kind == OptKind::SWAP) o.arg = {below(axes)};
    if (moves_data || o.kind == OptKind::PREFETCH) o.axis = below(4), o.arg = {below(4)};
    if (numbers_of(o.kind) < 2) o.arg = {};
    if (numbers_of(o.kind) < 1) o.axis = 0;
    s.apply(o);
  }
  return s.applied();
}

void Coverage::count(const LinearKernel& kernel) {
  for (UOp u : kernel.list) ops[std::string(op_name(u.op()))]++;
  // It changes no graph; what it chose shows in the loads.
  passes["choose lanes"] += std::ranges::any_of(
      kernel.list, [](UOp u) { return u.op() == Op::LOAD && !u.shape().empty(); });
  for (const Opt& o : kernel.opts) {
    opts[std::string(opt_kind_name(o.kind))]++;
    opts["PREFETCH of an operand"] += o.kind == OptKind::PREFETCH && o.axis > 0;
  }
  opts["TILE of a reduction"] += std::ranges::any_of(kernel.list, [&](UOp u) {
    const UOp memory = u.op() == Op::LOAD ? memory_of(u.src(0)) : UOp{};
    return memory && memory.op() == Op::PARAM && memory.addrspace() == AddrSpace::Global &&
           kernel.args[static_cast<size_t>(memory.param().slot)].written;
  });
}
void Coverage::count_pass(std::string_view pass, bool changed) {
  passes[std::string(pass)] += changed;
}

std::vector<Opts> smaller_opts(const Opts& opts) {
  std::vector<Opts> out;
  for (size_t i = 0; i < opts.size(); i++) {
    Opts o = opts;
    o.erase(o.begin() + static_cast<std::ptrdiff_t>(i));
    out.push_back(std::move(o));
  }
  for (size_t i = 0; i < opts.size(); i++) {
    if (opts[i].arg.size() != 1 || opts[i].kind == OptKind::SWAP || opts[i].kind == OptKind::PACK)
      continue;
    for (int64_t amount : {int64_t{2}, opts[i].arg[0] / 2, opts[i].arg[0] - 1}) {
      if (amount < 2 || amount >= opts[i].arg[0]) continue;
      Opts o = opts;
      o[i].arg[0] = amount;
      out.push_back(std::move(o));
    }
  }
  return out;
}

}  // namespace beamline::fuzz
