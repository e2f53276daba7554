#include "engine/rangeify/split_reduction.h"

#include <algorithm>

#include "engine/rangeify/ranges.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

constexpr int64_t tall = 32768, most_slices = 256, fewest_slices = 8;
constexpr int64_t most_partials = int64_t{1} << 22;

}  // namespace

std::optional<SplitReduction> split_reduction(UOp kernel, int64_t slot) {
  UOp reduction;
  int64_t next_id = 0;
  for (UOp u : toposort(kernel)) {
    if (u.op() == Op::RANGE) next_id = std::max(next_id, u.range_id() + 1);
    if (u.op() != Op::REDUCE) continue;
    if (reduction) return std::nullopt;
    reduction = u;
  }
  if (!reduction) return std::nullopt;
  int64_t steps = 1, results = 1;
  for (size_t i = 1; i < reduction.nsrc(); i++) steps *= size_of(reduction.src(i));
  std::vector<UOp> open;  // in the order of the kernel's loops
  for (UOp u : toposort(kernel))
    if (u.op() == Op::END)
      for (size_t i = 1; i < u.nsrc(); i++)
        if (reduction.has_range(u.src(i))) open.push_back(u.src(i));
  for (UOp r : open) results *= size_of(r);
  if (steps < tall) return std::nullopt;

  UOp cut;
  int64_t slices = 0;
  for (size_t i = 1; i < reduction.nsrc() && !cut; i++)
    for (slices = std::min(most_slices, most_partials / results); slices >= fewest_slices; slices--)
      if (size_of(reduction.src(i)) % slices == 0) {
        cut = reduction.src(i);
        break;
      }
  if (!cut) return std::nullopt;

  ParamArg arg;
  arg.slot = slot;
  const int64_t elements = slices * results;
  const UOp partials = param(arg, reduction.dtype(), {&elements, 1});
  const auto place = [&](UOp slice) {
    UOp at = slice;
    for (UOp r : open) at = at * iconst(size_of(r)) + r;
    return make(Op::INDEX, reduction.dtype(), {partials, at});
  };
  const int64_t length = size_of(cut) / slices;
  const UOp outer = range(slices, next_id, AxisType::WEAK);
  std::vector<UOp> src = reduction.srcs();
  const UOp inner = range(length, next_id + 1, AxisType::REDUCE);
  src[0] = substitute(src[0], {{cut, outer * iconst(length) + inner}});
  std::ranges::replace(src, cut, inner);
  if (length == 1) {  // a range of one step is none
    src[0] = substitute(src[0], {{inner, iconst(0)}});
    std::erase(src, inner);
  }
  const UOp part = src.size() == 1 ? src[0] : rebuild(reduction, src);
  std::vector<UOp> end{make(Op::STORE, DType::Void, {place(outer), part}), outer};
  end.insert(end.end(), open.begin(), open.end());
  SplitReduction s;
  s.first = make(Op::SINK, DType::Void, {make(Op::END, DType::Void, end)});
  const UOp slice = range(slices, next_id, AxisType::REDUCE);
  s.second = substitute(
      kernel,
      {{reduction, reduce(reduction.reduce_op(), place(slice), std::vector<UOp>{slice}, 0)}});
  s.dtype = reduction.dtype(), s.elements = elements;
  return s;
}

}  // namespace beamline
