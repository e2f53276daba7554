#include "engine/render/c_style.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/lower/small_floats.h"
#include "engine/render/origin_comments.h"
#include "engine/rules/linear.h"

namespace beamline {
namespace {

struct Unsupported {
  std::string what;
};

struct Operator {
  Op op;
  std::string_view text;
};
// clang-format off
constexpr Operator operators[] = {
    {Op::ADD, "+"},  {Op::SUB, "-"},   {Op::MUL, "*"},  {Op::FDIV, "/"}, {Op::CDIV, "/"}, {Op::CMOD, "%"},
    {Op::SHL, "<<"}, {Op::SHR, ">>"},  {Op::AND, "&"},  {Op::OR, "|"},   {Op::XOR, "^"},
    {Op::CMPLT, "<"}, {Op::CMPNE, "!="}, {Op::CMPEQ, "=="},
};
// clang-format on

class CRenderer {
 public:
  CRenderer(const LinearKernel& k, const CDialect& d) : kernel_(k), dialect_(d) {}

  std::string run(const std::string& entry) {
    indent_ = "  ";
    std::string head, list;
    for (const LinearArg& a : kernel_.args) {
      const std::string_view constant = a.written ? "" : "const ";
      head += fmt::format(fmt::runtime(dialect_.argument), constant, memory_type(a.dtype), a.slot);
      list += fmt::format(fmt::runtime(dialect_.parameter), list.empty() ? "" : ", ", constant,
                          memory_type(a.dtype), a.slot);
    }
    for (UOp u : kernel_.list) {
      const size_t before = body_.size();
      emit(u);
      origins_.note(u, body_, before, indent_, "// ");
    }
    std::string text = fmt::format("// {}\n{}", kernel_.name, dialect_.prelude);
    if (std::ranges::any_of(kernel_.list, [](UOp u) { return u.dtype() == DType::F16; }))
      text += dialect_.half_prelude;
    for (const std::string& t : types_) text += t;
    for (const std::string& f : functions_) text += f;
    int64_t threads = 1;
    for (int64_t n : kernel_.grid.local) threads *= n;
    return text + fmt::format(fmt::runtime(dialect_.signature), entry, list, threads) + " {\n" +
           head + body_ + "}\n";
  }

 private:
  static int64_t lanes_of(UOp u) { return u.shape().empty() ? 0 : u.shape()[0]; }
  // 0: a scalar, as every lane is while it is computed alone.
  int64_t width(UOp u) const { return alone_ ? 0 : lanes_of(u); }
  bool splits() const { return !dialect_.vector_struct.empty(); }

  std::string_view scalar_type(DType t) const {
    const std::string_view name = dialect_.types[static_cast<size_t>(t)];
    if (name.empty()) throw Unsupported{fmt::format("dtype {}", dtype_name(t))};
    return name;
  }
  // In memory a bool is a byte.
  std::string_view memory_type(DType t) const {
    return t == DType::Bool ? scalar_type(DType::U8) : scalar_type(t);
  }
  std::string vector_of(std::string_view lane, int64_t w) {
    if (!dialect_.vector_typedef) return fmt::format("{}{}", lane, w);
    std::string name(lane);
    for (char& c : name)
      if (c == ' ') c = '_';
    name += fmt::format("_x{}", w);
    if (splits()) return name;
    types_.insert(
        fmt::format("typedef {} {} __attribute__((ext_vector_type({})));\n", lane, name, w));
    return name;
  }
  // What memory holds of w elements, where vectors are only moved.
  std::string moved_type(DType t, int64_t w) {
    const std::string name = vector_of(memory_type(t), w);
    types_.insert(fmt::format(fmt::runtime(dialect_.vector_struct), name, memory_type(t), w,
                              w * dtype_bytes(t)));
    return name;
  }
  std::string type(DType t, int64_t w) {
    if (w == 0) return std::string(scalar_type(t));
    return vector_of(scalar_type(t == DType::Bool ? DType::I8 : t), w);
  }
  std::string type(UOp u) { return type(u.dtype(), width(u)); }
  // A signed integer as wide as t: what a comparison of vectors of t gives.
  std::string mask_type(DType t, int64_t w) {
    constexpr DType by_bytes[] = {DType::I8, DType::I16, DType::I32, DType::I64};
    if (t == DType::Bool) return vector_of(scalar_type(DType::I8), w);
    return type(by_bytes[std::countr_zero(static_cast<unsigned>(dtype_bytes(t)))], w);
  }

  std::string literal(UOp c) const {
    const DType t = c.dtype();
    if (!is_float(t)) {
      const int64_t v = wrap_to(t, c.ival());
      if (t == DType::Bool) return v ? "1" : "0";
      if (t == DType::U64) return fmt::format("{}{}", static_cast<uint64_t>(v), dialect_.u64);
      return whole(v);
    }
    if (is_storage_float(t)) return fmt::format("{}", float_to_bits(t, c.fval()));
    const double v = c.fval();
    if (std::isnan(v)) return std::string(dialect_.nan);
    if (std::isinf(v))
      return v > 0 ? std::string(dialect_.infinity) : fmt::format("(-{})", dialect_.infinity);
    return fmt::format("{:a}{}", v, t == DType::F64 ? "" : dialect_.f32);
  }
  std::string whole(int64_t v) const {
    if (v == std::numeric_limits<int64_t>::min())
      return fmt::format("(-9223372036854775807{} - 1)", dialect_.i64);
    return fmt::format("{}{}", v, dialect_.i64);
  }
  std::string scalar_literal(UOp c) {
    if (c.dtype() == DType::I64) return literal(c);
    return fmt::format("(({}){})", scalar_type(c.dtype()), literal(c));
  }

  template <class... A>
  void put(fmt::format_string<A...> f, A&&... a) {
    body_ += indent_ + fmt::format(f, std::forward<A>(a)...) + "\n";
  }
  template <class... A>
  std::string let(const std::string& t, fmt::format_string<A...> f, A&&... a) {
    const std::string name = fmt::format("v{}", next_++);
    put("{} {} = {};", t, name, fmt::format(f, std::forward<A>(a)...));
    return name;
  }

  // The value of u in w lanes (0: as a scalar).
  std::string value(UOp u, int64_t w) {
    if (alone_ && lanes_of(u) > 0) return lanes_.at(u).at(*alone_);
    const std::string scalar = u.is_const() ? scalar_literal(u) : names_.at(u);
    if (w == width(u)) return scalar;
    CHECK(width(u) == 0);
    return fmt::format("(({}){}({}))", type(u.dtype(), w), u.dtype() == DType::Bool ? "-" : "",
                       scalar);
  }
  // Lane k of u, as a scalar; of a bool, 0 or 1.
  std::string lane(UOp u, int64_t k) {
    if (lanes_of(u) == 0) return value(u, 0);
    if (splits()) return lanes_.at(u).at(static_cast<size_t>(k));
    const std::string v = element(names_.at(u), k);
    return u.dtype() == DType::Bool ? fmt::format("({} != 0)", v) : v;
  }
  std::string element(const std::string& vector, int64_t k) const {
    return fmt::format(fmt::runtime(dialect_.lane), vector, k);
  }
  std::string converted(const std::string& v, const std::string& t) const {
    return fmt::format(fmt::runtime(dialect_.convert), v, t);
  }

  static std::string pointer(UOp buffer) {
    return fmt::format("{}{}", buffer.op() == Op::PARAM ? "p" : "acc", buffer.param().slot);
  }
  // Of lane k of an access.
  std::string place(UOp at, int64_t k) {
    const UOp index = at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1);
    const std::string i =
        at.op() == Op::SHRINK ? fmt::format("{} + {}", value(index, 0), k) : lane(index, k);
    return fmt::format("{}[{}]", pointer(memory_of(at)), i);
  }

  std::string_view space(UOp memory) const {
    return memory.addrspace() == AddrSpace::Global  ? dialect_.global_space
           : memory.addrspace() == AddrSpace::Local ? dialect_.local_space
                                                    : dialect_.thread_space;
  }
  // Neighbours that one instruction of a GPU moves: their place is a multiple of their size.
  static bool moves_whole(UOp at, int64_t w) {
    if (at.op() != Op::SHRINK || memory_of(at).addrspace() == AddrSpace::Reg) return false;
    if (!std::has_single_bit(static_cast<uint64_t>(w)) || w * dtype_bytes(at.dtype()) > 16)
      return false;
    const auto sum = linear(at.src(1).src(0));
    return sum && sum->constant % w == 0 &&
           std::ranges::all_of(sum->terms, [&](const Term& t) { return t.coef % w == 0; });
  }
  std::vector<std::string> lanes_of_struct(const std::string& name, DType t, int64_t w) const {
    std::vector<std::string> out;
    for (int64_t k = 0; k < w; k++)
      out.push_back(t == DType::Bool ? fmt::format("({}.v[{}] != 0)", name, k)
                                     : fmt::format("{}.v[{}]", name, k));
    return out;
  }
  std::vector<std::string> load_lanes(UOp u) {
    const UOp at = u.src(0);
    const int64_t w = lanes_of(u);
    const bool gated = u.nsrc() == 3;
    if (!gated && moves_whole(at, w)) {
      const std::string t = moved_type(u.dtype(), w), name = fmt::format("v{}", next_++);
      put("{1} {2} = *({0}const {1}*)&{3};", space(memory_of(at)), t, name, place(at, 0));
      return lanes_of_struct(name, u.dtype(), w);
    }
    std::vector<std::string> out;
    const std::string t(scalar_type(u.dtype()));
    for (int64_t k = 0; k < w; k++)
      out.push_back(gated
                        ? let(t, "{} ? {} : {}", lane(u.src(2), k), place(at, k), lane(u.src(1), k))
                        : let(t, "{}", place(at, k)));
    return out;
  }
  // A struct of the lanes of u.
  std::string gathered(UOp u, DType t, int64_t w) {
    std::string list;
    for (int64_t k = 0; k < w; k++) list += (k ? ", " : "") + lane(u, k);
    return let(moved_type(t, w), "{{{{{}}}}}", list);
  }

  std::string load(UOp u) {
    const UOp at = u.src(0);
    const DType t = u.dtype();
    const int64_t w = width(u);
    const bool gated = u.nsrc() == 3, byte = t == DType::Bool;
    if (w == 0) {
      const std::string p = place(at, 0);
      return gated ? let(type(u), "{} ? {} : {}", value(u.src(2), 0), p, value(u.src(1), 0))
                   : let(type(u), "{}", p);
    }
    const std::string name = fmt::format("v{}", next_++);
    if (at.op() == Op::SHRINK && !gated) {
      put("{} {};", type(u), name);
      put("{}", fmt::format(fmt::runtime(dialect_.vector_load), name, place(at, 0),
                            w * dtype_bytes(t), w));
      if (byte) put("{0} = {0} != 0;", name);
      return name;
    }
    put("{} {} = {};", type(u), name,
        gated ? value(u.src(1), w) : fmt::format("({})({})", type(u), 0));
    for (int64_t k = 0; k < w; k++)
      put("{}{} = {}{};", gated ? fmt::format("if ({}) ", lane(u.src(2), k)) : "", element(name, k),
          byte ? "-" : "", place(at, k));
    return name;
  }

  void store(UOp u) {
    const UOp at = u.src(0), v = u.src(1);
    const DType t = memory_of(at).dtype();
    const int64_t w = at.op() == Op::SHRINK ? at.src(2).src(0).ival() : width(at.src(1));
    const bool gated = u.nsrc() == 3;
    if (splits() && w > 0 && !gated && moves_whole(at, w)) {
      const std::string x = gathered(v, t, w);
      put("*({}{}*)&{} = {};", space(memory_of(at)), moved_type(t, w), place(at, 0), x);
      return;
    }
    if (at.op() == Op::SHRINK && !gated && t != DType::Bool && !splits()) {
      const std::string x = let(type(t, w), "{}", value(v, w));
      put("{}",
          fmt::format(fmt::runtime(dialect_.vector_store), x, place(at, 0), w * dtype_bytes(t), w));
      return;
    }
    for (int64_t k = 0; k < std::max<int64_t>(w, 1); k++)
      put("{}{} = {};", gated ? fmt::format("if ({}) ", lane(u.src(2), k)) : "", place(at, k),
          lane(v, k));
  }

  // Float to integer: NaN is 0, what is out of range is the nearest end.
  std::string saturate(const std::string& v, DType from, DType to) {
    const int bits = dtype_bytes(to) * 8;
    const bool is_u = is_unsigned(to);
    const std::string high =
        fmt::format("(({}){:a}{})", scalar_type(from), std::ldexp(1.0, is_u ? bits : bits - 1),
                    from == DType::F64 ? "" : dialect_.f32);
    const std::string low = is_u ? "0" : fmt::format("(-{})", high);
    const std::string top = is_u && bits == 64 ? fmt::format("0xffffffffffffffff{}", dialect_.u64)
                            : is_u             ? whole((int64_t{1} << bits) - 1)
                            : bits == 64       ? whole(std::numeric_limits<int64_t>::max())
                                               : whole((int64_t{1} << (bits - 1)) - 1);
    const std::string bottom = is_u         ? "0"
                               : bits == 64 ? whole(std::numeric_limits<int64_t>::min())
                                            : fmt::format("(-{} - 1)", top);
    return fmt::format(
        "({0} != {0} ? ({1})0 : {0} < {2} ? ({1}){3} : {0} >= {4} ? ({1}){5} : ({1}){0})", v,
        scalar_type(to), low, bottom, high, top);
  }

  std::string convert(UOp u) {
    const UOp s = u.src(0);
    const DType a = s.dtype(), b = u.dtype();
    const int64_t w = width(u);
    const std::string t = type(u);
    if (u.op() == Op::BITCAST) {
      const std::string from = let(type(a, w), "{}", value(s, w)),
                        name = fmt::format("v{}", next_++);
      put("{} {};", t, name);
      put("{}", fmt::format(fmt::runtime(dialect_.bitcast), name, from,
                            std::max<int64_t>(w, 1) * dtype_bytes(b), t));
      return name;
    }
    if (b == DType::Bool) {
      if (w == 0) return let(t, "{} != 0", value(s, 0));
      return let(t, "{}", converted(value(s, w) + " != 0", t));
    }
    if (is_float(a) && !is_float(b)) {
      const std::string from = let(type(a, w), "{}", value(s, w));
      if (w == 0) return let(t, "{}", saturate(from, a, b));
      const std::string name = let(t, "({})(0)", t);
      for (int64_t k = 0; k < w; k++)
        put("{} = {};", element(name, k), saturate(element(from, k), a, b));
      return name;
    }
    if (w == 0) return let(t, "({}){}", t, value(s, 0));
    return let(t, "{}", converted((a == DType::Bool ? "-" : "") + value(s, w), t));
  }

  std::string function(std::string_view f, const std::string& t, DType in, const std::string& x) {
    if (in == DType::F16 && !dialect_.half_math)  // exact, and so is its rounding
      return let(t, "({})({}(({}){}))", t, f, scalar_type(DType::F32), x);
    return let(t, "{}({})", f, x);
  }

  std::string alu_value(UOp u) {
    const int64_t w = width(u);
    const DType in = u.src(u.op() == Op::WHERE ? 1 : 0).dtype();
    const std::string t = type(u);
    const auto arg = [&](size_t i) { return value(u.src(i), w); };
    const auto select = [&](const std::string& mask, const std::string& x, const std::string& y) {
      return let(t, "{} ? {} : {}", mask, x, y);
    };
    switch (u.op()) {
      case Op::WHERE:
        if (w == 0) return select(arg(0), arg(1), arg(2));
        return select(converted(arg(0), mask_type(in, w)), arg(1), arg(2));
      case Op::NEG: return let(t, "-{}", arg(0));
      case Op::SQRT: return function(dialect_.sqrt, t, in, arg(0));
      case Op::TRUNC: return function(dialect_.trunc, t, in, arg(0));
      case Op::SIN:
        if (dialect_.sin.empty()) break;
        return function(dialect_.sin, t, in, arg(0));
      case Op::MAX: {
        const std::string a = let(t, "{}", arg(0)), b = let(t, "{}", arg(1));
        // NaN of either side wins.
        return is_float(in) ? select(fmt::format("(({0} < {1}) | ({1} != {1}))", a, b), b, a)
                            : select(fmt::format("({} < {})", a, b), b, a);
      }
      default: break;
    }
    for (const Operator& o : operators) {
      if (o.op != u.op()) continue;
      const bool compares = ops::comparison.has(u.op());
      if (w == 0) return let(t, "({})({} {} {})", t, arg(0), o.text, arg(1));
      if (compares)
        return let(t, "{}", converted(fmt::format("{} {} {}", arg(0), o.text, arg(1)), t));
      return let(t, "{} {} {}", arg(0), o.text, arg(1));
    }
    throw Unsupported{fmt::format("{} of {}", op_name(u.op()), dtype_name(in))};
  }

  std::string across(UOp u) {
    const UOp s = u.src(0);
    const std::string t = type(u);
    std::string sum = let(t, "{}", lane(s, 0));
    for (int64_t k = 1; k < width(s); k++) {
      const std::string x = let(t, "{}", lane(s, k));
      switch (u.reduce_op()) {
        case Op::ADD: sum = let(t, "({})({} + {})", t, sum, x); break;
        case Op::MUL: sum = let(t, "({})({} * {})", t, sum, x); break;
        case Op::MAX: sum = let(t, "{0} < {1} || {1} != {1} ? {1} : {0}", sum, x); break;
        default: throw Unsupported{fmt::format("REDUCE {}", op_name(u.reduce_op()))};
      }
    }
    return sum;
  }

  // D = A B + C by all threads of a warp.
  void matrix_product(UOp u) {
    const TensorCore& core = *tensor_core(u.text());
    const DType in[] = {core.in, core.in, core.out};
    std::string types[3], args;
    for (size_t i = 0; i < 3; i++) {
      const int64_t w = core.shape->elements[i];
      types[i] = splits() ? moved_type(in[i], w) : type(in[i], w);
      args += (i ? ", " : "") + (splits() ? gathered(u.src(i), in[i], w) : value(u.src(i), w));
    }
    const std::string name =
        fmt::format("mma_{}x{}x{}_{}_{}", core.shape->n, core.shape->m, core.shape->k,
                    core.tf32 ? "tf32" : dtype_name(core.in), dtype_name(core.out));
    const std::string text =
        dialect_.matrix_product ? dialect_.matrix_product(core, name, types) : "";
    if (text.empty()) throw Unsupported{fmt::format("tensor core {}", core.name())};
    functions_.insert(text);
    const std::string d = let(types[2], "{}({})", name, args);
    if (splits())
      lanes_[u] = lanes_of_struct(d, core.out, core.shape->elements[2]);
    else
      names_[u] = d;
  }

  // Of a value of several lanes, where each is computed alone.
  template <class F>
  void each_lane(UOp u, F f) {
    std::vector<std::string> out;
    for (int64_t k = 0; k < lanes_of(u); k++) {
      alone_ = static_cast<size_t>(k);
      out.push_back(f(u));
    }
    alone_.reset();
    lanes_[u] = std::move(out);
  }

  // "core_id", or gidx and lidx with the number of their dimension.
  std::string special(const std::string& name, std::string_view t) const {
    const std::string_view format = name == "core_id" ? dialect_.core
                                    : name[0] == 'g'  ? dialect_.group
                                                      : dialect_.thread;
    if (format.empty()) throw Unsupported{name == "core_id" ? "threads of a CPU" : "grids"};
    return fmt::format(fmt::runtime(format), name.back(), t,
                       static_cast<char>(name.back() - '0' + 'x'));
  }

  void emit(UOp u) {
    switch (u.op()) {
      case Op::INDEX:
        if (u.src(0).addrspace() == AddrSpace::None)  // a lane of a value
          names_[u] = lane(u.src(0), u.src(1).ival());
        return;
      case Op::CONST:
      case Op::PARAM:
      case Op::SHRINK:
      case Op::AFTER:
      case Op::GROUP:
      case Op::SINK:
        if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Alu)
          throw Unsupported{"run-time variables"};
        return;
      case Op::BUFFER:
        put("{}{} acc{}[{}] __attribute__((aligned(64)));",
            u.addrspace() == AddrSpace::Local ? dialect_.local : "", memory_type(u.dtype()),
            u.param().slot, u.numel());
        return;
      case Op::BARRIER:
        if (dialect_.barrier.empty()) throw Unsupported{"barriers"};
        put("{}", dialect_.barrier);
        return;
      case Op::STACK: {
        for (size_t i = 0; i < u.nsrc(); i++)
          if (!u.src(i).shape().empty()) return;  // a shape of shapes: never a value
        if (u.dtype() == DType::WeakInt) return;  // a shape operand
        if (u.nsrc() == 1) return;                // the offset of a SHRINK
        if (splits()) {
          std::vector<std::string>& all = lanes_[u];
          for (size_t i = 0; i < u.nsrc(); i++) all.push_back(value(u.src(i), 0));
          return;
        }
        const std::string name = fmt::format("v{}", next_++);
        put("{} {};", type(u), name);
        for (size_t i = 0; i < u.nsrc(); i++)
          put("{} = {}{};", element(name, static_cast<int64_t>(i)),
              u.dtype() == DType::Bool ? "-" : "", value(u.src(i), 0));
        names_[u] = name;
        return;
      }
      case Op::SPECIAL: names_[u] = special(u.text(), scalar_type(u.dtype())); return;
      case Op::RANGE: {
        const std::string i = fmt::format("i{}", next_++);
        put("for ({0} {1} = 0; {1} < {2}; {1}++) {{", scalar_type(u.dtype()), i,
            value(u.src(0), 0));
        indent_ += "  ";
        names_[u] = i;
        return;
      }
      case Op::END:
        indent_.resize(indent_.size() - 2);
        put("}}");
        return;
      case Op::LOAD:
        if (splits() && lanes_of(u) > 0)
          lanes_[u] = load_lanes(u);
        else
          names_[u] = load(u);
        return;
      case Op::STORE: store(u); return;
      case Op::WMMA: matrix_product(u); return;
      case Op::CAST:
      case Op::BITCAST:
        if (splits() && lanes_of(u) > 0)
          each_lane(u, [&](UOp v) { return convert(v); });
        else
          names_[u] = convert(u);
        return;
      case Op::REDUCE: names_[u] = across(u); return;
      default:
        if (!ops::alu.has(u.op())) throw Unsupported{std::string(op_name(u.op()))};
        if (splits() && lanes_of(u) > 0)
          each_lane(u, [&](UOp v) { return alu_value(v); });
        else
          names_[u] = alu_value(u);
    }
  }

  const LinearKernel& kernel_;
  const CDialect& dialect_;
  OriginComments origins_;
  std::string body_, indent_;
  std::set<std::string> types_, functions_;  // declared before the entry
  std::unordered_map<UOp, std::string, UOpHash> names_;
  std::unordered_map<UOp, std::vector<std::string>, UOpHash> lanes_;  // where vectors are split
  std::optional<size_t> alone_;                                       // the lane that is computed
  size_t next_ = 0;
};

}  // namespace

std::string render_c(const LinearKernel& kernel, const CDialect& dialect, const std::string& entry,
                     std::string& error) {
  try {
    return CRenderer(kernel, dialect).run(entry);
  } catch (const Unsupported& u) {
    error = fmt::format("C renderer ({}): no code for {}", dialect.name, u.what);
    return "";
  }
}

}  // namespace beamline
