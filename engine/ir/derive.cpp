#include "engine/ir/derive.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace beamline {
namespace {

using Wide = __int128;
constexpr Wide lowest = std::numeric_limits<int64_t>::min();
constexpr Wide highest = std::numeric_limits<int64_t>::max();
// A bound at the limit of 64 bits is no bound: weakint is mathematical, and u64 goes on beyond it.
constexpr Wide unbounded = highest + 2;  // beyond both limits
struct Interval {
  Wide lo, hi;
};
Interval of(UOp u) {
  return {u.vmin() == lowest ? -unbounded : Wide(u.vmin()),
          u.vmax() == highest ? unbounded : Wide(u.vmax())};
}
bool is_open(Wide v) { return v >= unbounded || v <= -unbounded; }
Wide add(Wide a, Wide b) {
  return is_open(a) ? a : is_open(b) ? b : a + b;
}  // never opposite infinities

// Extremes of an op that is monotonous in each operand. An open left operand stays open (times 0 is
// 0).
Interval corners(Interval a, Interval b, Wide (*f)(Wide, Wide)) {
  const auto corner = [&](Wide x, Wide y) {
    if (!is_open(x) || y == 0) return f(x, y);
    return (x < 0) == (y < 0) ? unbounded : -unbounded;
  };
  const Wide v[4] = {corner(a.lo, b.lo), corner(a.lo, b.hi), corner(a.hi, b.lo),
                     corner(a.hi, b.hi)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}
Wide wide_floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// The interval of an integer op, or nothing where no sound rule narrower than the dtype is known.
std::optional<Interval> interval(Op op, std::span<const UOp> src) {
  const Interval a = src.empty() ? Interval{0, 0} : of(src[0]);
  const Interval b = src.size() > 1 ? of(src[1]) : Interval{0, 0};
  switch (op) {
    case Op::ADD: return Interval{add(a.lo, b.lo), add(a.hi, b.hi)};
    case Op::SUB: return Interval{add(a.lo, -b.hi), add(a.hi, -b.lo)};
    case Op::NEG: return Interval{-a.hi, -a.lo};
    case Op::MUL: return corners(a, b, [](Wide x, Wide y) { return x * y; });
    case Op::MAX: return Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case Op::SHL:
      if (b.lo == b.hi && b.lo >= 0 && b.lo < 62)
        return Interval{a.lo << int(b.lo), a.hi << int(b.lo)};
      return std::nullopt;
    case Op::SHR:
      if (b.lo == b.hi && b.lo >= 0 && b.lo < 63)
        return Interval{is_open(a.lo) ? a.lo : a.lo >> int(b.lo),
                        is_open(a.hi) ? a.hi : a.hi >> int(b.lo)};
      return std::nullopt;
    case Op::FLOORDIV:
      if (b.lo > 0 || b.hi < 0) return corners(a, b, wide_floor_div);
      return std::nullopt;
    case Op::CDIV:
      if (b.lo > 0 || b.hi < 0) return corners(a, b, [](Wide x, Wide y) { return x / y; });
      return std::nullopt;
    case Op::FLOORMOD: {
      if (b.lo > 0) {
        if (b.lo == b.hi && !is_open(a.lo) && !is_open(a.hi) &&
            wide_floor_div(a.lo, b.lo) == wide_floor_div(a.hi, b.lo)) {
          const Wide base = wide_floor_div(a.lo, b.lo) * b.lo;
          return Interval{a.lo - base, a.hi - base};
        }
        return Interval{0, a.lo >= 0 ? std::min(a.hi, add(b.hi, -1)) : add(b.hi, -1)};
      }
      if (b.hi < 0) return Interval{add(b.lo, 1), 0};
      return std::nullopt;
    }
    case Op::CMOD:
      if (b.lo > 0)
        return Interval{a.lo >= 0 ? 0 : std::max(a.lo, -add(b.hi, -1)),
                        a.hi <= 0 ? 0 : std::min(a.hi, add(b.hi, -1))};
      return std::nullopt;
    case Op::CMPLT: return Interval{a.hi < b.lo, a.lo < b.hi};
    case Op::CMPNE:
      return Interval{a.hi < b.lo || b.hi < a.lo, !(a.lo == a.hi && b.lo == b.hi && a.lo == b.lo)};
    case Op::CMPEQ:
      return Interval{a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, !(a.hi < b.lo || b.hi < a.lo)};
    case Op::AND:
      if (src[0].dtype() == DType::Bool)
        return Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      if (b.lo == b.hi && b.lo >= 0) return Interval{0, a.lo >= 0 ? std::min(a.hi, b.hi) : b.hi};
      return std::nullopt;
    case Op::OR:
      if (src[0].dtype() == DType::Bool)
        return Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      return std::nullopt;
    case Op::XOR:
      if (b.lo == b.hi && b.lo == -1) return Interval{-a.hi - 1, -a.lo - 1};
      if (a.lo == a.hi && b.lo == b.hi) return Interval{a.lo ^ b.lo, a.lo ^ b.lo};
      return std::nullopt;
    case Op::WHERE: {
      const Interval c = of(src[2]);
      if (a.lo == a.hi) return a.lo != 0 ? b : c;
      if (src[2].is_invalid()) return b;
      if (src[1].is_invalid()) return c;
      return Interval{std::min(b.lo, c.lo), std::max(b.hi, c.hi)};
    }
    case Op::MULACC: {
      const Interval m = corners(a, b, [](Wide x, Wide y) { return x * y; });
      return Interval{add(m.lo, of(src[2]).lo), add(m.hi, of(src[2]).hi)};
    }
    case Op::CAST: return a;
    default: return std::nullopt;
  }
}

void derive_bounds(Derived& d, Op op, DType dtype, std::span<const UOp> src, int64_t val,
                   const Extra* ext) {
  d.vmin = dtype_min(dtype), d.vmax = dtype_max(dtype);
  if (!is_int(dtype) && dtype != DType::Bool) return;
  std::optional<Interval> r;
  switch (op) {
    case Op::CONST: r = Interval{val, val}; break;
    case Op::RANGE: r = Interval{0, std::max<Wide>(0, Wide(src[0].vmax()) - 1)}; break;
    case Op::SPECIAL: r = Interval{0, std::max<Wide>(0, Wide(src[0].vmax()) - 1)}; break;
    case Op::PARAM:
      if (const auto& p = std::get<ParamArg>(*ext); p.addrspace == AddrSpace::Alu)
        r = Interval{p.vmin, p.vmax};
      break;
    case Op::STACK:
      r = Interval{0, 0};
      for (size_t i = 0; i < src.size(); i++)
        r = i == 0 ? of(src[i])
                   : Interval{std::min(r->lo, of(src[i]).lo), std::max(r->hi, of(src[i]).hi)};
      break;
    case Op::RESHAPE:
    case Op::PERMUTE:
    case Op::EXPAND:
    case Op::FLIP:
    case Op::AFTER:
    case Op::CONTIGUOUS:
    case Op::DETACH:
    case Op::STAGE: r = of(src[0]); break;
    case Op::INDEX:
      if (src[0].addrspace() == AddrSpace::None) r = of(src[0]);
      break;
    case Op::REDUCE:
      if (static_cast<Op>(val & 255) == Op::MAX) r = of(src[0]);
      break;
    default:
      if (!ops::elementwise.has(op) || op == Op::BITCAST) break;
      for (UOp s : src)
        if (!is_int(s.dtype()) && s.dtype() != DType::Bool && s.dtype() != DType::Invalid) return;
      r = interval(op, src);
  }
  if (!r) return;
  if (op == Op::CAST && dtype == DType::Bool) {
    d.vmin = r->lo > 0 || r->hi < 0, d.vmax = !(r->lo == 0 && r->hi == 0);
    return;
  }
  // A width wraps: what leaves it says nothing. Weakint does not; its bounds are cut off at 64
  // bits.
  if (dtype == DType::WeakInt) {
    if (r->lo > highest || r->hi < lowest) return;
    d.vmin = static_cast<int64_t>(std::max(r->lo, lowest)),
    d.vmax = static_cast<int64_t>(std::min(r->hi, highest));
  } else if (r->lo >= d.vmin && r->hi <= d.vmax) {
    d.vmin = static_cast<int64_t>(r->lo), d.vmax = static_cast<int64_t>(r->hi);
  }
}

bool const_dims(UOp u, Ints& out) {
  if (u.op() != Op::STACK) return false;
  for (size_t i = 0; i < u.nsrc(); i++) out.push_back(u.src(i).vmax());
  return true;
}
// Number of elements; -1 for a dim below zero or more elements than 63 bits count.
int64_t product(std::span<const int64_t> s) {
  int64_t p = 1;
  for (int64_t v : s)
    if (v < 0 || __builtin_mul_overflow(p, std::max<int64_t>(v, 1), &p)) return -1;
  return std::ranges::find(s, 0) == s.end() ? p : 0;
}

void derive_shape(Derived& d, Op op, DType dtype, std::span<const UOp> src, int64_t val,
                  const Extra* ext) {
  const auto fail = [&](std::string what) { d.error = fmt::format("{}: {}", op_name(op), what); };
  const auto need = [&](size_t n) {
    if (src.size() < n) fail(fmt::format("needs {} operands, has {}", n, src.size()));
    return src.size() >= n;
  };
  // The shape of u, if it has one.
  const auto like = [&](UOp u) {
    d.shaped = u.has_shape();
    if (!u.shape().empty()) d.shared_shape = u.node();
  };
  if (ops::control.has(op)) return;
  if (ops::elementwise.has(op)) {
    const size_t arity = ops::ternary.has(op) ? 3 : ops::binary.has(op) ? 2 : 1;
    if (src.size() != arity)
      return fail(fmt::format("needs {} operands, has {}", arity, src.size()));
    d.shaped = true;
    bool alike = true;  // scalars, and others that all have one shape
    for (UOp s : src) {
      if (!s.has_shape()) return fail(fmt::format("operand {} has no value", op_name(s.op())));
      if (s.shape().empty()) continue;
      if (!d.shared_shape) d.shared_shape = s.node();
      alike &= s.shape().data() == d.shared_shape->shape ||
               std::ranges::equal(s.shape(), UOp(d.shared_shape).shape());
    }
    if (alike) return;
    d.shared_shape = nullptr;
    for (UOp s : src) {
      Ints next;
      if (!broadcast_shapes(d.shape, s.shape(), next))
        return fail(fmt::format("shapes ({}) and ({}) do not broadcast", fmt::join(d.shape, ","),
                                fmt::join(s.shape(), ",")));
      d.shape = std::move(next);
    }
    return;
  }
  d.shaped = true;
  switch (op) {
    case Op::CONST: return;
    case Op::RANGE:
    case Op::SPECIAL: need(1); return;
    case Op::PARAM:
    case Op::BUFFER:
      if (!ext || !std::holds_alternative<ParamArg>(*ext)) return fail("has no slot");
      if (!src.empty() && !const_dims(src[0], d.shape)) fail("shape is not a STACK");
      return;
    case Op::STACK:
      if (src.empty()) {
        d.shape = {0};
        return;
      }
      for (UOp s : src)
        if (!s.has_shape() || !std::ranges::equal(s.shape(), src[0].shape()))
          return fail("elements differ in shape");
      d.shape.push_back(static_cast<int64_t>(src.size()));
      d.shape.insert(d.shape.end(), src[0].shape().begin(), src[0].shape().end());
      return;
    case Op::INDEX: {
      if (!need(1)) return;
      const auto base = src[0].shape();
      if (!src[0].has_shape() || src.size() - 1 > base.size())
        return fail("more indices than dims");
      for (size_t i = 1; i < src.size(); i++) {
        if (!src[i].has_shape()) return fail("an index has no value");
        d.shape.insert(d.shape.end(), src[i].shape().begin(), src[i].shape().end());
      }
      d.shape.insert(d.shape.end(), base.begin() + static_cast<std::ptrdiff_t>(src.size() - 1),
                     base.end());
      return;
    }
    case Op::STAGE:
      if (!need(1)) return;
      for (size_t i = 1; i < src.size(); i++) {
        if (src[i].vmax() == std::numeric_limits<int64_t>::max())
          return fail("an index is unbounded");
        // A range of no steps has no values to take bounds of.
        const bool none = src[i].op() == Op::RANGE && src[i].src(0).vmax() <= 0;
        d.shape.push_back(none ? 0 : src[i].vmax() + 1);
      }
      d.shape.insert(d.shape.end(), src[0].shape().begin(), src[0].shape().end());
      return;
    case Op::LOAD:
    case Op::AFTER:
    case Op::CONTIGUOUS:
    case Op::CONTIGUOUS_BACKWARD:
    case Op::DETACH:
    case Op::COPY:
    case Op::FLIP:
    case Op::GETADDR:
      if (!need(1)) return;
      like(src[0]);
      return;
    case Op::WMMA:
      if (!need(3)) return;
      like(src[2]);
      return;
    case Op::RESHAPE:
      if (!need(2)) return;
      if (!const_dims(src[1], d.shape)) return fail("shape is not a STACK");
      if (product(d.shape) != src[0].numel())
        fail(fmt::format("({}) has {} elements, ({}) has {}", fmt::join(src[0].shape(), ","),
                         src[0].numel(), fmt::join(d.shape, ","), product(d.shape)));
      return;
    case Op::EXPAND:
      if (!need(2)) return;
      if (!const_dims(src[1], d.shape)) return fail("shape is not a STACK");
      d.shape.insert(d.shape.end(), src[0].shape().begin(), src[0].shape().end());
      return;
    case Op::PAD:
    case Op::SHRINK: {
      if (!need(3)) return;
      Ints offsets;
      if (!const_dims(src[1], offsets) || !const_dims(src[2], d.shape))
        return fail("bounds are not STACKs");
      if (d.shape.size() != src[0].shape().size() || offsets.size() != d.shape.size())
        fail("rank differs");
      return;
    }
    case Op::PERMUTE: {
      if (!need(1)) return;
      if (!ext || !std::holds_alternative<Ints>(*ext)) return fail("has no axes");
      const Ints& axes = std::get<Ints>(*ext);
      const auto base = src[0].shape();
      if (axes.size() != base.size()) return fail("axes differ from rank");
      for (int64_t a : axes) {
        if (a < 0 || a >= static_cast<int64_t>(base.size())) return fail("axis out of range");
        d.shape.push_back(base[static_cast<size_t>(a)]);
      }
      return;
    }
    case Op::REDUCE: {
      if (!need(1)) return;
      const auto base = src[0].shape();
      const auto n = static_cast<size_t>(val >> 8);
      if (n > base.size()) return fail("reduces more dims than there are");
      if (!ops::reduce.has(static_cast<Op>(val & 255))) return fail("not a reduce op");
      d.shape.assign(base.begin() + static_cast<std::ptrdiff_t>(n), base.end());
      return;
    }
    case Op::REWRITE_ERROR:
    case Op::FUNCTION:  // its value is its body's; operands after that are the arguments
    case Op::MSELECT:   // one of the copies of a value
      if (!need(1)) return;
      if (op == Op::MSELECT && val < 0) return fail("selects no device");
      like(src[0]);
      return;
    case Op::GETTUPLE: {
      if (!need(1)) return;
      UOp tuple = src[0];
      while (tuple.op() == Op::FUNCTION || tuple.op() == Op::AFTER) tuple = tuple.src(0);
      if (tuple.op() != Op::TUPLE) return fail(fmt::format("of {}, no TUPLE", op_name(tuple.op())));
      if (val < 0 || val >= static_cast<int64_t>(tuple.nsrc()))
        return fail(fmt::format("element {} of {}", val, tuple.nsrc()));
      const UOp element = tuple.src(static_cast<size_t>(val));
      if (element.dtype() != dtype)
        return fail(fmt::format("element {} is {}", val, dtype_name(element.dtype())));
      like(element);
      return;
    }
    case Op::MSTACK:  // one value, a copy on every device
      if (!need(1)) return;
      for (UOp s : src)
        if (!s.has_shape() || !std::ranges::equal(s.shape(), src[0].shape()))
          return fail("copies differ in shape");
      like(src[0]);
      return;
    case Op::ALLREDUCE:
      if (!need(1)) return;
      if (!ops::reduce.has(static_cast<Op>(val & 255))) return fail("not a reduce op");
      if (!src[0].has_shape()) return fail("an operand without a value");
      like(src[0]);
      return;
    case Op::UNSHARD: {  // the parts of all devices, side by side along an axis
      if (!need(1)) return;
      const auto* args = ext ? std::get_if<Ints>(ext) : nullptr;
      if (!args || args->size() != 2) return fail("needs an axis and a number of devices");
      const int64_t axis = (*args)[0], devices = (*args)[1];
      if (axis < 0 || axis >= static_cast<int64_t>(src[0].shape().size()))
        return fail("axis out of range");
      if (devices < 1) return fail("needs a device");
      d.shape.assign(src[0].shape().begin(), src[0].shape().end());
      if (__builtin_mul_overflow(d.shape[static_cast<size_t>(axis)], devices,
                                 &d.shape[static_cast<size_t>(axis)]))
        return fail("too many elements");
      return;
    }
    case Op::CUSTOM:  // a statement and a scalar expression of the target's language
    case Op::CUSTOMI:
    case Op::CUSTOM_FUNCTION:
    case Op::SOURCE:
    case Op::BINARY:
    case Op::INS:
      if (!ext || !std::holds_alternative<std::string>(*ext)) return fail("has no text");
      d.shaped = op == Op::CUSTOMI;
      return;
    case Op::CALL:
    case Op::PROGRAM: d.shaped = false, need(1); return;
    default: d.shaped = false; return;  // TUPLE
  }
}

void derive_ranges(Derived& d, Op op, std::span<const UOp> src) {
  const bool ends =
      op == Op::REDUCE || op == Op::END || op == Op::STAGE || (op == Op::WMMA && src.size() > 3);
  const size_t opened = ends ? std::min<size_t>(op == Op::WMMA ? 3 : 1, src.size()) : src.size();
  if (!ends && op != Op::RANGE && !src.empty()) {  // most nodes: all of them in one operand
    const Node* widest = src[0].node();
    for (UOp s : src)
      if (s.ranges().size() > widest->nrange) widest = s.node();
    const bool all = std::ranges::all_of(src, [&](UOp s) {
      return s.ranges().empty() || s.ranges().data() == widest->ranges ||
             std::ranges::includes(UOp(widest).ranges(), s.ranges(), {}, &Node::id, &Node::id);
    });
    if (all) {
      d.shared_ranges = widest;
      return;
    }
  }
  auto& out = d.ranges;
  const auto less = [](const Node* a, const Node* b) { return a->id < b->id; };
  std::vector<const Node*> merged;
  for (size_t i = 0; i < opened; i++) {
    const auto r = src[i].ranges();
    merged.clear();
    std::set_union(out.begin(), out.end(), r.begin(), r.end(), std::back_inserter(merged), less);
    out.swap(merged);
  }
  if (!ends) return;
  for (size_t i = opened; i < src.size(); i++)
    for (const Node* r : src[i].ranges())
      // The bits of a matrix product's registers stay open: they number its elements. So do the
      // loops that a range's end depends on.
      if ((op != Op::WMMA || UOp(r).axis_type() == AxisType::UNROLL) &&
          (src[i].op() != Op::RANGE || r == src[i].node()))
        std::erase(out, r);
}

}  // namespace

Derived derive(Op op, DType dtype, std::span<const UOp> src, int64_t val, const Extra* ext) {
  Derived d;
  derive_shape(d, op, dtype, src, val, ext);
  if (d.error.empty() && product(d.shape) < 0)
    d.error = fmt::format("{}: no shape: ({})", op_name(op), fmt::join(d.shape, ","));
  if (!d.error.empty()) return d;
  derive_bounds(d, op, dtype, src, val, ext);
  derive_ranges(d, op, src);
  if (op == Op::PARAM || op == Op::BUFFER) d.addrspace = std::get<ParamArg>(*ext).addrspace;
  if ((op == Op::INDEX || op == Op::AFTER || op == Op::SHRINK || op == Op::RESHAPE ||
       op == Op::PERMUTE || op == Op::EXPAND) &&
      !src.empty())
    d.addrspace = src[0].addrspace();
  return d;
}

bool broadcast_shapes(std::span<const int64_t> a, std::span<const int64_t> b, Ints& out) {
  const size_t n = std::max(a.size(), b.size());
  out.assign(n, 1);
  for (size_t i = 0; i < n; i++) {
    const int64_t x = i < n - a.size() ? 1 : a[i - (n - a.size())];
    const int64_t y = i < n - b.size() ? 1 : b[i - (n - b.size())];
    if (x != y && x != 1 && y != 1) return false;
    out[i] = x == 1 ? y : x;
  }
  return true;
}

int64_t floor_div(int64_t a, int64_t b) { return static_cast<int64_t>(wide_floor_div(a, b)); }
int64_t floor_mod(int64_t a, int64_t b) {
  return static_cast<int64_t>(a - wide_floor_div(a, b) * b);
}

std::optional<int64_t> fold_int(Op op, int64_t a, int64_t b, int64_t c) {
  const Wide x = a, y = b;
  Wide r = 0;
  switch (op) {
    case Op::ADD: r = x + y; break;
    case Op::SUB: r = x - y; break;
    case Op::MUL: r = x * y; break;
    case Op::NEG: r = -x; break;
    case Op::TRUNC: r = x; break;
    case Op::MAX: r = std::max(x, y); break;
    case Op::AND: r = a & b; break;
    case Op::OR: r = a | b; break;
    case Op::XOR: r = a ^ b; break;
    case Op::SHL:
      if (b < 0 || b > 62) return std::nullopt;
      r = x << b;
      break;
    case Op::SHR:
      if (b < 0 || b > 63) return std::nullopt;
      r = x >> b;
      break;
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::CDIV:
    case Op::CMOD:
      if (b == 0) return std::nullopt;
      r = op == Op::FLOORDIV   ? wide_floor_div(x, y)
          : op == Op::FLOORMOD ? x - wide_floor_div(x, y) * y
          : op == Op::CDIV     ? x / y
                               : x % y;
      break;
    case Op::CMPLT: r = a < b; break;
    case Op::CMPNE: r = a != b; break;
    case Op::CMPEQ: r = a == b; break;
    case Op::WHERE: r = a != 0 ? b : c; break;
    case Op::MULACC: r = x * y + c; break;
    default: return std::nullopt;
  }
  if (r < lowest || r > highest) return std::nullopt;
  return static_cast<int64_t>(r);
}

}  // namespace beamline
