#include "engine/lower/lanes.h"

#include <algorithm>
#include <vector>

#include "engine/rules/rules.h"

namespace beamline {

std::optional<int64_t> lane_step(UOp u) {
  if (u.shape().empty()) return 0;
  if (u.op() == Op::STACK) {
    for (size_t i = 0; i < u.nsrc(); i++)
      if (!u.src(i).is_const() || u.src(i).ival() - u.src(0).ival() !=
                                      static_cast<int64_t>(i) * (u.src(1).ival() - u.src(0).ival()))
        return std::nullopt;
    return u.src(1).ival() - u.src(0).ival();
  }
  if (u.op() == Op::ADD) {
    const auto a = lane_step(u.src(0)), b = lane_step(u.src(1));
    if (a && b) return *a + *b;
  }
  if (u.op() == Op::MUL && (u.src(0).is_const() || u.src(1).is_const())) {
    const bool first = u.src(0).is_const();
    if (const auto s = lane_step(u.src(first ? 1 : 0))) return *s * u.src(first ? 0 : 1).ival();
  }
  return std::nullopt;
}

UOp lane_of(UOp u, size_t lane) {
  if (u.shape().empty()) return u;
  if (u.op() == Op::STACK) return u.src(lane);
  const UOp src[] = {lane_of(u.src(0), lane), lane_of(u.src(1), lane)};
  return rebuild(u, src);
}

namespace {

UOp address(UOp u, UOp buffer, UOp index) {
  if (index.shape().empty()) return make(Op::INDEX, u.dtype(), {buffer, index});
  const auto step = lane_step(index);
  if (step != 1) return make(Op::INDEX, u.dtype(), {buffer, index});
  const int64_t n[] = {index.shape()[0]};
  const UOp base[] = {lane_of(index, 0)};
  return make(Op::SHRINK, u.dtype(), {buffer, stack(base), dims(n)});
}

// Lanes two elements apart: two vectors of neighbours and one shuffle. Without a gate the second
// begins one element early, so that nothing beyond the last lane is read; with one, the elements
// between are masked.
UOp every_other(UOp u, std::span<const UOp> src) {
  const UOp memory = src[0].src(0), index = src[0].src(1);
  const bool gated = src.size() == 3;
  const int64_t n[] = {index.shape()[0]};
  const auto width = static_cast<size_t>(n[0]);
  const auto lane = [](UOp v, size_t i) {
    return make(Op::INDEX, v.dtype(), {v, iconst(static_cast<int64_t>(i))});
  };
  const auto half = [&](size_t h) {
    const int64_t shift = h == 0 ? 0 : gated ? n[0] : n[0] - 1;
    const UOp base[] = {lane_of(index, 0) + iconst(shift)};
    const UOp at = make(Op::SHRINK, u.dtype(), {memory, stack(base), dims(n)});
    if (!gated) return make(Op::LOAD, u.dtype(), {at});
    std::vector<UOp> even, gate;
    for (size_t i = 0; i < width; i++) {
      even.push_back(bool_const(i % 2 == 0));
      if (!src[2].shape().empty()) gate.push_back(lane(src[2], (h * width + i) / 2));
    }
    const UOp open = stack(even) & (gate.empty() ? src[2] : stack(gate));
    return make(Op::LOAD, u.dtype(), {at, src[1], open});
  };
  const UOp low = half(0), high = half(1);
  std::vector<UOp> lanes;
  for (size_t i = 0; i < width; i++)
    lanes.push_back(2 * i < width ? lane(low, 2 * i) : lane(high, 2 * i - width + (gated ? 0 : 1)));
  return stack(lanes);
}

}  // namespace

UOp interleaved_place(const std::vector<UOp>& at) {
  const UOp first = at[0];
  const auto count = static_cast<int64_t>(at.size());
  for (size_t j = 0; j < at.size(); j++) {
    if (at[j].op() != Op::INDEX || !(at[j].src(0) == first.src(0))) return {};
    const UOp index = at[j].src(1);
    if (!std::ranges::equal(index.shape(), first.src(1).shape())) return {};
    if (!index.shape().empty() && lane_step(index) != count) return {};
    const UOp apart = simplify(lane_of(index, 0) - lane_of(first.src(1), 0));
    if (!apart.is_const(static_cast<int64_t>(j))) return {};
  }
  const int64_t n[] = {first.src(1).shape().empty() ? count : count * first.src(1).shape()[0]};
  const UOp base[] = {lane_of(first.src(1), 0)};
  return make(Op::SHRINK, first.dtype(), {first.src(0), stack(base), dims(n)});
}

namespace {

size_t groups(UOp u) { return u.shape().empty() ? 1 : static_cast<size_t>(u.shape()[0]); }

// A group of what the parts hold for each lane of `lanes`; scalars are in every one.
UOp interleaved(const std::vector<UOp>& parts, size_t lanes) {
  const UOp first = parts[0];
  const auto lane = [](UOp u, size_t i) {
    return u.shape().empty() ? u : make(Op::INDEX, u.dtype(), {u, iconst(static_cast<int64_t>(i))});
  };
  const auto of_source = [&](size_t k) {
    std::vector<UOp> out;
    for (UOp u : parts) out.push_back(u.src(k));
    return out;
  };
  const auto equal_source = [&](size_t k) {
    return std::ranges::all_of(parts, [&](UOp u) { return u.src(k) == first.src(k); });
  };
  const bool same = groups(first) == lanes && std::ranges::all_of(parts, [&](UOp u) {
                      return u.op() == first.op() && u.dtype() == first.dtype() &&
                             u.nsrc() == first.nsrc() && groups(u) == lanes;
                    });
  const bool gated = first.nsrc() == 3;
  if (same && first.op() == Op::LOAD && (!gated || (first.src(1).is_const() && equal_source(1))))
    if (const UOp at = interleaved_place(of_source(0))) {
      if (!gated) return make(Op::LOAD, first.dtype(), {at});
      return make(Op::LOAD, first.dtype(), {at, first.src(1), interleaved(of_source(2), lanes)});
    }
  // What is done to each alike is done to all at once.
  static constexpr OpSet alone = OpSet(Op::CAST) | Op::BITCAST | Op::XOR | Op::WHERE;
  if (same && alone.has(first.op())) {
    std::vector<UOp> src;
    for (size_t k = 0; k < first.nsrc(); k++)
      src.push_back(first.src(k).is_const() && equal_source(k) ? first.src(k)
                                                               : interleaved(of_source(k), lanes));
    return rebuild(first, src);
  }
  std::vector<UOp> out;
  for (size_t i = 0; i < lanes; i++)
    for (UOp u : parts) out.push_back(lane(u, i));
  return stack(out);
}

}  // namespace

UOp interleaved(const std::vector<UOp>& parts) {
  size_t lanes = 1;
  for (UOp u : parts) lanes = std::max(lanes, groups(u));
  return interleaved(parts, lanes);
}

UOp with_lanes(UOp u, std::span<const UOp> src) {
  if (u.op() == Op::INDEX) return address(u, src[0], src[1]);
  // One address under a gate of lanes: each lane asks for itself.
  if (u.op() == Op::LOAD && src.size() == 3 && src[0].op() == Op::INDEX && src[0].shape().empty() &&
      !src[2].shape().empty()) {
    const auto n = static_cast<size_t>(src[2].shape()[0]);
    const UOp each_lane = stack(std::vector<UOp>(n, src[0].src(1)));
    return rebuild(u, std::vector<UOp>{make(Op::INDEX, src[0].dtype(), {src[0].src(0), each_lane}),
                                       src[1], src[2]});
  }
  if (u.op() == Op::LOAD && src[0].op() == Op::INDEX && src[0].src(0).op() == Op::PARAM &&
      !src[0].src(1).shape().empty() && src[0].src(1).shape()[0] >= 4 &&
      lane_step(src[0].src(1)) == 2)
    return every_other(u, src);
  return src.size() == u.nsrc() && std::ranges::equal(src, u.srcs()) ? u : rebuild(u, src);
}

}  // namespace beamline
