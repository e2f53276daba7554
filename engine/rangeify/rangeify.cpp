#include "engine/rangeify/rangeify.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"
#include "engine/rangeify/collapse.h"
#include "engine/rangeify/memory_plan.h"
#include "engine/rangeify/movement.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/ranges.h"
#include "engine/rangeify/rows.h"
#include "engine/rangeify/split_reduction.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

constexpr size_t max_recomputed_buffers = 3;  // a STAGE that reads more is kept

bool is_leaf(UOp u) { return u.op() == Op::PARAM || u.op() == Op::CONST; }
bool is_value(UOp u) { return u.has_shape() && u.op() != Op::STACK; }

// What one consumer asks of an operand.
struct Request {
  IndexTuple at;
  std::vector<UOp> ended;
};

class Rangeifier {
 public:
  explicit Rangeifier(UOp sink) : order_(toposort(sink)), sink_(sink), states_(order_.size()) {
    for (size_t i = 0; i < order_.size(); i++) place_.emplace(order_[i], i);
  }

  /// The graph of index expressions: SINK over one STAGE an output.
  UOp run() {
    for (size_t i = 0; i < sink_.nsrc(); i++)
      state(sink_.src(i)).realized = state(sink_.src(i)).forced = true;
    for (UOp u : order_)
      if (u.op() == Op::CONTIGUOUS) state(u).realized = state(u).forced = true;
    for (size_t i = order_.size(); i-- > 0;)
      if (is_value(order_[i]) && !is_leaf(order_[i])) assign(order_[i]);
    for (UOp u : order_)
      if (is_value(u) && !is_leaf(u)) build(u);
    std::vector<UOp> outs;
    for (size_t i = 0; i < sink_.nsrc(); i++) {
      const UOp u = sink_.src(i);
      if (is_leaf(u))
        outs.push_back(copy_of(u));
      else
        outs.push_back(state(u).stage);
    }
    std::unordered_set<UOp, UOpHash> kept;
    for (const State& s : states_)
      if (s.forced && s.stage) kept.insert(s.stage);
    return fuse_rows(make(Op::SINK, DType::Void, outs), kept);
  }

 private:
  // What is known of a node; what is not needed any more is given back.
  struct State {
    bool realized = false, forced = false;
    bool repeated = false;          // a reader needs each of its elements many times
    std::vector<Request> requests;  // of its consumers
    IndexTuple out;                 // where it is computed
    std::vector<IndexTuple> in;     // where it reads its operands
    std::vector<UOp> reduced;       // ranges of a REDUCE
    UOp value, stage;               // one of them, once built
    std::optional<bool> removable;
  };
  State& state(UOp u) { return states_[place_.at(u)]; }
  void ask(UOp operand, Request r) {
    if (is_value(operand) && !is_leaf(operand)) state(operand).requests.push_back(std::move(r));
  }

  std::vector<UOp> fresh(std::span<const int64_t> shape, AxisType type) {
    std::vector<UOp> r;
    for (int64_t n : shape) r.push_back(n == 1 ? iconst(0) : range(n, next_id_++, type));
    return r;
  }
  UOp copy_of(UOp leaf) {
    const IndexTuple at{fresh(leaf.shape(), AxisType::WEAK), {}};
    return staged(read_leaf(leaf, at), at.index);
  }
  static UOp staged(UOp value, std::span<const UOp> index) {
    std::vector<UOp> src{value};
    src.insert(src.end(), index.begin(), index.end());
    return make(Op::STAGE, value.dtype(), src);
  }
  UOp read_leaf(UOp leaf, const IndexTuple& at) {
    if (leaf.op() == Op::CONST || leaf.addrspace() == AddrSpace::Alu) return leaf;
    // In kernels memory has one dimension.
    UOp flat;
    if (const UOp* known = flat_.find(leaf.node())) {
      flat = *known;
    } else {
      const int64_t n[] = {leaf.numel()};
      flat = param(leaf.param(), leaf.dtype(), n);
      flat_.emplace(leaf, flat);
    }
    return make(Op::INDEX, leaf.dtype(), {flat, flat_index(at, leaf.shape())});
  }

  // Decides where x is read from what its consumers asked, then asks its operands.
  void assign(UOp x) {
    State& own = state(x);
    const std::vector<Request> requests = std::move(own.requests);
    own.requests = {};
    IndexTuple& out = own.out;
    std::vector<UOp> ended;
    bool realize = own.realized;
    if (!realize && !requests.empty()) {
      out = requests[0].at;
      UOp any_valid = out.valid;
      for (const Request& r : requests) {
        ended.insert(ended.end(), r.ended.begin(), r.ended.end());
        if (r.at.index != out.index) realize = true;
        any_valid = any_valid && r.at.valid
                        ? (any_valid == r.at.valid ? any_valid : any_valid | r.at.valid)
                        : UOp{};
      }
      out.valid = any_valid;
      if (!ended.empty() && (ops::elementwise.has(x.op()) || x.op() == Op::REDUCE))
        realize = own.repeated = true;
    }
    if (realize || requests.empty()) {
      own.realized = true;
      out = IndexTuple{fresh(x.shape(), AxisType::WEAK), {}};
      ended.clear();
    }
    if (ops::movement.has(x.op())) {
      Request r{{}, ended};
      r.at = through_movement(x, out, r.ended);
      own.in = {r.at};
      ask(x.src(0), std::move(r));
      return;
    }
    if (x.op() == Op::REDUCE) {
      Request r{out, ended};
      std::vector<UOp> reduced =
          fresh(x.src(0).shape().subspan(0, x.reduce_dims()), AxisType::REDUCE);
      own.reduced = reduced;
      r.at.index.insert(r.at.index.begin(), reduced.begin(), reduced.end());
      own.in = {r.at};
      ask(x.src(0), std::move(r));
      return;
    }
    own.in.reserve(x.nsrc());
    for (size_t i = 0; i < x.nsrc(); i++) {
      Request r{{}, ended};
      r.at = through_broadcast(x.src(i), out, r.ended);
      own.in.push_back(r.at);
      ask(x.src(i), std::move(r));
    }
  }

  // Operand i of x, as x reads it.
  UOp read(UOp x, size_t i) {
    const UOp s = x.src(i);
    const IndexTuple& at = state(x).in[i];
    if (is_leaf(s)) return read_leaf(s, at);
    if (!state(s).realized) return state(s).value;
    const UOp stage = state(s).stage;
    if (removable(s) && !(dear(s) && in_reduction(at))) {
      Substitution map;
      for (size_t d = 0; d < at.index.size(); d++)
        if (stage.src(d + 1).op() == Op::RANGE) map.emplace(stage.src(d + 1), at.index[d]);
      return recomputed(stage.src(0), map, at.valid);
    }
    return make(Op::INDEX, stage.dtype(),
                {make(Op::RESHAPE, stage.dtype(), {stage, dims(std::vector<int64_t>{s.numel()})}),
                 flat_index(at, s.shape())});
  }

  // A staged value at other ranges. Where the reader is gated, so is what the value reads: its
  // index may lie anywhere then.
  static UOp recomputed(UOp value, const Substitution& map, UOp valid) {
    if (!valid || valid.is_const(1)) return substitute(value, map);
    Substitution done = map;
    for (UOp u : toposort(value)) {
      if (done.contains(u)) continue;
      std::vector<UOp> src;
      bool changed = false;
      for (UOp s : u.srcs()) {
        src.push_back(done.at(s));
        changed |= !(src.back() == s);
      }
      if (changed && u.op() == Op::INDEX &&
          (src[1].vmin() < 0 || src[1].vmax() >= u.src(0).numel()))
        src[1] = where(valid, src[1], invalid());
      done.emplace(u, changed ? rebuild(u, src) : u);
    }
    return done.at(value);
  }

  // Recomputing is cheaper than storing: few buffers are read, and no reduction is repeated but one
  // that needs no loop.
  bool removable(UOp s) {
    State& own = state(s);
    if (own.forced) return false;
    if (own.removable) return *own.removable;
    std::unordered_set<UOp, UOpHash> buffers, reducing;
    bool reduce_reads = false;
    for (UOp u : closed_walk(own.stage.src(0))) {
      const bool buffer =
          u.op() == Op::STAGE || (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global);
      if (buffer) buffers.insert(u);
      bool under = buffer;
      for (size_t i = 0; !under && i < u.nsrc(); i++)
        under = u.op() != Op::STAGE && reducing.contains(u.src(i));
      if (under) reducing.insert(u);
      if (u.op() == Op::REDUCE) reduce_reads = reduce_reads || under || needs_loop(u);
    }
    own.removable = !reduce_reads && buffers.size() <= max_recomputed_buffers;
    return *own.removable;
  }
  static bool needs_loop(UOp reduction) {
    for (UOp u : toposort(collapse_reductions(simplify(reduction))))
      if (u.op() == Op::REDUCE) return true;
    return false;
  }
  // What many steps of a reduction would each compute again, at a price.
  bool dear(UOp s) {
    return state(s).repeated && std::ranges::any_of(closed_walk(state(s).stage.src(0)), is_dear);
  }
  static bool in_reduction(const IndexTuple& at) {
    return std::ranges::any_of(at.index, [](UOp i) {
      return std::ranges::any_of(
          i.ranges(), [](const Node* r) { return UOp(r).axis_type() == AxisType::REDUCE; });
    });
  }

  void build(UOp x) {
    const Provenance::Of from(x);
    UOp v;
    State& own = state(x);
    const IndexTuple& at = own.in[0];
    if (x.op() == Op::PAD) {
      // What padding adds is zero; the read itself is gated by the same validity.
      const UOp inner = read(x, 0);
      v = at.valid ? where(at.valid, inner, const_like(inner, 0)) : inner;
    } else if (ops::movement.has(x.op()) || x.op() == Op::CONTIGUOUS || x.op() == Op::DETACH) {
      v = read(x, 0);
    } else if (x.op() == Op::REDUCE) {
      std::vector<UOp> ranges;
      for (UOp r : own.reduced)
        if (r.op() == Op::RANGE) ranges.push_back(r);
      const bool nothing = x.src(0).numel() == 0 && x.numel() != 0;
      v = nothing ? reduce_identity(x.reduce_op(), x.dtype()) : read(x, 0);
      if (!nothing && !ranges.empty()) v = reduce(x.reduce_op(), v, ranges, 0);
    } else {
      std::vector<UOp> src;
      for (size_t i = 0; i < x.nsrc(); i++) src.push_back(read(x, i));
      v = make(x.op(), x.dtype(), src, x.node()->val, x.node()->ext);
    }
    if (own.realized)
      own.stage = staged(v, own.out.index);
    else
      own.value = v;
    own.in = {}, own.out = {}, own.reduced = {};
  }

  std::vector<UOp> order_;
  UOp sink_;
  int64_t next_id_ = 0;
  NodeMap<size_t> place_;  // of a node in order_ and states_
  std::vector<State> states_;
  NodeMap<UOp> flat_;  // buffers with one dimension
};

std::string name_of(UOp kernel) {
  bool reduces = false;
  std::string sizes;
  std::vector<UOp> ranges;
  for (UOp u : toposort(kernel)) {
    reduces |= u.op() == Op::REDUCE;
    if (u.op() == Op::RANGE) ranges.push_back(u);
  }
  std::ranges::stable_sort(ranges, {}, [](UOp r) { return r.axis_type() == AxisType::REDUCE; });
  for (UOp r : ranges) sizes += fmt::format("_{}", r.vmax() + 1);
  return fmt::format("{}{}", reduces ? 'r' : 'e', sizes.empty() ? "_1" : sizes);
}

void add_kernel(KernelGraph& g, const Prepared& p) {
  KernelAst k;
  k.name = name_of(p.ast);
  k.key = kernel_key(p.ast);
  k.ast = make(Op::SINK, DType::Void, p.ast.srcs(), 0, intern(KernelInfo{k.name}));
  for (int64_t s : p.slots) k.buffers.push_back(static_cast<size_t>(s));
  g.kernels.push_back(std::move(k));
}

void place_temporaries(KernelGraph& g) {
  constexpr size_t never = SIZE_MAX;
  std::vector<Lifetime> lives(g.buffers.size(), {0, never, 0});
  for (size_t k = 0; k < g.kernels.size(); k++)
    for (size_t b : g.kernels[k].buffers)
      lives[b].first = std::min(lives[b].first, k), lives[b].last = k;
  std::vector<size_t> temporaries;
  std::vector<Lifetime> wanted;
  for (size_t b = 0; b < g.buffers.size(); b++) {
    const BufferInfo& info = g.buffers[b];
    if (info.kind != BufferInfo::Kind::Temp || info.elements == 0 || lives[b].first == never)
      continue;
    lives[b].bytes = info.elements * dtype_bytes(info.dtype);
    temporaries.push_back(b), wanted.push_back(lives[b]);
  }
  const MemoryPlan plan = plan_memory(wanted);
  for (size_t i = 0; i < temporaries.size(); i++)
    g.buffers[temporaries[i]].offset = plan.offsets[i];
  g.arena_bytes = plan.bytes;
}

}  // namespace

KernelGraph make_kernels(UOp sink, Math math) {
  KernelGraph g;
  std::unordered_map<UOp, size_t, UOpHash> buffer_of;
  int64_t inputs = 0;
  const std::vector<UOp> tensor_order = toposort(sink);
  for (UOp u : tensor_order)
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global)
      inputs = std::max(inputs, u.param().slot + 1);
  g.buffers.resize(
      static_cast<size_t>(inputs));  // an input that nothing reads stays void and empty
  for (size_t i = 0; i < g.buffers.size(); i++) g.buffers[i].input_slot = static_cast<int64_t>(i);
  for (UOp u : tensor_order) {
    if (u.op() != Op::PARAM || u.addrspace() != AddrSpace::Global) continue;
    const auto slot = static_cast<size_t>(u.param().slot);
    g.buffers[slot] = {BufferInfo::Kind::Input, u.dtype(), u.numel(), u.param().slot,
                       Ints(u.shape().begin(), u.shape().end())};
  }

  const UOp staged = Rangeifier(sink).run();
  std::unordered_map<UOp, UOp, UOpHash>
      flat_param;                               // tensor PARAM or STAGE -> one-dimensional PARAM
  std::unordered_map<UOp, UOp, UOpHash> local;  // node -> the same node inside a kernel
  const auto param_for = [&](UOp buffer, size_t id) {
    ParamArg a;
    a.slot = static_cast<int64_t>(id);
    if (buffer.op() == Op::PARAM) a.constant = buffer.param().constant;
    const int64_t n[] = {std::max<int64_t>(1, buffer.numel())};
    return param(a, buffer.dtype(), n);
  };
  for (UOp u : toposort(staged)) {
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global) {
      flat_param.emplace(u, param_for(u, static_cast<size_t>(u.param().slot)));
      continue;
    }
    if (u.op() == Op::RESHAPE) {  // a stored value, seen with one dimension
      flat_param.emplace(u, flat_param.at(u.src(0)));
      continue;
    }
    if (u.op() == Op::STAGE) {
      bool output = false;
      for (size_t i = 0; i < staged.nsrc(); i++) output |= staged.src(i) == u;
      const size_t id = g.buffers.size();
      Ints shape;
      std::vector<UOp> index, ranges = ranges_of(u);
      for (size_t i = 1; i < u.nsrc(); i++) {
        shape.push_back(u.shape()[i - 1]);
        index.push_back(u.src(i));
      }
      g.buffers.push_back({output ? BufferInfo::Kind::Output : BufferInfo::Kind::Temp, u.dtype(),
                           u.numel(), -1, shape});
      buffer_of.emplace(u, id);
      flat_param.emplace(u, param_for(u, id));
      if (u.numel() == 0) continue;  // nothing to compute
      const Provenance::Of from(u.src(0));
      const UOp at = make(Op::INDEX, u.dtype(), {flat_param.at(u), flat_index({index, {}}, shape)});
      UOp body = make(Op::STORE, DType::Void, {at, local.at(u.src(0))});
      if (!ranges.empty()) {
        ranges.insert(ranges.begin(), body);
        body = make(Op::END, DType::Void, ranges);
      }
      UOp whole = make(Op::SINK, DType::Void, {body});
      if (math == Math::Relaxed) whole = graph_rewrite(whole, relaxed_matcher());
      Prepared p = prepare(whole);
      const auto next = static_cast<int64_t>(p.slots.size());
      if (const auto split = split_reduction(p.ast, next)) {
        p.slots.push_back(static_cast<int64_t>(g.buffers.size()));
        g.buffers.push_back(
            {BufferInfo::Kind::Temp, split->dtype, split->elements, -1, {split->elements}});
        for (const UOp kernel : {split->first, split->second}) {
          Prepared part = prepare(kernel);
          for (int64_t& s : part.slots) s = p.slots[static_cast<size_t>(s)];
          add_kernel(g, part);
        }
      } else {
        add_kernel(g, p);
      }
      continue;
    }
    if (u.op() == Op::SINK) continue;
    const Provenance::Of from(u);
    std::vector<UOp> src;
    bool changed = false;
    for (size_t i = 0; i < u.nsrc(); i++) {
      const auto f = flat_param.find(u.src(i));
      src.push_back(f != flat_param.end()      ? f->second
                    : local.contains(u.src(i)) ? local.at(u.src(i))
                                               : u.src(i));
      changed |= !(src.back() == u.src(i));
    }
    local.emplace(u, changed ? make(u.op(), u.dtype(), src, u.node()->val, u.node()->ext) : u);
  }
  for (size_t i = 0; i < staged.nsrc(); i++) g.outputs.push_back(buffer_of.at(staged.src(i)));
  place_temporaries(g);
  return g;
}

}  // namespace beamline
