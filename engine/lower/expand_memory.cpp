// The part of Expander that moves data: stores, and accesses along another axis than the lanes',
// transposed in registers.
#include <algorithm>
#include <bit>

#include "engine/lower/expander.h"
#include "engine/lower/lanes.h"
#include "engine/lower/passes.h"
#include "engine/opt/schedule.h"
#include "engine/rules/rules.h"

namespace beamline {

Expander::Along Expander::consecutive(const std::vector<size_t>& axes, UOp index) const {
  const auto along = std::ranges::find_if(axes, [&](size_t a) {
    return axes_[a].values[0].shape().empty() && unit_stride(index, axes_[a].range);
  });
  if (along == axes.end()) return {};
  size_t stride = 1;
  for (auto later = along + 1; later != axes.end(); ++later) stride *= axes_[*later].values.size();
  return {axes_[*along].values.size(), stride};
}

bool Expander::transposed(UOp u) {
  const UOp memory = u.src(0).src(0), index = u.src(0).src(1);
  if (u.nsrc() != 1 || memory.op() != Op::PARAM) return false;
  const UOp operands[] = {index};
  const std::vector<size_t> axes = axes_of(operands);
  const auto [count, stride] = consecutive(axes, index);
  if (count == 0) return false;
  const size_t n = combinations(axes);
  Pieces p{axes, std::vector<UOp>(n)};
  for (size_t c = 0; c < n; c++) {
    if (p.at[c]) continue;
    const UOp at = piece(index, axes, c);
    const size_t width = at.shape().empty() ? 0 : static_cast<size_t>(at.shape()[0]);
    const auto step = lane_step(at);
    // The first of `width` pieces in a row along the axis is met first.
    if (width < 4 || count % width != 0 || !step || *step == 1) return false;
    std::vector<UOp> rows;
    const int64_t size[] = {at.shape()[0]};
    for (size_t l = 0; l < width; l++) {
      const UOp base[] = {lane_of(at, l)};
      rows.push_back(make(Op::LOAD, u.dtype(),
                          {make(Op::SHRINK, u.dtype(), {memory, stack(base), dims(size)})}));
    }
    const std::vector<UOp> columns = transpose_registers(rows);
    for (size_t i = 0; i < width; i++) p.at[c + i * stride] = columns[i];
  }
  keep(u, std::move(p));
  return true;
}

bool Expander::stored_across(UOp u) {
  const UOp memory = u.src(0).src(0), index = u.src(0).src(1);
  if (memory.op() != Op::PARAM) return false;
  const std::vector<UOp> operands = u.srcs();
  const std::vector<size_t> axes = axes_of(operands);
  const auto [count, stride] = consecutive(axes, index);
  if (count == 0) return false;
  std::vector<UOp> stores;
  for (size_t c = 0; c < combinations(axes); c++) {
    const UOp at = piece(index, axes, c);
    const size_t width = at.shape().empty() ? 0 : static_cast<size_t>(at.shape()[0]);
    const auto step = lane_step(at);
    if (count < 2 || width < 4 || !step || *step == 0 || *step == 1) return false;
    const size_t first = c / stride % count;
    if (first % width != 0) continue;  // stored with the run that it is in
    const size_t run = std::min(width, count - first);
    std::vector<size_t> row;
    for (size_t i = 0; i < std::bit_ceil(run); i++)
      row.push_back(c + std::min(i, run - 1) * stride);
    run_of_stores(u, axes, row, run, stores);
  }
  total_ += stores.size();
  keep(u, {{}, {make(Op::GROUP, DType::Void, stores)}});
  return true;
}

void Expander::run_of_stores(UOp u, std::span<const size_t> axes, const std::vector<size_t>& row,
                             size_t run, std::vector<UOp>& stores) {
  const UOp memory = u.src(0).src(0), at = piece(u.src(0).src(1), axes, row[0]);
  const auto width = static_cast<size_t>(at.shape()[0]);
  const auto lane = [](UOp v, size_t l) {
    return v.shape().empty() ? v : make(Op::INDEX, v.dtype(), {v, iconst(static_cast<int64_t>(l))});
  };
  std::vector<UOp> rows;
  for (size_t c : row) {
    const UOp v = piece(u.src(1), axes, c);
    rows.push_back(v.shape().empty() ? stack(std::vector<UOp>(width, v)) : v);
  }
  const size_t n = row.size();
  const std::vector<UOp> columns = transpose_registers(rows);
  for (size_t l = 0; l < width; l++) {
    std::vector<UOp> elements, gate;
    for (size_t i = 0; i < n; i++) {
      elements.push_back(lane(columns[l % n], l / n * n + i));
      const UOp inside = bool_const(i < run);
      gate.push_back(u.nsrc() < 3 ? inside : lane(piece(u.src(2), axes, row[i]), l) & inside);
    }
    const UOp base[] = {lane_of(at, l)};
    const int64_t size[] = {static_cast<int64_t>(n)};
    std::vector<UOp> src{make(Op::INDEX, memory.dtype(), {memory, base[0]}), elements[0]};
    if (n > 1) {
      src[0] = make(Op::SHRINK, memory.dtype(), {memory, stack(base), dims(size)});
      src[1] = n == width ? columns[l] : stack(elements);
    }
    if (u.nsrc() == 3 || run < n) src.push_back(n > 1 ? stack(gate) : gate[0]);
    stores.push_back(make(Op::STORE, DType::Void, src));
  }
}

void Expander::store(UOp u) {
  const std::vector<UOp> operands = u.srcs();
  const std::vector<size_t> axes = axes_of(operands);
  const size_t n = combinations(axes);
  std::vector<UOp> stores, src;
  if (interleaved_stores(u, axes, stores)) {
    total_ += stores.size();
    keep(u, {{}, {make(Op::GROUP, DType::Void, stores)}});
    return;
  }
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    src.clear();
    for (UOp s : operands) src.push_back(piece(s, axes, c));
    stores.push_back(make(u.op(), DType::Void, src));
  }
  total_ += stores.size();
  keep(u, {{}, {stores.size() == 1 ? stores[0] : make(Op::GROUP, DType::Void, stores)}});
}

bool Expander::interleaved_stores(UOp u, std::span<const size_t> axes, std::vector<UOp>& stores) {
  const auto step = std::ranges::find(axes, step_);
  if (step == axes.end() || u.nsrc() != 2 || memory_of(u.src(0)).op() != Op::BUFFER) return false;
  size_t stride = 1;
  for (auto later = step + 1; later != axes.end(); ++later) stride *= axes_[*later].values.size();
  const size_t count = axes_[step_].values.size(), n = combinations(axes);
  for (size_t c = 0; c < n && total_ + c <= max_pieces_; c++) {
    if (c / stride % count != 0) continue;
    std::vector<UOp> at, values;
    for (size_t s = 0; s < count; s++) {
      at.push_back(piece(u.src(0), axes, c + s * stride));
      values.push_back(piece(u.src(1), axes, c + s * stride));
    }
    const UOp place = interleaved_place(at);
    if (!place) return false;
    stores.push_back(make(Op::STORE, DType::Void, {place, interleaved(values)}));
  }
  return true;
}

}  // namespace beamline
