#include "engine/rangeify/rows.h"

#include <algorithm>
#include <optional>

#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/rangeify/ranges.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/linear.h"

namespace beamline {
namespace {

using NodeSet = std::unordered_set<UOp, UOpHash>;

// The STAGE that an INDEX reads; null for other nodes.
UOp read_stage(UOp u) {
  if (u.op() != Op::INDEX) return {};
  const UOp memory = u.src(0).op() == Op::RESHAPE ? u.src(0).src(0) : u.src(0);
  return memory.op() == Op::STAGE ? memory : UOp{};
}

class RowFuser {
 public:
  RowFuser(UOp staged, const NodeSet& kept, const RowLimits& limits)
      : order_(toposort(staged)), limits_(limits) {
    for (UOp u : order_) {
      if (u.op() != Op::STAGE) continue;
      id_.emplace(u, kernels_.size());
      kernels_.push_back({u, {}, kept.contains(u)});
      for (UOp s : stages_read(u.src(0))) kernels_[id_.at(s)].readers.insert(id_.at(u));
    }
  }

  UOp run() {
    NodeMap<UOp> done;
    for (UOp u : order_) {
      std::vector<UOp> src;
      for (UOp s : u.srcs()) src.push_back(done.at(s));
      if (u.op() == Op::STAGE) {
        const size_t t = id_.at(u);
        src[0] = with_rows(t, src[0], ranges_of(u));
        const UOp now = src == u.srcs() ? u : rebuild(u, src);
        kernels_[t].stage = now;
        id_.emplace(now, t);
        done.emplace(u, now);
        continue;
      }
      const Provenance::Of from(u);
      done.emplace(u, src == u.srcs() ? u : rebuild(u, src));
    }
    return done.at(order_.back());
  }

 private:
  struct Kernel {
    UOp stage;  // as it is now
    std::unordered_set<size_t> readers;
    bool kept = false;
  };

  static std::vector<UOp> stages_read(UOp value) {
    std::vector<UOp> out;
    for (UOp u : closed_walk(value))
      if (u.op() == Op::STAGE) out.push_back(u);
    return out;
  }

  // The value of kernel t with what it reads row by row computed in place.
  UOp with_rows(size_t t, UOp value, const std::vector<UOp>& loops) {
    for (bool again = true; again;) {
      again = false;
      for (UOp s : stages_read(value)) {
        const size_t k = id_.at(s);
        if (kernels_[k].kept || kernels_[k].readers.size() != 1) continue;
        const auto rows = rows_of(s, value, loops);
        if (!rows) continue;
        Substitution moved, inlined;
        const std::vector<UOp> own = ranges_of(s);
        for (size_t i = 0; i < own.size(); i++) moved.emplace(own[i], (*rows)[i]);
        const UOp result = substitute(s.src(0), moved);
        for (UOp u : closed_walk(value))
          if (read_stage(u) == s) inlined.emplace(u, result);
        value = substitute(value, inlined);
        for (UOp r : stages_read(s.src(0))) {
          auto& readers = kernels_[id_.at(r)].readers;
          readers.erase(k), readers.insert(t);
        }
        again = true;
        break;
      }
    }
    return value;
  }

  // The loops of the reader that s's own become, if s is a reduction of the reader's row.
  std::optional<std::vector<UOp>> rows_of(UOp s, UOp value, const std::vector<UOp>& loops) const {
    const std::vector<UOp> own = ranges_of(s);
    if (!reduces_rows(s, own)) return std::nullopt;
    std::optional<std::vector<UOp>> rows;
    bool reduced = false;
    int64_t row = 1;
    const std::vector<UOp> nodes = closed_walk(value);
    for (UOp u : nodes) {
      if (!(read_stage(u) == s)) continue;
      const auto at = places(u.src(1), own, loops);
      if (!at || (rows && *rows != *at)) return std::nullopt;
      rows = at;
    }
    if (!rows) return std::nullopt;
    const auto is_row = [&](UOp r) { return std::ranges::find(*rows, r) != rows->end(); };
    int64_t bytes = dtype_bytes(value.dtype()), count = 1;
    for (UOp u : nodes) {
      if (u.op() != Op::REDUCE) continue;
      reduced = true;
      for (UOp r : loops)
        if (u.has_range(r) && !is_row(r)) return std::nullopt;  // it would be repeated
      bytes = std::max(bytes, bytes_of_row(u));
    }
    for (UOp u : closed_walk(s.src(0)))
      if (u.op() == Op::REDUCE && steps_of(u) < limits_.shortest) return std::nullopt;
    for (UOp r : loops) (is_row(r) ? count : row) *= size_of(r);
    if (row == 1 && !reduced) return std::nullopt;
    bytes = std::max(bytes, row * dtype_bytes(value.dtype()));
    for (UOp u : closed_walk(s.src(0)))
      if (u.op() == Op::REDUCE) bytes = std::max(bytes, bytes_of_row(u));
    if (bytes > (count < limits_.rows ? limits_.lone_bytes : limits_.row_bytes))
      return std::nullopt;
    return rows;
  }

  // Each of its reductions is over something of its own for every row: of a matrix product none of
  // the factors is.
  static bool reduces_rows(UOp s, const std::vector<UOp>& own) {
    bool any = false;
    for (UOp u : closed_walk(s.src(0))) {
      if (u.op() != Op::REDUCE) continue;
      any = true;
      const std::vector<UOp> below = closed_walk(u.src(0));
      if (std::ranges::none_of(below, [&](UOp x) {
            return x.op() == Op::INDEX &&
                   std::ranges::all_of(own, [&](UOp r) { return x.has_range(r); });
          }))
        return false;
    }
    return any;
  }
  static int64_t steps_of(UOp reduction) {
    int64_t steps = 1;
    for (const Node* r : reduction.src(0).ranges())
      if (UOp(r).axis_type() == AxisType::REDUCE) steps *= size_of(UOp(r));
    return steps;
  }
  static int64_t bytes_of_row(UOp reduction) {
    int64_t bytes = 1;
    for (UOp u : closed_walk(reduction.src(0)))
      if (u.op() == Op::INDEX) bytes = std::max<int64_t>(bytes, dtype_bytes(u.dtype()));
    return steps_of(reduction) * bytes;
  }
  // The loops whose flat index, in the order of `own`, is `at`.
  static std::optional<std::vector<UOp>> places(UOp at, const std::vector<UOp>& own,
                                                const std::vector<UOp>& loops) {
    auto sum = linear(at);
    if (!sum || sum->constant != 0 || sum->terms.size() != own.size()) return std::nullopt;
    std::ranges::sort(sum->terms, std::greater<>(), &Term::coef);
    std::vector<UOp> out;
    int64_t stride = 1;
    for (size_t i = own.size(); i-- > 0;) {
      const Term& term = sum->terms[i];
      if (term.coef != stride || size_of(term.base) != size_of(own[i]) ||
          std::ranges::find(loops, term.base) == loops.end())
        return std::nullopt;
      out.insert(out.begin(), term.base);
      stride *= size_of(own[i]);
    }
    return out;
  }

  std::vector<UOp> order_;
  RowLimits limits_;
  std::vector<Kernel> kernels_;
  NodeMap<size_t> id_;
};

}  // namespace

UOp fuse_rows(UOp staged, const NodeSet& kept, const RowLimits& limits) {
  return RowFuser(staged, kept, limits).run();
}

UOp share_row_values(UOp kernel, const RowLimits& limits) {
  if (kernel.nsrc() != 1 || kernel.src(0).op() != Op::END) return kernel;
  UOp end = kernel.src(0);
  const std::vector<UOp> outer = ranges_of(end), order = toposort(kernel);
  NodeSet loops;  // over the row, one at a time
  int64_t next_id = 0, kept = 0;
  std::vector<UOp> rows{end.src(0)}, columns;
  for (UOp r : outer) (would_repeat_reduction(order, r) ? columns : rows).push_back(r);
  if (columns.empty()) return kernel;
  if (columns.size() == 1) loops.insert(columns[0]);
  for (UOp u : order) {
    if (u.op() == Op::RANGE) next_id = std::max(next_id, u.range_id() + 1);
    if (u.op() == Op::STAGE) kept += u.numel() * dtype_bytes(u.dtype());
    if (u.op() == Op::REDUCE && u.nsrc() == 2) loops.insert(u.src(1));
  }
  rows.insert(rows.end(), columns.begin(), columns.end());
  if (rows != end.srcs()) {
    end = rebuild(end, rows);
    return share_row_values(rebuild(kernel, std::vector<UOp>{end}), limits);
  }

  // By what it is with a range of no loop: the loops that compute a value, and where.
  struct Use {
    UOp node, loop;
  };
  NodeMap<std::vector<Use>> uses;
  NodeSet with_dear;
  std::vector<UOp> values;  // those in the order of `order`
  for (UOp u : order) {
    bool holds = is_dear(u);
    for (size_t i = 0; i < (u.op() == Op::REDUCE ? 1 : u.nsrc()); i++)
      holds |= with_dear.contains(u.src(i));
    if (!holds || u.op() == Op::REDUCE || !ops::elementwise.has(u.op())) continue;
    UOp loop;
    bool one = true;
    for (const Node* n : u.ranges()) {
      if (!loops.contains(UOp(n))) continue;
      one &= !loop;
      loop = UOp(n);
    }
    if (!loop || !one || size_of(loop) * dtype_bytes(u.dtype()) > limits.row_bytes) continue;
    with_dear.insert(u);
    const UOp row = range(size_of(loop), next_id, AxisType::LOOP);
    const UOp value = substitute(u, {{loop, row}});
    uses.insert(value.node(), {});
    uses.find(value.node())->push_back({u, loop});
    values.push_back(value);
  }
  for (size_t i = values.size(); i-- > 0;) {  // the largest first
    const std::vector<Use>& all = *uses.find(values[i].node());
    if (std::ranges::all_of(all, [&](const Use& u) { return u.loop == all[0].loop; })) continue;
    if (kept + size_of(all[0].loop) * dtype_bytes(values[i].dtype()) > limits.kept_bytes) continue;
    const Provenance::Of from(all[0].node);
    const UOp row = range(size_of(all[0].loop), next_id, AxisType::LOOP);
    const UOp stage = make(Op::STAGE, values[i].dtype(), {values[i], row});
    Substitution read;
    for (const Use& u : all) read.emplace(u.node, make(Op::INDEX, stage.dtype(), {stage, u.loop}));
    return share_row_values(substitute(kernel, read), limits);
  }
  return kernel;
}

}  // namespace beamline
