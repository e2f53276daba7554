// Every node gets one piece for each value of the expanded axes it depends on. Stores are written
// out over all their values at once, and so are hints; what waits for them waits for all of them.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/ir/provenance.h"
#include "engine/ir/tensor_core.h"
#include "engine/lower/expander.h"
#include "engine/lower/lanes.h"
#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {

Expander::Expander(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes, size_t max_pieces)
    : order_(toposort(ast)), max_pieces_(max_pieces) {
  // Vectors side by side come one after the other: of a register tile's operands, those that are
  // few stay in registers, and the others pass.
  for (const bool vectors : {false, true})
    for (UOp u : order_) {
      if (u.op() != Op::RANGE ||
          (u.axis_type() != AxisType::UPCAST && u.axis_type() != AxisType::UNROLL) ||
          vectors != (std::ranges::find(lanes, u) != lanes.end()))
        continue;
      Axis a{u, {}};
      const int64_t n = u.vmax() + 1;
      if (vectors)
        cut(n, vector_lanes, a.values);
      else
        for (int64_t i = 0; i < n; i++) a.values.push_back(iconst(i));
      axis_of_.emplace(u, axes_.size());
      axes_.push_back(std::move(a));
    }
  for (UOp u : order_)
    if (u.op() == Op::WMMA && tensor_core(u.text())->shape->by_lane()) {
      step_ = axis_of_.at(u.src(3));
      for (size_t k = 0; k < 2; k++)
        for (UOp v = u.src(k); v.nsrc() > 0; v = v.src(v.op() == Op::WHERE ? 1 : 0))
          if (factors_.insert(v).second && v.op() == Op::LOAD) break;
    }
}

std::optional<UOp> Expander::run() {
  for (UOp u : order_) {
    if (total_ > max_pieces_) return std::nullopt;
    const Provenance::Of from(u);
    if (const auto a = axis_of_.find(u); a != axis_of_.end()) {
      keep(u, {{a->second}, axes_[a->second].values});
      continue;
    }
    if (u.op() == Op::STORE && stored_across(u)) continue;
    if (u.op() == Op::STORE || u.op() == Op::NOOP)
      store(u);
    else if (u.op() == Op::WMMA && tensor_core(u.text())->shape->by_lane())
      products_by_lane(u);
    else if (u.op() == Op::WMMA)
      product(u);
    else if (u.op() == Op::REDUCE)
      fold(u, u, UOp{});
    else if (const UOp r = chained(u))
      fold(u, r, u.src(0) == r ? u.src(1) : u.src(0));
    else if (u.op() != Op::LOAD || !transposed(u))
      each(u);
  }
  if (total_ > max_pieces_) return std::nullopt;
  return pieces_.at(order_.back()).at[0];
}

void Expander::cut(int64_t n, int64_t width, std::vector<UOp>& out) {
  for (int64_t at = 0; at < n;) {
    while (width > n - at) width /= 2;
    std::vector<UOp> lane;
    for (int64_t i = 0; i < width; i++) lane.push_back(iconst(at + i));
    out.push_back(width == 1 ? lane[0] : stack(lane));
    at += width;
  }
}

void Expander::keep(UOp u, Pieces p) {
  total_ += p.at.size();
  pieces_.emplace(u, std::move(p));
}

size_t Expander::combinations(std::span<const size_t> axes) const {
  size_t n = 1;
  for (size_t a : axes) n *= axes_[a].values.size();
  return n;
}

UOp Expander::piece(UOp u, std::span<const size_t> axes, size_t c) {
  const Pieces& p = pieces_.at(u);
  if (p.axes.empty()) return p.at[0];
  size_t index = 0, stride = 1, k = p.axes.size();
  for (size_t i = axes.size(); i-- > 0 && k > 0;) {
    const size_t n = axes_[axes[i]].values.size(), digit = c % n;
    c /= n;
    if (p.axes[k - 1] != axes[i]) continue;
    index += digit * stride;
    stride *= n;
    k--;
  }
  CHECK(k == 0);
  return p.at[index];
}

std::vector<size_t> Expander::axes_of(std::span<const UOp> nodes) {
  std::vector<size_t> out;
  for (UOp u : nodes) {
    const auto& more = pieces_.at(u).axes;
    out.insert(out.end(), more.begin(), more.end());
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Expander::each(UOp u) {
  std::vector<UOp> operands;
  for (size_t i = 0; i < u.nsrc(); i++)
    if (!(u.op() == Op::END && i > 0 && axis_of_.contains(u.src(i)))) operands.push_back(u.src(i));
  Pieces p;
  p.axes = axes_of(operands);
  const size_t n = combinations(p.axes);
  std::vector<UOp> src;
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    src.clear();
    for (UOp s : operands) src.push_back(piece(s, p.axes, c));
    if (u.op() == Op::END && src.size() == 1)
      p.at.push_back(src[0]);
    else
      p.at.push_back(u.op() == Op::LOAD && factors_.contains(u) ? rebuild(u, src)
                                                                : with_lanes(u, src));
  }
  keep(u, std::move(p));
}

UOp Expander::chained(UOp u) const {
  if (!ops::reduce.has(u.op())) return {};
  for (size_t i = 0; i < 2; i++) {
    const UOp r = u.src(i), other = u.src(1 - i);
    if (r.op() != Op::REDUCE || r.reduce_op() != u.op() || r.reduce_dims() != 0 ||
        other.op() != Op::LOAD)
      continue;
    bool whole = true;
    for (size_t k = 1; k < r.nsrc(); k++)
      whole &=
          axis_of_.contains(r.src(k)) && axes_[axis_of_.at(r.src(k))].values[0].shape().empty();
    if (whole) return r;
  }
  return {};
}

void Expander::fold(UOp u, UOp r, UOp start) {
  std::vector<size_t> folded;
  bool lanes = false;
  for (size_t i = 1; i < r.nsrc(); i++) {
    folded.push_back(axis_of_.at(r.src(i)));
    lanes |= !axes_[folded.back()].values[0].shape().empty();
  }
  std::ranges::sort(folded);
  const UOp value = r.src(0);
  std::vector<UOp> operands{value};
  if (start) operands.push_back(start);
  std::vector<size_t> all = axes_of(operands);
  for (size_t f : folded)
    if (std::ranges::find(all, f) == all.end())
      all.push_back(f);  // a value repeated along the axis
  std::ranges::sort(all);
  Pieces p;
  for (size_t a : all)
    if (std::ranges::find(folded, a) == folded.end()) p.axes.push_back(a);
  p.at.assign(combinations(p.axes), UOp{});
  const UOp nothing = reduce_identity(r.reduce_op(), r.dtype());
  std::vector<UOp> skipped(p.at.size());
  std::vector<std::vector<UOp>> odd(
      p.at.size());  // vectors of another width, each summed on its own
  const size_t n = combinations(all);
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    size_t rest = c, index = 0, stride = 1;
    for (size_t i = all.size(); i-- > 0;) {
      const size_t size = axes_[all[i]].values.size(), digit = rest % size;
      rest /= size;
      if (std::ranges::find(folded, all[i]) != folded.end()) continue;
      index += digit * stride;
      stride *= size;
    }
    UOp& sum = p.at[index];
    if (!sum && start) sum = piece(start, all, c);
    UOp v = piece(value, all, c);
    if (v.op() == Op::WHERE && v.src(2) == nothing && v.src(0).ranges().empty() &&
        v.src(0).shape().empty() && simplify(v.src(0)).is_const(0)) {
      skipped[index] = nothing;
      continue;
    }
    if (lanes && v.shape().empty()) v = repeat(v, all, c);
    if (sum && lanes && !std::ranges::equal(sum.shape(), v.shape()))
      odd[index].push_back(v);
    else
      sum = sum ? alu(r.reduce_op(), {sum, v}) : v;
  }
  for (size_t i = 0; i < p.at.size(); i++) {
    if (!p.at[i]) p.at[i] = skipped[i];  // all of them
    if (!p.at[i] || !lanes) continue;
    const auto across = [&](UOp v) {
      return v.shape().empty() ? v : reduce(r.reduce_op(), v, {}, 1);
    };
    UOp sum = across(p.at[i]);
    for (UOp v : odd[i]) sum = alu(r.reduce_op(), {sum, across(v)});
    p.at[i] = sum;
  }
  total_ += n;
  keep(u, std::move(p));
}

UOp Expander::repeat(UOp v, std::span<const size_t> all, size_t c) const {
  for (size_t i = all.size(); i-- > 0;) {
    const auto& values = axes_[all[i]].values;
    const UOp step = values[c % values.size()];
    c /= values.size();
    if (!step.shape().empty())
      return stack(std::vector<UOp>(static_cast<size_t>(step.shape()[0]), v));
  }
  return v;
}

std::optional<UOp> expand(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes,
                          size_t max_pieces) {
  return Expander(ast, lanes, std::max<int64_t>(1, vector_lanes), max_pieces).run();
}

}  // namespace beamline
