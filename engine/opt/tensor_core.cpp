// TC: a reduction of products becomes one of matrix products that the threads of a warp compute
// together (engine.md 5.2, 6). For processors, lane_products.cpp.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/opt/product_internal.h"
#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {

std::optional<Product> product_of(UOp reduce) {
  if (reduce.op() != Op::REDUCE || reduce.reduce_op() != Op::ADD || reduce.nsrc() < 2)
    return std::nullopt;
  Product p{reduce, {}, {}, {}};
  UOp x = reduce.src(0);
  while (x.op() == Op::WHERE && x.src(2).is_const() && x.src(2).number() == 0) {
    p.gate = p.gate ? p.gate & x.src(0) : x.src(0);
    x = x.src(1);
  }
  const std::vector<UOp> operands = reduce.srcs();
  if (p.gate)
    for (const Node* r : p.gate.ranges())
      if (std::ranges::find(operands, UOp(r)) == operands.end()) return std::nullopt;
  // An integer product would have wrapped before it was widened.
  if (x.op() == Op::CAST && is_float(x.src(0).dtype()) && lossless(x.src(0).dtype(), x.dtype()))
    x = x.src(0);
  if (x.op() != Op::MUL) return std::nullopt;
  p.a = x.src(0), p.b = x.src(1);
  return p;
}

UOp narrowed(UOp u, DType t) {
  if (u.dtype() == t) return u;
  return u.op() == Op::CAST && u.src(0).dtype() == t && lossless(t, u.dtype()) ? u.src(0) : UOp{};
}

namespace {

// Loops of the grid along which one value moves and the other does not, innermost first.
std::vector<UOp> only_in(UOp u, UOp other) {
  std::vector<UOp> out;
  for (const Node* n : u.ranges())
    if (const UOp r(n); r.axis_type() == AxisType::GLOBAL && !other.has_range(r)) out.push_back(r);
  std::ranges::sort(out, std::greater<>(), &UOp::range_id);
  return out;
}

// Axes n, m, k of every choice, in the order in which a TC opt numbers them.
using Axes = std::array<UOp, 3>;
std::vector<Axes> choices(const Product& p) {
  std::vector<UOp> steps;
  for (size_t i = 1; i < p.reduce.nsrc(); i++) steps.push_back(p.reduce.src(i));
  std::ranges::sort(steps, std::greater<>(), &UOp::range_id);
  std::vector<Axes> out;
  for (UOp n : only_in(p.b, p.a))
    for (UOp m : only_in(p.a, p.b))
      for (UOp k : steps) out.push_back({n, m, k});
  return out;
}

// A core with what it would multiply.
struct Match {
  size_t index = 0;
  const TensorCore* core = nullptr;
};

std::string allowed_matches(const Product& p, const std::vector<const TensorCore*>& cores,
                            int64_t select, bool allow_tf32, std::vector<Match>& out) {
  std::string why =
      fmt::format("no tensor core here multiplies {} and {} into {}", dtype_name(p.a.dtype()),
                  dtype_name(p.b.dtype()), dtype_name(p.reduce.dtype()));
  for (size_t i = 0; i < cores.size(); i++) {
    const TensorCore& c = *cores[i];
    if (select >= 0 && i != static_cast<size_t>(select)) continue;
    if (c.out != p.reduce.dtype() || !narrowed(p.a, c.in) || !narrowed(p.b, c.in)) {
      if (select >= 0)
        why = fmt::format("tensor core {} ({}) does not multiply {} and {} into {}", i, c.name(),
                          dtype_name(p.a.dtype()), dtype_name(p.b.dtype()),
                          dtype_name(p.reduce.dtype()));
      continue;
    }
    if (c.tf32 && !allow_tf32)
      why = fmt::format("{} rounds its factors; --allow-tf32 permits it", c.name());
    else
      out.push_back({i, &c});
  }
  // What is widened before it is multiplied is multiplied as it was.
  std::ranges::stable_sort(out, {}, [](const Match& m) { return dtype_bytes(m.core->in); });
  return why;
}

}  // namespace

std::optional<std::string> KernelSchedule::use_tensor_core(const Opt& opt) {
  const std::vector<const TensorCore*> cores = tensor_cores(target_);
  const int64_t count = static_cast<int64_t>(cores.size());
  const int64_t select = opt.arg.at(0), level = opt.arg.at(1), use = opt.arg.at(2);
  if (cores.empty()) return "this target has no tensor cores";
  if (target_.tensor_cores == TensorCoreUse::Off) return "tensor cores are switched off";
  if (!applied_.empty()) return "TC comes before every other opt";
  if (select < -1 || select >= count)
    return fmt::format("tensor core {} does not exist, there are {}; -1 is the first that fits",
                       select, count);
  if (level < 0 || level > 2) return fmt::format("level {} is none of 0, 1, 2", level);
  if (use != 1 && use != 2) return fmt::format("use {} is neither 1 (real) nor 2 (shape)", use);

  std::optional<Product> product;
  bool reduces = false;
  for (UOp u : toposort(ast_)) {
    if (u.op() != Op::REDUCE) continue;
    reduces = true;
    product = product_of(u);
    break;
  }
  if (!reduces) return "the kernel reduces nothing";
  if (!product) return "the first reduction is not a sum of products";
  if (level < 1 && product->reduce.nsrc() > 2)
    return fmt::format("the sum is over {} axes; level 1 takes one of them",
                       product->reduce.nsrc() - 1);
  if (cores[0]->shape->by_lane()) return use_lane_products(opt, *product, cores);
  std::vector<Match> matches;
  std::string why = allowed_matches(*product, cores, select, target_.allow_tf32, matches);
  if (matches.empty()) return why;
  const std::vector<Axes> all = choices(*product);
  if (all.empty()) return "each factor must move along a loop of the grid that the other does not";
  if (opt.axis >= static_cast<int64_t>(all.size()))
    return fmt::format("choice {} does not exist, there are {}", opt.axis, all.size());
  for (const Match& match : matches) {
    const MatrixShape& s = *match.core->shape;
    const int64_t dims[] = {s.n, s.m, s.k};
    const Axes& axes = all[static_cast<size_t>(opt.axis)];
    bool fits = true;
    for (size_t d = 0; d < 3 && fits; d++) {
      const int64_t n = size(axes[d]);
      if (n % dims[d] == 0) continue;
      fits = level == 2;
      if (!fits)
        why = fmt::format("{} needs multiples of {}x{}x{}, {} is none; level 2 pads",
                          match.core->name(), s.n, s.m, s.k, n);
      else if (auto padded = check_padding(n, dims[d]))
        fits = false, why = *padded;
    }
    if (!fits) continue;
    matrix_axes_ = {axes[0].range_id(), axes[1].range_id()};
    split_for(*match.core, product->reduce, axes, use == 1);
    applied_.push_back({OptKind::TC, opt.axis, {static_cast<int64_t>(match.index), level, use}});
    return std::nullopt;
  }
  return why;
}

void KernelSchedule::split_for(const TensorCore& core, UOp reduce, std::array<UOp, 3> axes,
                               bool multiply) {
  const MatrixShape& s = *core.shape;
  const int64_t dims[] = {s.n, s.m, s.k};
  for (size_t d = 0; d < 3; d++)
    if (size(axes[d]) % dims[d] != 0) {
      const Split pad = padding(axes[d], dims[d]);
      replace(pad, &reduce);
      axes[d] = pad.value;
    }
  int64_t id = 0;
  for (UOp u : toposort(ast_))
    if (u.op() == Op::RANGE) id = std::max(id, u.range_id() + 1);

  // A range of two for every bit; those of lanes are bits of the warp in the end.
  std::array<std::vector<UOp>, 3> bits;  // by kind
  const auto some = [&](BitKind kind, int n, AxisType type) {
    for (int i = 0; i < n; i++) bits[static_cast<size_t>(kind)].push_back(range(2, id++, type));
  };
  const auto bit = [&](MatrixBit b) {
    return bits[static_cast<size_t>(b.kind)][static_cast<size_t>(b.i)];
  };
  const UOp warp = range(s.threads, id++, AxisType::WARP);
  some(BitKind::Lane, s.lanes(), AxisType::PLACEHOLDER);
  some(BitKind::Register, static_cast<int>(s.element_bits(2).size()), AxisType::UPCAST);
  some(BitKind::Step, s.steps(), AxisType::UNROLL);
  for (size_t d = 0; d < 3; d++) {
    const int64_t blocks = size(axes[d]) / dims[d];
    UOp value = iconst(0);
    Split split{axes[d], {}, {}, {}, true};
    if (blocks > 1) {
      split.parts.push_back(range(blocks, axes[d].range_id(), axes[d].axis_type()));
      value = split.parts[0] * iconst(dims[d]);
    }
    if (d == 0) split.parts.push_back(warp);
    int64_t weight = 1;
    const auto add = [&](UOp b) {
      value = value + b * iconst(weight);
      weight *= 2;
      if (b.axis_type() != AxisType::PLACEHOLDER) split.parts.push_back(b);
    };
    if (d == 2)
      for (UOp step : bits[static_cast<size_t>(BitKind::Step)]) add(step);
    else
      for (MatrixBit b : s.bits_of(static_cast<int>(d))) add(bit(b));
    split.value = value;
    replace(split, &reduce);
  }
  Substitution lanes;
  for (size_t i = 0; i < bits[0].size(); i++)
    lanes.emplace(bits[0][i], warp / iconst(int64_t{1} << i) % iconst(2));

  UOp root = ast_;
  if (multiply) {
    const Product p = *product_of(reduce);
    const auto operand = [&](int which, UOp value) {
      UOp x = narrowed(value, core.in);
      if (p.gate) x = where(p.gate, x, const_like(x, 0));
      Substitution moved;
      for (BitKind kind : {BitKind::Lane, BitKind::Register, BitKind::Step})
        for (size_t i = 0; i < bits[static_cast<size_t>(kind)].size(); i++) {
          const MatrixBit place{kind, static_cast<int>(i)};
          moved.emplace(bit(s.held_at(which, place)), bit(place));
        }
      return substitute(x, moved);
    };
    std::vector<UOp> src{operand(0, p.a), operand(1, p.b),
                         is_float(core.out) ? fconst(0, core.out) : iconst(0, core.out)};
    for (BitKind kind : {BitKind::Register, BitKind::Step})
      for (UOp b : bits[static_cast<size_t>(kind)]) src.push_back(b);
    UOp sum = make(Op::WMMA, core.out, src, 0, intern(core.name()));
    std::vector<UOp> rest;
    for (size_t i = 1; i < reduce.nsrc(); i++)
      if (reduce.src(i).axis_type() != AxisType::UNROLL) rest.push_back(reduce.src(i));
    if (!rest.empty()) sum = beamline::reduce(Op::ADD, sum, rest, 0);
    root = substitute(root, {{reduce, sum}});
  }
  ast_ = simplify(substitute(root, lanes));
}

}  // namespace beamline
