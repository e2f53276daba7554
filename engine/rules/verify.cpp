#include "engine/rules/verify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/ir/shape.h"
#include "engine/ir/tensor_core.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {
namespace {

constexpr unsigned tensor = 1, prepared = 2, scheduled = 4, lowered = 8, linear = 16;
constexpr unsigned kernel = prepared | scheduled, after_opts = lowered | linear, always = 31;
constexpr unsigned bit(Stage s) { return 1u << static_cast<unsigned>(s); }

constexpr OpSet leaves = Op::PARAM | Op::CONST | Op::STACK;
constexpr OpSet tensor_ops =
    leaves | ops::elementwise | ops::movement | Op::REDUCE | Op::CONTIGUOUS | Op::DETACH | Op::SINK;
constexpr OpSet kernel_ops = leaves | ops::elementwise | Op::REDUCE | Op::SINK | Op::END |
                             Op::STORE | Op::GROUP | Op::INDEX | Op::RANGE | Op::STAGE |
                             Op::RESHAPE;
constexpr OpSet scheduled_ops = kernel_ops | Op::WMMA;
constexpr OpSet lowered_ops = scheduled_ops | Op::LOAD | Op::AFTER | Op::BUFFER | Op::SHRINK |
                              Op::SPECIAL | Op::BARRIER | Op::NOOP;

constexpr OpSet multi_device = Op::UNSHARD | Op::ALLREDUCE | Op::COPY | Op::MSELECT | Op::MSTACK;

bool is_memory(UOp u) { return u.op() == Op::PARAM || u.op() == Op::BUFFER || u.op() == Op::STAGE; }
bool is_stage(UOp u) {
  if (u.op() == Op::RESHAPE) return u.src(0).op() == Op::STAGE && u.shape().size() == 1;
  for (size_t i = 1; i < u.nsrc(); i++)
    if (u.src(i).op() != Op::RANGE || !u.src(0).has_range(u.src(i))) return false;
  return u.nsrc() > 1 && u.src(0).shape().empty();
}
// INDEX(vector, constant): one lane of a value.
bool is_lane(UOp u) {
  return u.src(0).addrspace() == AddrSpace::None && u.src(0).shape().size() == 1 &&
         u.src(1).is_const() && u.src(1).ival() >= 0 && u.src(1).ival() < u.src(0).shape()[0];
}
bool is_address(UOp u) { return u.op() == Op::INDEX || u.op() == Op::SHRINK; }
bool is_gate(UOp u) { return u.op() == Op::WHERE && u.src(2).is_invalid(); }
bool all_ranges(UOp u, size_t from) {
  for (size_t i = from; i < u.nsrc(); i++)
    if (u.src(i).op() != Op::RANGE) return false;
  return true;
}
bool value_dtype_fits(UOp u) { return u.dtype() == derive_dtype(u.op(), u.srcs(), u.dtype()); }
// With what splits that do not divide clamp, WHERE(v < n, v, c), as a variable of the bounds that
// has.
UOp clamps_bounded(UOp index) {
  Substitution bounded;
  for (UOp u : toposort(index)) {
    if (u.op() != Op::WHERE || u.src(0).op() != Op::CMPLT || !(u.src(0).src(0) == u.src(1)) ||
        !u.src(0).src(1).is_const() || !u.src(2).is_const() || !u.shape().empty())
      continue;
    const int64_t other = u.src(2).ival(), below = u.src(0).src(1).ival() - 1;
    bounded.emplace(
        u, variable(fmt::format("clamp{}", bounded.size()), std::min(u.src(1).vmin(), other),
                    std::max(std::min(u.src(1).vmax(), below), other)));
  }
  return bounded.empty() ? index : substitute(index, bounded);
}
bool in_bounds(UOp u) {
  if (is_gate(u.src(1))) return true;
  const int64_t n = memory_of(u).numel();
  const auto inside = [&](UOp at) { return at.vmin() >= 0 && at.vmax() < n; };
  return inside(u.src(1)) || inside(clamps_bounded(u.src(1)));
}

bool is_product(UOp u) {
  const TensorCore* core = tensor_core(u.text());
  return core && u.dtype() == core->out && u.src(0).dtype() == core->factor(0) &&
         u.src(1).dtype() == core->factor(1) && u.src(2).dtype() == core->out && all_ranges(u, 3);
}
bool holds_elements(UOp u) {
  const MatrixShape& shape = *tensor_core(u.text())->shape;
  const int(&elements)[3] = shape.elements;
  if (shape.by_lane()) {
    const int64_t lanes = u.shape().empty() ? 1 : u.shape()[0];
    for (size_t i = 0; i < 2; i++)
      if (u.src(i).shape().size() != 1 ||
          (u.src(i).shape()[0] != shape.k && u.src(i).shape()[0] != shape.k * lanes))
        return false;
    return u.nsrc() == 3 && u.shape().size() <= 1 && lanes <= shape.n;
  }
  for (size_t i = 0; i < 3; i++)
    if (u.src(i).shape().size() != 1 || u.src(i).shape()[0] != elements[i]) return false;
  return u.nsrc() == 3;
}

struct Check {
  std::string_view name;
  unsigned stages;
  int level;
  OpSet ops;
  bool (*holds)(UOp);
  std::string_view expected;
};
// clang-format off
constexpr Check checks[] = {
    {"no-if",           always,              1, Op::IF | Op::ENDIF, [](UOp)   { return false; }, "gates, not branches"},
    {"one-device-loop", always,              1, Op::RANGE,  [](UOp u) { return u.axis_type() != AxisType::DEVICE; }, "a loop of one device: graphs over several are not scheduled yet"},
    {"one-device",      15,                  1, multi_device, [](UOp) { return false; }, "a graph of one device: graphs over several are not scheduled yet"},
    {"tensor-op",       tensor,              1, ops::all,   [](UOp u) { return tensor_ops.has(u.op()); }, "an op of the tensor graph"},
    {"scheduled-op",    scheduled,           1, ops::all,   [](UOp u) { return scheduled_ops.has(u.op()); }, "an op of kernels, or a matrix product"},
    {"kernel-op",       prepared,            1, ops::all,   [](UOp u) { return kernel_ops.has(u.op()); }, "an op of kernels"},
    {"lowered-op",      after_opts,          1, ops::all,   [](UOp u) { return lowered_ops.has(u.op()); }, "an op of lowered kernels"},
    {"alu-dtype",       always,              1, ops::alu,   value_dtype_fits, "the dtype its operands give"},
    {"where-condition", always,                1, Op::WHERE,  [](UOp u) { return u.src(0).dtype() == DType::Bool || u.src(0).is_invalid(); }, "a bool condition"},
    {"param-space",     always,              1, Op::PARAM,  [](UOp u) { return u.addrspace() == AddrSpace::Global || u.addrspace() == AddrSpace::Alu; }, "global memory or a variable"},
    {"param-slot",      kernel | after_opts, 1, Op::PARAM,  [](UOp u) { return u.addrspace() == AddrSpace::Alu || (u.param().slot >= 0 && u.param().slot < 4096); }, "a slot in 0..4095"},
    {"param-flat",      kernel | after_opts, 1, Op::PARAM,  [](UOp u) { return u.addrspace() == AddrSpace::Alu || (u.shape().size() == 1 && u.numel() > 0); }, "one dimension of at least one element"},
    {"sink-stores",     kernel | lowered,    1, Op::SINK,   [](UOp u) { return std::ranges::all_of(u.srcs(), [](UOp s) { return s.op() == Op::END || s.op() == Op::STORE || s.op() == Op::GROUP; }) && u.nsrc() > 0; }, "stores, ended"},
    {"sink-closed",     kernel | lowered,    1, Op::SINK,   [](UOp u) { return u.ranges().empty(); }, "every range ended"},
    {"end-ranges",      kernel | after_opts, 1, Op::END,    [](UOp u) { return u.nsrc() > 1 && (Op::STORE | Op::END | Op::GROUP | Op::BARRIER).has(u.src(0).op()) && all_ranges(u, 1); }, "a store and ranges"},
    {"range-size",      kernel,              1, Op::RANGE,  [](UOp u) { return u.nsrc() == 1 && u.src(0).is_const() && u.src(0).ival() > 0; }, "a constant positive end"},
    {"range-end",       after_opts,          1, Op::RANGE,  [](UOp u) { return u.nsrc() == 1 && u.src(0).vmax() > 0; }, "a positive end, as far as is known"},
    {"range-dtype",     kernel,              1, Op::RANGE,  [](UOp u) { return u.dtype() == DType::WeakInt; }, "weakint: its width is chosen later"},
    {"tensor-reduce",   tensor,              1, Op::REDUCE, [](UOp u) { return u.nsrc() == 1; }, "leading dims, no ranges"},
    {"kernel-reduce",   kernel,              1, Op::REDUCE, [](UOp u) { return u.reduce_dims() == 0 && u.nsrc() > 1 && all_ranges(u, 1); }, "ranges"},
    {"row-stage",       prepared,            1, Op::STAGE | Op::RESHAPE, [](UOp u) { return u.op() == Op::STAGE && u.nsrc() == 2 && is_stage(u); }, "a value over one range that it depends on"},
    {"row-loops",       scheduled | lowered, 1, Op::STAGE | Op::RESHAPE, is_stage, "a value over ranges it depends on, or one seen with one dimension"},
    {"index-shape",     kernel | after_opts, 1, Op::INDEX,  [](UOp u) { return u.nsrc() == 2 && (is_memory(memory_of(u)) || is_lane(u)) && (is_int(u.src(1).dtype())); }, "memory and one integer index, or a lane"},
    {"index-bounds",    kernel,              2, Op::INDEX,  in_bounds, "an index within its buffer"},
    {"store-index",     kernel | after_opts, 1, Op::STORE,  [](UOp u) { return u.nsrc() >= 2 && is_address(u.src(0)); }, "an address and a value"},
    {"store-dtype",     kernel | after_opts, 1, Op::STORE,  [](UOp u) { return u.src(1).dtype() == memory_of(u.src(0)).dtype() || is_weak(u.src(1).dtype()); }, "a value of the buffer's dtype"},
    {"store-arity",     kernel,              1, Op::STORE,  [](UOp u) { return u.nsrc() == 2; }, "no gate yet"},
    {"store-gate",      after_opts,          1, Op::STORE,  [](UOp u) { return u.nsrc() == 2 || (u.nsrc() == 3 && u.src(2).dtype() == DType::Bool); }, "at most a bool gate"},
    {"load-shape",      after_opts,          1, Op::LOAD,   [](UOp u) { return is_address(u.src(0)) && (u.nsrc() == 1 || (u.nsrc() == 3 && u.src(2).dtype() == DType::Bool)); }, "an address, and alternative and gate or neither"},
    {"hint-address",    after_opts,          1, Op::NOOP,   [](UOp u) { return u.nsrc() == 1 && is_address(u.src(0)) && memory_of(u.src(0)).op() == Op::PARAM; }, "an address of a buffer, to be fetched"},
    {"wmma-product",    kernel | after_opts, 1, Op::WMMA,   is_product, "a tensor core's factors and sum"},
    {"wmma-elements",   linear,              1, Op::WMMA,   holds_elements, "as many elements as a thread holds"},
    {"no-invalid",      after_opts,          1, Op::CONST,  [](UOp u) { return u.dtype() != DType::Invalid; }, "no poison left"},
    {"rows-in-memory",  linear,              1, Op::STAGE | Op::RESHAPE, [](UOp) { return false; }, "a buffer for a row that is kept"},
    {"flat-reduce",     linear,              1, Op::REDUCE, [](UOp u) { return u.nsrc() == 1 && u.reduce_dims() == 1; }, "lanes only"},
};
// clang-format on

std::optional<std::string> check_nodes(std::span<const UOp> nodes, unsigned stage, int level) {
  for (size_t i = 0; i < nodes.size(); i++)
    for (const Check& c : checks)
      if ((c.stages & stage) != 0 && c.level <= level && c.ops.has(nodes[i].op()) &&
          !c.holds(nodes[i]))
        return fmt::format("{}: %{} {}: expected {}", c.name, i, op_name(nodes[i].op()),
                           c.expected);
  return std::nullopt;
}

// A kept row is filled by loops of its own, of which no reduction in it is a part, and read by
// place; all of a kernel fit into a thread's memory.
std::optional<std::string> check_rows(std::span<const UOp> nodes, bool prepared_only) {
  std::unordered_map<UOp, UOp, UOpHash> filled_by;  // range -> STAGE
  const auto row_of = [](UOp u) { return u.op() == Op::RESHAPE ? u.src(0) : u; };
  int64_t bytes = 0;
  for (UOp u : nodes) {
    if (u.op() != Op::STAGE) continue;
    bytes += std::min(u.numel(), max_private_bytes) * dtype_bytes(u.dtype());
    for (size_t i = 1; i < u.nsrc(); i++) {
      const AxisType t = u.src(i).axis_type();
      if (t != AxisType::LOOP && (prepared_only || t != AxisType::UPCAST))
        return fmt::format("row-range: a row is filled by a {} range: expected LOOP",
                           axis_type_name(t));
      if (!filled_by.emplace(u.src(i), u).second)
        return "row-range: two rows are filled by one range: expected a range of its own";
    }
  }
  if (filled_by.empty()) return std::nullopt;
  if (bytes > max_private_bytes)
    return fmt::format("row-bytes: rows of {} bytes or more are kept: expected at most {}", bytes,
                       max_private_bytes);
  for (size_t k = 0; k < nodes.size(); k++) {
    const UOp u = nodes[k];
    const auto fail = [&](std::string_view name, std::string_view expected) {
      return fmt::format("{}: %{} {}: expected {}", name, k, op_name(u.op()), expected);
    };
    const bool ends = u.op() == Op::END || u.op() == Op::REDUCE;
    for (size_t i = 0; i < u.nsrc(); i++) {
      if (ends && i > 0 && filled_by.contains(u.src(i)))
        return fail("row-range", "another range: this one fills a row");
      if (row_of(u.src(i)).op() == Op::STAGE && u.op() != Op::RESHAPE &&
          (u.op() != Op::INDEX || i > 0))
        return fail("row-read", "a row to be read by INDEX");
    }
    if (u.op() == Op::STORE && memory_of(u.src(0)).op() == Op::STAGE)
      return fail("row-read", "a buffer to be stored into");
    if (u.op() == Op::REDUCE)
      for (const Node* r : u.ranges())
        if (filled_by.contains(UOp(r)))
          return fail("row-reduce", "a reduction once for a row, not for each of its values");
    if (u.op() == Op::INDEX && memory_of(u).op() == Op::STAGE && !in_bounds(u))
      return fail("row-bounds", "an index within the row");
  }
  return std::nullopt;
}

// A slot names one buffer.
std::optional<std::string> check_slots(std::span<const UOp> nodes) {
  std::unordered_map<int64_t, UOp> by_slot;
  for (UOp u : nodes) {
    if (u.op() != Op::PARAM || u.addrspace() != AddrSpace::Global) continue;
    const auto [it, is_new] = by_slot.emplace(u.param().slot, u);
    if (!is_new && !(it->second == u))
      return fmt::format("one-buffer-per-slot: slot {} names two buffers", u.param().slot);
  }
  return std::nullopt;
}

// Broadcasting looks at upper bounds; two symbolic dims may differ below them.
std::optional<std::string> check_dims(UOp root, std::span<const UOp> order) {
  const UOp wrong = mismatched_dims(root);
  if (!wrong) return std::nullopt;
  return fmt::format("equal-dims: %{} {}: expected dims that are equal, not only in their bounds",
                     std::ranges::find(order, wrong) - order.begin(), op_name(wrong.op()));
}

}  // namespace

std::optional<std::string> verify(UOp root, Stage stage, int level) {
  if (level <= 0) return std::nullopt;
  if (stage != Stage::Tensor && root.op() != Op::SINK)
    return fmt::format("root: expected SINK, found {}", op_name(root.op()));
  const std::vector<UOp> order = toposort(root);
  if (auto error = check_nodes(order, bit(stage), level)) return error;
  if (stage == Stage::Tensor) return check_dims(root, order);
  if (stage == Stage::Kernel || stage == Stage::Scheduled)
    if (auto error = check_rows(order, stage == Stage::Kernel)) return error;
  return check_slots(order);
}

std::optional<std::string> verify_linear(std::span<const UOp> list, int level) {
  if (level <= 0) return std::nullopt;
  if (auto error = check_nodes(list, linear, level)) return error;
  std::unordered_set<UOp, UOpHash> seen;
  std::vector<UOp> open;
  for (size_t i = 0; i < list.size(); i++) {
    const UOp u = list[i];
    if (is_weak(u.dtype()) && u.op() != Op::STACK && u.op() != Op::CONST)
      return fmt::format("no-weak: %{} {} has no width", i, op_name(u.op()));
    for (UOp s : u.srcs())
      if (!seen.contains(s))
        return fmt::format("order: %{} {} stands before its operand {}", i, op_name(u.op()),
                           op_name(s.op()));
    if (u.op() == Op::RANGE) open.push_back(u);
    if (u.op() == Op::END) {
      if (open.empty() || !(open.back() == u.src(1)))
        return fmt::format("nesting: %{} END does not close the innermost loop", i);
      open.pop_back();
    }
    if (u.op() != Op::RANGE && u.op() != Op::END)
      for (const Node* r : u.ranges())
        if (std::ranges::find(open, UOp(r)) == open.end())
          return fmt::format("scope: %{} {} stands outside of a loop it depends on", i,
                             op_name(u.op()));
    seen.insert(u);
  }
  if (!open.empty()) return "nesting: a loop is not closed";
  return std::nullopt;
}

std::vector<std::string_view> check_names() {
  std::vector<std::string_view> out;
  for (const Check& c : checks) out.push_back(c.name);
  for (const char* name :
       {"equal-dims", "row-range", "row-bytes", "row-read", "row-reduce", "row-bounds",
        "one-buffer-per-slot", "no-weak", "order", "nesting", "scope"})
    out.emplace_back(name);
  return out;
}

}  // namespace beamline
