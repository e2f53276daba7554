#include "engine/ir/uop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/ir/arena.h"
#include "engine/ir/derive.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"

namespace beamline {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(AxisType::Count)> axis_names = {
    "DEVICE", "GLOBAL", "WARP",   "LOCAL",  "WEAK",        "GROUP_REDUCE",
    "REDUCE", "UPCAST", "UNROLL", "THREAD", "PLACEHOLDER", "LOOP"};
constexpr std::array<std::string_view, static_cast<size_t>(AddrSpace::Count)> space_names = {
    "none", "global", "local", "reg", "alu"};

template <class E, size_t N>
std::optional<E> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; i++)
    if (names[i] == name) return static_cast<E>(i);
  return std::nullopt;
}

// The place of each op in the order of names.
constexpr auto op_ranks = [] {
  std::array<uint8_t, op_count> rank{};
  for (size_t i = 0; i < op_count; i++)
    for (size_t j = 0; j < op_count; j++) rank[i] += op_names[j] < op_names[i];
  return rank;
}();
constexpr uint8_t op_rank(Op op) { return op_ranks[static_cast<size_t>(op)]; }

// Positive zero and negative zero differ, all NaNs are one value.
int64_t float_bits(double v) {
  return std::bit_cast<int64_t>(std::isnan(v) ? std::numeric_limits<double>::quiet_NaN() : v);
}

}  // namespace

std::string_view axis_type_name(AxisType t) { return axis_names[static_cast<size_t>(t)]; }
std::optional<AxisType> axis_type_from_name(std::string_view n) {
  return from_name<AxisType>(axis_names, n);
}
std::string_view addrspace_name(AddrSpace s) { return space_names[static_cast<size_t>(s)]; }
std::optional<AddrSpace> addrspace_from_name(std::string_view n) {
  return from_name<AddrSpace>(space_names, n);
}

std::vector<UOp> UOp::srcs() const {
  std::vector<UOp> s(nsrc());
  for (size_t i = 0; i < s.size(); i++) s[i] = src(i);
  return s;
}
int64_t UOp::numel() const {
  int64_t n = 1;
  for (int64_t d : shape()) n *= d;
  return n;
}
bool UOp::has_range(UOp r) const { return std::ranges::find(ranges(), r.node()) != ranges().end(); }
bool UOp::is_const(int64_t v) const {
  if (!is_const() || dtype() == DType::Invalid) return false;
  return is_float(dtype()) ? fval() == static_cast<double>(v) && !(v == 0 && std::signbit(fval()))
                           : ival() == v;
}

UOp make(Op op, DType dtype, std::span<const UOp> src, int64_t val, const Extra* ext) {
  return Arena::current().make(op, dtype, src, val, ext);
}
UOp make(Op op, DType dtype, std::initializer_list<UOp> src, int64_t val, const Extra* ext) {
  return Arena::current().make(op, dtype, {src.begin(), src.size()}, val, ext);
}
const Extra* intern(Extra e) { return Arena::current().intern(std::move(e)); }

DType derive_dtype(Op op, std::span<const UOp> src, DType fallback) {
  if (ops::comparison.has(op)) return DType::Bool;
  if (ops::control.has(op)) return DType::Void;
  DType t = DType::Void;
  switch (op) {
    case Op::SIN:
    case Op::LOG2:
    case Op::EXP2:
    case Op::SQRT:
    case Op::RECIPROCAL: return least_float(src[0].dtype());
    case Op::SHL:
    case Op::SHR:
    case Op::INDEX:
    case Op::LOAD:
    case Op::REDUCE:
    case Op::AFTER:
    case Op::STAGE:
    case Op::RESHAPE:
    case Op::PERMUTE:
    case Op::EXPAND:
    case Op::PAD:
    case Op::SHRINK:
    case Op::FLIP:
    case Op::CONTIGUOUS:
    case Op::DETACH:
    case Op::NEG:
    case Op::TRUNC: return src[0].dtype();
    case Op::WHERE: return join(src[1].dtype(), src[2].dtype());
    case Op::ALLREDUCE:
    case Op::COPY:
    case Op::MSELECT:
    case Op::MSTACK:
    case Op::UNSHARD:
    case Op::FUNCTION:
    case Op::REWRITE_ERROR:
    case Op::CONTIGUOUS_BACKWARD: return src.empty() ? fallback : src[0].dtype();
    case Op::GETADDR: return DType::U64;
    case Op::CALL:
    case Op::TUPLE:
    case Op::PROGRAM:
    case Op::SOURCE:
    case Op::BINARY:
    case Op::INS: return DType::Void;
    case Op::STACK:
      for (UOp s : src) t = join(t, s.dtype());
      return src.empty() ? fallback : t;
    default: break;
  }
  if (ops::binary.has(op) || op == Op::MULACC) {
    for (UOp s : src) t = join(t, s.dtype());
    return t;
  }
  return fallback;
}

UOp rebuild(UOp u, std::span<const UOp> src) {
  const Provenance::Of from(u);
  bool changed = false;
  for (size_t i = 0; i < src.size() && i < u.nsrc(); i++)
    changed |= src[i].dtype() != u.src(i).dtype();
  const DType t = changed ? derive_dtype(u.op(), src, u.dtype()) : u.dtype();
  return make(u.op(), t, src, u.node()->val, u.node()->ext);
}

UOp iconst(int64_t v, DType t) {
  CHECK(is_int(t) || t == DType::Bool);
  return make(Op::CONST, t, std::span<const UOp>(), v);
}
UOp fconst(double v, DType t) {
  CHECK(is_float(t));
  return make(Op::CONST, t, std::span<const UOp>(), float_bits(round_to(t, v)));
}
UOp const_like(UOp u, int64_t v) {
  return is_float(u.dtype()) ? fconst(static_cast<double>(v), u.dtype()) : iconst(v, u.dtype());
}
UOp bool_const(bool v) { return iconst(v, DType::Bool); }
UOp invalid() { return make(Op::CONST, DType::Invalid, std::span<const UOp>(), 0); }

UOp alu(Op op, std::initializer_list<UOp> src) {
  const std::span<const UOp> s{src.begin(), src.size()};
  return make(op, derive_dtype(op, s, DType::Void), s);
}
UOp cast(UOp u, DType t) { return u.dtype() == t ? u : make(Op::CAST, t, {u}); }
UOp range(UOp end, int64_t id, AxisType type) {
  return make(Op::RANGE, DType::WeakInt, {end}, id << 8 | static_cast<int64_t>(type));
}
UOp range(int64_t end, int64_t id, AxisType type) { return range(iconst(end), id, type); }
UOp variable(const std::string& name, int64_t vmin, int64_t vmax, DType t) {
  ParamArg a;
  a.slot = -1, a.vmin = vmin, a.vmax = vmax, a.addrspace = AddrSpace::Alu, a.name = name;
  return make(Op::PARAM, t, std::span<const UOp>(), 0, intern(a));
}
UOp param(ParamArg arg, DType t, std::span<const int64_t> shape) {
  return make(Op::PARAM, t, {dims(shape)}, 0, intern(std::move(arg)));
}
UOp buffer(ParamArg arg, DType t, std::span<const int64_t> shape) {
  return make(Op::BUFFER, t, {dims(shape)}, 0, intern(std::move(arg)));
}
UOp stack(std::span<const UOp> elements) {
  return make(Op::STACK, derive_dtype(Op::STACK, elements, DType::WeakInt), elements);
}
UOp dims(std::span<const int64_t> values) {
  std::vector<UOp> e;
  for (int64_t v : values) e.push_back(iconst(v));
  return stack(e);
}
UOp reduce(Op op, UOp value, std::span<const UOp> ranges, size_t leading_dims) {
  std::vector<UOp> src{value};
  src.insert(src.end(), ranges.begin(), ranges.end());
  return make(Op::REDUCE, value.dtype(), src,
              static_cast<int64_t>(leading_dims) << 8 | static_cast<int64_t>(op));
}
UOp reduce_identity(Op op, DType t) {
  if (op == Op::MAX && t == DType::Fp8e4m3) return fconst(-448, t);  // it has no infinities
  if (op == Op::MAX) return is_float(t) ? fconst(-INFINITY, t) : iconst(dtype_min(t), t);
  const int v = op == Op::MUL;
  return is_float(t) ? fconst(v, t) : iconst(v, t);
}
UOp where(UOp c, UOp a, UOp b) { return alu(Op::WHERE, {c, a, b}); }
UOp operator+(UOp a, UOp b) { return alu(Op::ADD, {a, b}); }
UOp operator-(UOp a, UOp b) { return alu(Op::ADD, {a, alu(Op::MUL, {b, const_like(b, -1)})}); }
UOp operator*(UOp a, UOp b) { return alu(Op::MUL, {a, b}); }
UOp operator/(UOp a, UOp b) { return alu(Op::FLOORDIV, {a, b}); }
UOp operator%(UOp a, UOp b) { return alu(Op::FLOORMOD, {a, b}); }
UOp operator&(UOp a, UOp b) { return alu(Op::AND, {a, b}); }
UOp operator|(UOp a, UOp b) { return alu(Op::OR, {a, b}); }
UOp operator^(UOp a, UOp b) { return alu(Op::XOR, {a, b}); }
UOp operator<(UOp a, UOp b) { return alu(Op::CMPLT, {a, b}); }
UOp ne(UOp a, UOp b) { return alu(Op::CMPNE, {a, b}); }
UOp logical_not(UOp b) { return ne(b, bool_const(true)); }
UOp maximum(UOp a, UOp b) { return alu(Op::MAX, {a, b}); }

std::vector<UOp> toposort(UOp root) {
  // Every pass walks its graph several times, so what a walk needs is kept. Ids are small numbers
  // that no two nodes of a graph share: a node is seen if its mark is this walk's number.
  struct Frame {
    const Node* node;
    size_t next;  // operand
  };
  static thread_local std::vector<uint32_t> marks;
  static thread_local uint32_t walk = 0;
  static thread_local std::vector<Frame> stack;
  static thread_local std::vector<UOp> out;
  if (++walk == 0) {
    std::ranges::fill(marks, 0);
    walk = 1;
  }
  out.clear();
  const auto enter = [&](const Node* n) {
    if (n->id >= marks.size()) marks.resize(std::max<size_t>(n->id + 1, 2 * marks.size()), 0);
    if (marks[n->id] == walk) return;
    marks[n->id] = walk;
    stack.push_back({n, 0});
  };
  enter(root.node());
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.node->nsrc) {
      enter(top.node->src[top.next++]);
    } else {
      out.push_back(UOp(top.node));
      stack.pop_back();
    }
  }
  return out;
}

int compare_structure(UOp a, UOp b) {
  // Interned nodes that differ have a first differing operand, so one downward path decides. It may
  // be as long as the graph is deep: after some levels the hash, a function of the structure, does.
  constexpr int levels = 32;
  for (int level = 0; !(a == b); level++) {
    const Node *x = a.node(), *y = b.node();
    if (level >= levels && x->hash != y->hash && a.is_const() == b.is_const())
      return x->hash < y->hash ? -1 : 1;
    if (a.is_const() != b.is_const()) return a.is_const() ? 1 : -1;
    if (x->op != y->op) return op_rank(x->op) < op_rank(y->op) ? -1 : 1;
    if (x->dtype != y->dtype) return dtype_name(x->dtype).compare(dtype_name(y->dtype));
    if (x->val != y->val) {
      if (a.is_const() && is_float(x->dtype)) {  // NaN has no order but its bits
        if (a.fval() < b.fval()) return -1;
        if (a.fval() > b.fval()) return 1;
      }
      if ((x->op == Op::REDUCE || x->op == Op::ALLREDUCE) && a.reduce_op() != b.reduce_op())
        return op_name(a.reduce_op()).compare(op_name(b.reduce_op()));
      return x->val < y->val ? -1 : 1;
    }
    if (x->ext != y->ext) {
      if (!x->ext || !y->ext) return x->ext ? 1 : -1;
      const auto text = [](const Node* n) -> const std::string& {
        return static_cast<const InternedExtra*>(n->ext)->text;
      };
      if (const int c = text(x).compare(text(y)); c != 0) return c;
    }
    if (x->nsrc != y->nsrc) return x->nsrc < y->nsrc ? -1 : 1;
    size_t i = 0;
    while (i < x->nsrc && x->src[i] == y->src[i]) i++;
    if (i == x->nsrc) return 0;  // same structure in two arenas
    a = UOp(x->src[i]), b = UOp(y->src[i]);
  }
  return 0;
}

UOp memory_of(UOp address) {
  while (address.op() == Op::INDEX || address.op() == Op::SHRINK || address.op() == Op::AFTER ||
         address.op() == Op::RESHAPE)
    address = address.src(0);
  return address;
}

}  // namespace beamline
