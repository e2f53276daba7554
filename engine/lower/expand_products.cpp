// The part of Expander that is for matrix products: what one instruction multiplies, side by side.
#include <algorithm>

#include "engine/ir/tensor_core.h"
#include "engine/lower/expander.h"
#include "engine/lower/lanes.h"

namespace beamline {

void Expander::products_by_lane(UOp u) {
  const UOp operands[] = {u.src(0), u.src(1), u.src(2)};
  const size_t inside[] = {step_};
  std::vector<size_t> all = axes_of(operands), steps;
  for (size_t i = 4; i < u.nsrc(); i++) steps.push_back(axis_of_.at(u.src(i)));
  all.insert(all.end(), steps.begin(), steps.end());
  all.push_back(step_);
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Pieces p;
  for (size_t a : all)
    if (a != step_ && std::ranges::find(steps, a) == steps.end()) p.axes.push_back(a);
  std::vector<size_t> digits(axes_.size(), 0);
  const size_t n = combinations(p.axes);
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    at_combination(p.axes, c, digits);
    UOp sum = piece(operands[2], all, place(all, digits));
    for (size_t s = 0; s < combinations(steps); s++) {
      at_combination(steps, s, digits);
      std::vector<UOp> parts[2];
      for (size_t e = 0; e < axes_[step_].values.size(); e++) {
        at_combination(inside, e, digits);
        for (size_t k = 0; k < 2; k++)
          parts[k].push_back(piece(operands[k], all, place(all, digits)));
      }
      digits[step_] = 0;
      for (const auto& of : parts)
        for (UOp v : of)
          if (sum.shape().empty() && !v.shape().empty())
            sum = stack(std::vector<UOp>(static_cast<size_t>(v.shape()[0]), sum));
      sum = make(Op::WMMA, u.dtype(), {interleaved(parts[0]), interleaved(parts[1]), sum}, 0,
                 u.node()->ext);
    }
    total_ += 3;
    p.at.push_back(sum);
  }
  keep(u, std::move(p));
}

size_t Expander::place(std::span<const size_t> axes, const std::vector<size_t>& digits) const {
  size_t at = 0;
  for (size_t a : axes) at = at * axes_[a].values.size() + digits[a];
  return at;
}

void Expander::at_combination(std::span<const size_t> axes, size_t c,
                              std::vector<size_t>& digits) const {
  for (size_t k = axes.size(); k-- > 0; c /= axes_[axes[k]].values.size())
    digits[axes[k]] = c % axes_[axes[k]].values.size();
}

void Expander::product(UOp u) {
  const MatrixShape& shape = *tensor_core(u.text())->shape;
  const size_t registers = shape.element_bits(2).size();
  std::vector<size_t> bits[3];  // of the number of an element, highest first
  for (int i = 0; i < 3; i++)
    for (MatrixBit b : shape.element_bits(i)) {
      const size_t first = b.kind == BitKind::Step ? 3 + registers : 3;
      bits[i].push_back(axis_of_.at(u.src(first + static_cast<size_t>(b.i))));
    }
  const UOp operands[] = {u.src(0), u.src(1), u.src(2)};
  std::vector<size_t> free = axes_of(operands), steps;  // steps of a sum, taken in turn
  for (size_t i = 3; i < u.nsrc(); i++) {
    std::erase(free, axis_of_.at(u.src(i)));
    if (i >= 3 + registers + static_cast<size_t>(shape.steps()))
      steps.push_back(axis_of_.at(u.src(i)));
  }
  Pieces p{free, {}};
  p.axes.insert(p.axes.end(), bits[2].begin(), bits[2].end());
  std::ranges::sort(p.axes);
  p.at.assign(combinations(p.axes), UOp{});
  std::vector<size_t> digits(axes_.size(), 0);
  const auto element = [&](int operand, size_t e) {
    for (size_t k = bits[operand].size(); k-- > 0; e /= 2) digits[bits[operand][k]] = e % 2;
  };
  const size_t n = combinations(free);
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    at_combination(free, c, digits);
    const auto held = [&](int operand) {
      std::vector<UOp> out;
      const Pieces& of = pieces_.at(operands[operand]);
      for (size_t e = 0; e < size_t{1} << bits[operand].size(); e++) {
        element(operand, e);
        out.push_back(of.at[place(of.axes, digits)]);
      }
      element(operand, 0);
      return stack(out);
    };
    UOp all = held(2);
    for (size_t step = 0; step < combinations(steps); step++) {
      at_combination(steps, step, digits);
      all = make(Op::WMMA, u.dtype(), {held(0), held(1), all}, 0, u.node()->ext);
    }
    for (size_t e = 0; e < size_t{1} << bits[2].size(); e++) {
      element(2, e);
      p.at[place(p.axes, digits)] =
          make(Op::INDEX, u.dtype(), {all, iconst(static_cast<int64_t>(e))});
    }
  }
  keep(u, std::move(p));
}

}  // namespace beamline
