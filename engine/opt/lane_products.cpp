// TC on processors: a reduction of products becomes one of products of neighbours, which a lane
// multiplies and adds up in one instruction. Only the reduce axis is split: which axis the lanes
// are, and the tile of registers around it, stay the affair of other opts.
#include <algorithm>

#include <fmt/format.h>

#include "engine/opt/product_internal.h"
#include "engine/opt/schedule.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

// sum of A * B, plus `correction` times sum of A2 * B2 where the factors had to be moved into the
// range of the instruction's types.
struct Factors {
  UOp a, b;
  int correction = 0;
  UOp a2, b2;
};

// What is outside of a padded operand stays zero.
template <class F>
UOp where_padded(UOp v, F f) {
  if (v.op() != Op::WHERE || !v.src(2).is_const() || v.src(2).number() != 0) return f(v);
  const UOp inside = where_padded(v.src(1), f);
  return inside ? where(v.src(0), inside, const_like(inside, 0)) : UOp{};
}
// v as one of t, which holds all that it may be.
UOp as_factor(UOp v, DType t) {
  if (const UOp u = narrowed(v, t)) return u;
  if (v.op() != Op::CAST) return {};
  const UOp s = v.src(0);
  const bool alike = is_float(s.dtype()) == is_float(t) && s.dtype() != DType::Bool;
  return alike && lossless(s.dtype(), v.dtype()) && lossless(s.dtype(), t) ? cast(s, t) : UOp{};
}
UOp as_byte(UOp v) {
  if (const UOp u = narrowed(v, DType::I8)) return u;
  return narrowed(v, DType::U8);
}
// -128..127 as 0..255 and back.
UOp moved(UOp v, DType t) {
  return make(Op::BITCAST, t,
              {alu(Op::XOR, {v, const_like(v, v.dtype() == DType::I8 ? -128 : 128)})});
}

// `lanes`: the axis of neighbours in what is stored, null if there is none. Of two factors of one
// sign the one that does not move along it is moved: the other's sum serves all rows.
std::optional<Factors> factors_of(const Product& p, const TensorCore& core, UOp lanes) {
  if (p.reduce.dtype() != core.out) return std::nullopt;
  if (core.second == DType::Void) {
    const auto factor = [&](UOp v) { return as_factor(v, core.in); };
    const UOp a = where_padded(p.a, factor), b = where_padded(p.b, factor);
    return a && b ? std::optional(Factors{a, b, 0, {}, {}}) : std::nullopt;
  }
  UOp a = where_padded(p.a, as_byte), b = where_padded(p.b, as_byte);
  if (!a || !b) return std::nullopt;
  if (a.dtype() != b.dtype())
    return a.dtype() == DType::U8 ? Factors{a, b, 0, {}, {}} : Factors{b, a, 0, {}, {}};
  if (lanes && a.has_range(lanes) && !b.has_range(lanes)) std::swap(a, b);
  const UOp one = iconst(1, b.dtype() == DType::I8 ? DType::U8 : DType::I8);
  if (b.dtype() == DType::I8) return Factors{moved(a, DType::U8), b, -128, one, b};
  return Factors{b, moved(a, DType::I8), 128, b, one};
}

// Output loop of neighbours in what is stored.
UOp stored_along(UOp ast) {
  for (UOp u : toposort(ast)) {
    if (u.op() != Op::STORE) continue;
    UOp gate;
    const UOp index = split_gate(u.src(0).src(1), gate);
    for (const Node* n : index.ranges())
      if (unit_stride(index, UOp(n))) return UOp(n);
  }
  return {};
}

}  // namespace

bool step_of_lanes(UOp ast, UOp r) {
  for (UOp u : toposort(ast))
    if (u.op() == Op::WMMA && u.src(3) == r) return tensor_core(u.text())->shape->by_lane();
  return false;
}

std::optional<std::string> KernelSchedule::use_lane_products(
    const Opt& opt, const Product& product, const std::vector<const TensorCore*>& cores) {
  const int64_t select = opt.arg.at(0), level = opt.arg.at(1), use = opt.arg.at(2);
  std::vector<UOp> steps;
  for (size_t i = 1; i < product.reduce.nsrc(); i++) steps.push_back(product.reduce.src(i));
  std::ranges::sort(steps, std::greater<>(), &UOp::range_id);
  if (opt.axis >= static_cast<int64_t>(steps.size()))
    return fmt::format("choice {} does not exist, there are {}", opt.axis, steps.size());
  UOp k = steps[static_cast<size_t>(opt.axis)], reduce = product.reduce;
  const UOp lanes = stored_along(ast_);
  std::string why =
      fmt::format("no tensor core here multiplies {} and {} into {}", dtype_name(product.a.dtype()),
                  dtype_name(product.b.dtype()), dtype_name(product.reduce.dtype()));
  for (size_t i = 0; i < cores.size(); i++) {
    const TensorCore& core = *cores[i];
    if ((select >= 0 && i != static_cast<size_t>(select)) || !factors_of(product, core, lanes))
      continue;
    const int64_t n = size(k), at_once = core.shape->k;
    if (n % at_once != 0 && level < 2) {
      why = fmt::format("{} needs multiples of {}, {} is none; level 2 pads", core.name(), at_once,
                        n);
      continue;
    }
    if (const auto padded = check_padding(n, at_once); n % at_once != 0 && padded) {
      why = *padded;
      continue;
    }
    if (n % at_once != 0) {
      const Split pad = padding(k, at_once);
      replace(pad, &reduce);
      k = pad.value;
    }
    int64_t id = 0;
    for (UOp u : toposort(ast_))
      if (u.op() == Op::RANGE) id = std::max(id, u.range_id() + 1);
    const UOp step = range(at_once, id, AxisType::UNROLL);
    Split split{k, step, {step}, {}, true};
    if (const int64_t blocks = size(k) / at_once; blocks > 1) {
      const UOp block = range(blocks, k.range_id(), k.axis_type());
      split.value = block * iconst(at_once) + step;
      split.parts = {block, step};
    }
    replace(split, &reduce);
    if (use == 1) {
      const Product p = *product_of(reduce);
      const Factors f = *factors_of(p, core, lanes);
      std::vector<UOp> rest;
      for (size_t j = 1; j < reduce.nsrc(); j++)
        if (reduce.src(j) != step) rest.push_back(reduce.src(j));
      const auto sum = [&](UOp a, UOp b) {
        const auto open = [&](UOp v) { return p.gate ? where(p.gate, v, const_like(v, 0)) : v; };
        const UOp zero = is_float(core.out) ? fconst(0, core.out) : iconst(0, core.out);
        const UOp each =
            make(Op::WMMA, core.out, {open(a), open(b), zero, step}, 0, intern(core.name()));
        return rest.empty() ? each : beamline::reduce(Op::ADD, each, rest, 0);
      };
      UOp all = sum(f.a, f.b);
      if (f.correction != 0) all = all + sum(f.a2, f.b2) * iconst(f.correction, core.out);
      ast_ = substitute(ast_, {{reduce, all}});
    }
    ast_ = simplify(ast_);
    applied_.push_back({OptKind::TC, opt.axis, {static_cast<int64_t>(i), level, use}});
    return std::nullopt;
  }
  return why;
}

}  // namespace beamline
