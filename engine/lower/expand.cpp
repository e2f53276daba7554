// Every node gets one piece for each value of the expanded axes it depends on. Stores are written
// out over all their values at once, and so are hints; what waits for them waits for all of them.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/ir/tensor_core.h"
#include "engine/lower/lanes.h"
#include "engine/lower/passes.h"
#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

struct Axis {
  UOp range;
  std::vector<UOp> values;  // a constant, or for a lane axis a vector of constants, per step
};
struct Pieces {
  std::vector<size_t> axes;  // ascending
  std::vector<UOp> at;       // last axis fastest
};

class Expander {
 public:
  Expander(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes, size_t max_pieces)
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

  std::optional<UOp> run() {
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

 private:
  // Whole vectors first, then powers of two.
  static void cut(int64_t n, int64_t width, std::vector<UOp>& out) {
    for (int64_t at = 0; at < n;) {
      while (width > n - at) width /= 2;
      std::vector<UOp> lane;
      for (int64_t i = 0; i < width; i++) lane.push_back(iconst(at + i));
      out.push_back(width == 1 ? lane[0] : stack(lane));
      at += width;
    }
  }
  void keep(UOp u, Pieces p) {
    total_ += p.at.size();
    pieces_.emplace(u, std::move(p));
  }
  size_t combinations(std::span<const size_t> axes) const {
    size_t n = 1;
    for (size_t a : axes) n *= axes_[a].values.size();
    return n;
  }
  // The piece of u for combination `c` of `axes`, a superset of its own.
  UOp piece(UOp u, std::span<const size_t> axes, size_t c) {
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
  std::vector<size_t> axes_of(std::span<const UOp> nodes) {
    std::vector<size_t> out;
    for (UOp u : nodes) {
      const auto& more = pieces_.at(u).axes;
      out.insert(out.end(), more.begin(), more.end());
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void each(UOp u) {
    std::vector<UOp> operands;
    for (size_t i = 0; i < u.nsrc(); i++)
      if (!(u.op() == Op::END && i > 0 && axis_of_.contains(u.src(i))))
        operands.push_back(u.src(i));
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

  // A load whose lanes lie apart, along another written-out axis of consecutive elements: vectors
  // are loaded along that axis and transposed in registers.
  bool transposed(UOp u) {
    const UOp memory = u.src(0).src(0), index = u.src(0).src(1);
    if (u.nsrc() != 1 || memory.op() != Op::PARAM) return false;
    const UOp operands[] = {index};
    const std::vector<size_t> axes = axes_of(operands);
    const auto along = std::ranges::find_if(axes, [&](size_t a) {
      return axes_[a].values[0].shape().empty() && unit_stride(index, axes_[a].range);
    });
    if (along == axes.end()) return false;
    const size_t count = axes_[*along].values.size();
    size_t stride = 1;
    for (auto later = along + 1; later != axes.end(); ++later)
      stride *= axes_[*later].values.size();
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

  // The other way round: a store whose lanes lie apart. Its values are transposed in registers, and
  // runs along the axis of consecutive elements are stored.
  bool stored_across(UOp u) {
    const UOp memory = u.src(0).src(0), index = u.src(0).src(1);
    if (memory.op() != Op::PARAM) return false;
    const std::vector<UOp> operands = u.srcs();
    const std::vector<size_t> axes = axes_of(operands);
    const auto along = std::ranges::find_if(axes, [&](size_t a) {
      return axes_[a].values[0].shape().empty() && unit_stride(index, axes_[a].range);
    });
    if (along == axes.end()) return false;
    const size_t count = axes_[*along].values.size();
    size_t stride = 1;
    for (auto later = along + 1; later != axes.end(); ++later)
      stride *= axes_[*later].values.size();
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
  // Rows of vectors as runs of `run` elements, one for each of the vectors' lanes.
  void run_of_stores(UOp u, std::span<const size_t> axes, const std::vector<size_t>& row,
                     size_t run, std::vector<UOp>& stores) {
    const UOp memory = u.src(0).src(0), at = piece(u.src(0).src(1), axes, row[0]);
    const auto width = static_cast<size_t>(at.shape()[0]);
    const auto lane = [](UOp v, size_t l) {
      return v.shape().empty() ? v
                               : make(Op::INDEX, v.dtype(), {v, iconst(static_cast<int64_t>(l))});
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

  void store(UOp u) {
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

  // What a product by lanes will read together is written together.
  bool interleaved_stores(UOp u, std::span<const size_t> axes, std::vector<UOp>& stores) {
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
  // What each lane multiplies lies side by side; a factor that has no lanes is that of all.
  void products_by_lane(UOp u) {
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

  // The place among pieces over `axes`, by the digit of every axis.
  size_t place(std::span<const size_t> axes, const std::vector<size_t>& digits) const {
    size_t at = 0;
    for (size_t a : axes) at = at * axes_[a].values.size() + digits[a];
    return at;
  }
  // Sets the digits of `axes` to combination c of them.
  void at_combination(std::span<const size_t> axes, size_t c, std::vector<size_t>& digits) const {
    for (size_t k = axes.size(); k-- > 0; c /= axes_[axes[k]].values.size())
      digits[axes[k]] = c % axes_[axes[k]].values.size();
  }
  // A matrix product: an operand's elements side by side, one node for all elements of the result.
  void product(UOp u) {
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

  // ADD(accumulator, REDUCE[ADD](v)): one chain of additions onto the accumulator, which fuses with
  // products.
  UOp chained(UOp u) const {
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
  // Folds r's operand over r's axes, onto `start` where there is one; lanes are summed last.
  void fold(UOp u, UOp r, UOp start) {
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
      if (lanes && v.shape().empty()) v = repeat(v, all, c);
      if (sum && lanes && !std::ranges::equal(sum.shape(), v.shape()))
        odd[index].push_back(v);
      else
        sum = sum ? alu(r.reduce_op(), {sum, v}) : v;
    }
    for (size_t i = 0; lanes && i < p.at.size(); i++) {
      if (!p.at[i]) continue;
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
  // A value that is the same in every lane still counts once a lane.
  UOp repeat(UOp v, std::span<const size_t> all, size_t c) const {
    for (size_t i = all.size(); i-- > 0;) {
      const auto& values = axes_[all[i]].values;
      const UOp step = values[c % values.size()];
      c /= values.size();
      if (!step.shape().empty())
        return stack(std::vector<UOp>(static_cast<size_t>(step.shape()[0]), v));
    }
    return v;
  }

  std::vector<UOp> order_;
  size_t max_pieces_, total_ = 0;
  std::vector<Axis> axes_;
  std::unordered_map<UOp, size_t, UOpHash> axis_of_;
  size_t step_ = SIZE_MAX;                    // the axis of what lanes multiply at once
  std::unordered_set<UOp, UOpHash> factors_;  // what leads to them
  NodeMap<Pieces> pieces_;
};

}  // namespace

std::optional<UOp> expand(UOp ast, const std::vector<UOp>& lanes, int64_t vector_lanes,
                          size_t max_pieces) {
  return Expander(ast, lanes, std::max<int64_t>(1, vector_lanes), max_pieces).run();
}

}  // namespace beamline
