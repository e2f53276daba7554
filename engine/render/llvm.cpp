#include "engine/render/llvm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/render/origin_comments.h"

namespace beamline {
namespace {

struct Unsupported {
  std::string what;
};

std::string_view scalar_type(DType t) {
  switch (t) {
    case DType::Bool: return "i1";
    case DType::I8:
    case DType::U8:
    case DType::Fp8e4m3:
    case DType::Fp8e5m2: return "i8";  // storage only
    case DType::I16:
    case DType::U16: return "i16";
    case DType::I32:
    case DType::U32: return "i32";
    case DType::I64:
    case DType::U64: return "i64";
    case DType::F16: return "half";
    case DType::BF16: return "bfloat";
    case DType::F32: return "float";
    case DType::F64: return "double";
    default: throw Unsupported{fmt::format("dtype {} has no LLVM type here", dtype_name(t))};
  }
}
// In memory a bool is a byte.
std::string_view memory_type(DType t) { return t == DType::Bool ? "i8" : scalar_type(t); }

std::string literal(UOp c) {
  const DType t = c.dtype();
  if (t == DType::Bool) return c.ival() ? "true" : "false";
  if (!is_float(t)) return fmt::format("{}", wrap_to(t, c.ival()));
  const double v = c.fval();
  if (t == DType::F32 || t == DType::F64)
    return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(v));
  if (t == DType::BF16)
    return fmt::format("0xR{:04X}", std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16);
  if (t == DType::F16) return fmt::format("0xH{:04X}", float_to_bits(t, v));
  if (dtype_bytes(t) == 1) return fmt::format("{}", float_to_bits(t, v));
  throw Unsupported{fmt::format("constants of {}", dtype_name(t))};
}

// Instructions that differ only by element kind: float, signed, unsigned.
struct Instruction {
  Op op;
  std::string_view f, s, u;
};
// clang-format off
constexpr Instruction instructions[] = {
    {Op::ADD,   "fadd contract", "add",      "add"},
    {Op::SUB,   "fsub contract", "sub",      "sub"},
    {Op::MUL,   "fmul contract", "mul",      "mul"},
    {Op::FDIV,  "fdiv contract", "",         ""},
    {Op::CDIV,  "",              "sdiv",     "udiv"},
    {Op::CMOD,  "",              "srem",     "urem"},
    {Op::SHL,   "",              "shl",      "shl"},
    {Op::SHR,   "",              "ashr",     "lshr"},
    {Op::AND,   "",              "and",      "and"},
    {Op::OR,    "",              "or",       "or"},
    {Op::XOR,   "",              "xor",      "xor"},
    {Op::CMPLT, "fcmp olt",      "icmp slt", "icmp ult"},
    {Op::CMPNE, "fcmp une",      "icmp ne",  "icmp ne"},
    {Op::CMPEQ, "fcmp oeq",      "icmp eq",  "icmp eq"},
};
struct Intrinsic {
  Op op;
  std::string_view f, s, u, reduce_f, reduce_s, reduce_u;
};
constexpr Intrinsic intrinsics[] = {
    {Op::MAX,   "maximum", "smax", "umax", "fmaximum", "smax", "umax"},
    {Op::ADD,   "",        "",     "",     "fadd",     "add",  "add"},
    {Op::MUL,   "",        "",     "",     "fmul",     "mul",  "mul"},
    {Op::SQRT,  "sqrt",    "",     "",     "",         "",     ""},
    {Op::TRUNC, "trunc",   "",     "",     "",         "",     ""},
};
// clang-format on

class Renderer {
 public:
  Renderer(const LinearKernel& k, bool streaming) : kernel_(k), streaming_(streaming) {}

  // The whole module. Stores past the caches need whole aligned vectors, and lines that are written
  // by nothing else; where not every store is one, STREAM changes nothing. Otherwise there are two
  // bodies, and the entry looks at the addresses of what is written.
  std::string run(const std::string& entry) {
    std::string params, call, loads, written = "0";
    for (UOp u : kernel_.list) {
      const size_t before = body_.size();
      emit(u);
      origins_.note(u, body_, before, "  ", "; ");
    }
    if (streaming_ && ordinary_stores_) return Renderer(kernel_, false).run(entry);
    for (const LinearArg& a : kernel_.args) {
      const std::string sep = params.empty() ? "" : ", ";
      params += fmt::format("{}ptr noalias {}%p{}", sep, a.written ? "" : "readonly ", a.slot);
      call += fmt::format("{}ptr %p{}", sep, a.slot);
      loads += fmt::format(
          "  %q{0} = getelementptr ptr, ptr %buffers, i64 {0}\n  %p{0} = load ptr, ptr %q{0}\n",
          a.slot);
    }
    const std::string sep = params.empty() ? "" : ", ";
    params += sep + "i64 %core_id", call += sep + "i64 %core_id";
    std::string text = fmt::format("; {}\n{}", kernel_.name, function("body", params));
    std::string calls = fmt::format("  call void @body({})\n", call);
    if (streaming_) {
      Renderer plain(kernel_, false);
      for (UOp u : kernel_.list) plain.emit(u);
      text += plain.function("plain", params);
      declared_.merge(plain.declared_);
      for (const LinearArg& a : kernel_.args)
        if (a.written) {
          loads += fmt::format("  %b{0} = ptrtoint ptr %p{0} to i64\n  %w{0} = or i64 %b{0}, {1}\n",
                               a.slot, written);
          written = fmt::format("%w{}", a.slot);
        }
      // Others see what was stored past the caches only after a fence.
      calls = fmt::format(
          "  %low = and i64 {0}, {1}\n  %aligned = icmp eq i64 %low, 0\n"
          "  br i1 %aligned, label %stream, label %store\nstream:\n  call void @body({2})\n"
          "  fence seq_cst\n  ret void\nstore:\n  call void @plain({2})\n",
          written, stream_align - 1, call);
    }
    text +=
        fmt::format("define void @{}(ptr %buffers, i64 %core_id) nounwind {{\n{}{}  ret void\n}}\n",
                    entry, loads, calls);
    for (const std::string& d : declared_) text += d;
    return text + (streaming_ ? "!0 = !{i32 1}\n" : "");
  }

 private:
  static constexpr int64_t stream_align = 64;

  std::string function(std::string_view name, const std::string& params) const {
    return fmt::format("define internal void @{}({}) nounwind {{\nentry:\n{}{}  ret void\n}}\n\n",
                       name, params, allocas_, body_);
  }

  // A power of two that divides an index: what is known from its sums and multiples.
  int64_t divisor(UOp u) const {
    if (u.is_const())
      return u.ival() == 0 ? stream_align : std::min(stream_align, u.ival() & -u.ival());
    const auto at = divisors_.find(u);
    return at == divisors_.end() ? 1 : at->second;
  }
  void note_divisor(UOp u) {
    if (!streaming_ || is_float(u.dtype()) || u.nsrc() == 0) return;
    int64_t d = 1;
    switch (u.op()) {
      case Op::ADD:
      case Op::SUB: d = std::min(divisor(u.src(0)), divisor(u.src(1))); break;
      case Op::MUL: d = divisor(u.src(0)) * divisor(u.src(1)); break;
      case Op::SHL: d = u.src(1).is_const() ? divisor(u.src(0)) << u.src(1).ival() : 1; break;
      case Op::CAST: d = divisor(u.src(0)); break;
      default: return;
    }
    divisors_.emplace(u, std::min(d, stream_align));
  }
  // A whole vector at an address that is a multiple of its size, if that of the memory is.
  bool streams(UOp at, int64_t w, DType t) const {
    const int64_t bytes = w * dtype_bytes(t);
    return streaming_ && at.op() == Op::SHRINK && memory_of(at).op() == Op::PARAM &&
           (bytes == 16 || bytes == 32 || bytes == 64) &&
           divisor(at.src(1).src(0)) * dtype_bytes(t) % bytes == 0;
  }
  static int64_t width(UOp u) { return u.shape().empty() ? 0 : u.shape()[0]; }  // 0: a scalar
  static std::string type(std::string_view scalar, int64_t w) {
    return w ? fmt::format("<{} x {}>", w, scalar) : std::string(scalar);
  }
  static std::string type(UOp u) { return type(scalar_type(u.dtype()), width(u)); }
  static std::string suffix(DType t, int64_t w) {
    const std::string s = is_float(t)
                              ? (t == DType::BF16 ? "bf16" : fmt::format("f{}", dtype_bytes(t) * 8))
                          : t == DType::Bool ? "i1"
                                             : fmt::format("i{}", dtype_bytes(t) * 8);
    return w ? fmt::format("v{}{}", w, s) : s;
  }

  template <class... A>
  std::string line(fmt::format_string<A...> f, A&&... a) {
    std::string name = fmt::format("%v{}", next_++);
    body_.append("  ").append(name).append(" = ");
    fmt::format_to(std::back_inserter(body_), f, std::forward<A>(a)...);
    body_ += '\n';
    return name;
  }
  void declare(std::string_view result, std::string_view name, std::string_view args) {
    declared_.insert(fmt::format("declare {} @{}({})\n", result, name, args));
  }

  // The value of u in w lanes (0: as a scalar).
  std::string value(UOp u, int64_t w) {
    const int64_t have = width(u);
    if (u.is_const())
      return w ? fmt::format("splat ({} {})", scalar_type(u.dtype()), literal(u)) : literal(u);
    if (is_lane(u) && !names_.contains(u))
      names_[u] = line("extractelement {} {}, i64 {}", type(u.src(0)), names_.at(u.src(0)),
                       u.src(1).ival());
    const std::string& v = names_.at(u);
    if (w == have) return v;
    CHECK(have == 0);
    // Blocks follow one another, and every loop runs at least once: what is defined stays defined.
    std::string& splatted = splats_[u];
    if (splatted.empty() || splat_width_[u] != w) {
      splatted = splat(v, scalar_type(u.dtype()), w);
      splat_width_[u] = w;
    }
    return splatted;
  }
  std::string splat(const std::string& v, std::string_view scalar, int64_t w) {
    const std::string t = type(scalar, w);
    const std::string one = line("insertelement {} poison, {} {}, i64 0", t, scalar, v);
    return line("shufflevector {} {}, {} poison, <{} x i32> zeroinitializer", t, one, t, w);
  }

  std::string pointer(UOp buffer) {
    return buffer.op() == Op::PARAM ? fmt::format("%p{}", buffer.param().slot)
                                    : fmt::format("%acc{}", buffer.param().slot);
  }
  // base + index elements; a constant at the end of the sum becomes an offset of its own.
  std::string element(UOp buffer, UOp index) {
    const std::string_view t = memory_type(buffer.dtype());
    if (index.op() == Op::ADD && index.src(1).is_const()) {
      const std::string p =
          line("getelementptr {}, ptr {}, i64 {}", t, pointer(buffer), value(index.src(0), 0));
      return line("getelementptr {}, ptr {}, i64 {}", t, p, literal(index.src(1)));
    }
    return line("getelementptr {}, ptr {}, i64 {}", t, pointer(buffer), value(index, 0));
  }
  std::string lane_index(UOp index, int64_t lane, const std::string& gate, int64_t gates) {
    std::string i = value(index, width(index));
    if (width(index)) i = line("extractelement {} {}, i64 {}", type(index), i, lane);
    if (gate.empty()) return i;
    // A gated-off access reads element 0, which every buffer has; its value is not used.
    const std::string g =
        gates ? line("extractelement <{} x i1> {}, i64 {}", gates, gate, lane) : gate;
    return line("select i1 {}, i64 {}, i64 0", g, i);
  }
  std::string to_value(const std::string& v, DType t, int64_t w) {
    return t == DType::Bool
               ? line("icmp ne {} {}, {}", type("i8", w), v, w ? "zeroinitializer" : "0")
               : v;
  }

  std::string load(UOp u) {
    const UOp at = u.src(0), buffer = memory_of(at);
    const DType t = u.dtype();
    const std::string_view m = memory_type(t);
    const int64_t w = width(u);
    const bool gated = u.nsrc() == 3;
    const UOp gate = gated ? u.src(2) : UOp{};
    if (at.op() == Op::SHRINK) {
      const std::string p = element(buffer, at.src(1).src(0)), vt = type(m, w);
      if (!gated) return to_value(line("load {}, ptr {}, align {}", vt, p, dtype_bytes(t)), t, w);
      const std::string name =
          fmt::format("llvm.masked.load.{}.p0", suffix(t == DType::Bool ? DType::I8 : t, w));
      declare(vt, name, fmt::format("ptr, i32, <{} x i1>, {}", w, vt));
      const UOp alt = u.src(1);
      const std::string passthru = t == DType::Bool ? "zeroinitializer" : value(alt, w);
      return to_value(line("call {} @{}(ptr {}, i32 {}, <{} x i1> {}, {} {})", vt, name, p,
                           dtype_bytes(t), w, value(gate, w), vt, passthru),
                      t, w);
    }
    const UOp index = at.src(1);
    const std::string g = gated ? value(gate, width(gate)) : "";
    if (!w) {
      const std::string p = gated ? line("getelementptr {}, ptr {}, i64 {}", m, pointer(buffer),
                                         lane_index(index, 0, g, 0))
                                  : element(buffer, index);
      const std::string v = to_value(line("load {}, ptr {}, align {}", m, p, dtype_bytes(t)), t, 0);
      return gated ? line("select i1 {}, {} {}, {} {}", g, scalar_type(t), v, scalar_type(t),
                          value(u.src(1), 0))
                   : v;
    }
    std::string v = "poison";
    for (int64_t i = 0; i < w; i++) {
      const std::string p = line("getelementptr {}, ptr {}, i64 {}", m, pointer(buffer),
                                 lane_index(index, i, g, gated ? width(gate) : 0));
      v = line("insertelement {} {}, {} {}, i64 {}", type(m, w), v, m,
               line("load {}, ptr {}, align {}", m, p, dtype_bytes(t)), i);
    }
    v = to_value(v, t, w);
    if (!gated) return v;
    return line("select <{} x i1> {}, {} {}, {} {}", w, value(gate, w), type(u), v, type(u),
                value(u.src(1), w));
  }

  void store(UOp u) {
    const UOp at = u.src(0), buffer = memory_of(at), v = u.src(1);
    const DType t = buffer.dtype();
    const std::string_view m = memory_type(t);
    const int64_t w = at.op() == Op::SHRINK ? at.src(2).src(0).ival() : width(at.src(1));
    std::string x = value(v, w);
    if (t == DType::Bool) x = line("zext {} {} to {}", type("i1", w), x, type("i8", w));
    const bool gated = u.nsrc() == 3, past = !gated && streams(at, w, t);
    ordinary_stores_ |= !past && buffer.op() == Op::PARAM;
    if (at.op() == Op::SHRINK || w == 0) {
      const std::string p = element(buffer, at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1)),
                        vt = type(m, w);
      if (!gated) {
        body_ += fmt::format("  store {} {}, ptr {}, align {}{}\n", vt, x, p,
                             past ? w * dtype_bytes(t) : dtype_bytes(t),
                             past ? ", !nontemporal !0" : "");
        return;
      }
      const int64_t n = w ? w : 1;
      const std::string mt = type(m, n),
                        name = fmt::format("llvm.masked.store.{}.p0",
                                           suffix(t == DType::Bool ? DType::I8 : t, n));
      std::string g = value(u.src(2), w);
      if (!w) {
        x = line("insertelement {} poison, {} {}, i64 0", mt, m, x);
        g = line("insertelement <1 x i1> poison, i1 {}, i64 0", g);
      }
      declare("void", name, fmt::format("{}, ptr, i32, <{} x i1>", mt, n));
      body_ += fmt::format("  call void @{}({} {}, ptr {}, i32 {}, <{} x i1> {})\n", name, mt, x, p,
                           dtype_bytes(t), n, g);
      return;
    }
    const std::string mt = type(m, w),
                      name = fmt::format("llvm.masked.scatter.{}.v{}p0",
                                         suffix(t == DType::Bool ? DType::I8 : t, w), w);
    const std::string p =
        line("getelementptr {}, ptr {}, <{} x i64> {}", m, pointer(buffer), w, value(at.src(1), w));
    declare("void", name, fmt::format("{}, <{} x ptr>, i32, <{} x i1>", mt, w, w));
    body_ += fmt::format("  call void @{}({} {}, <{} x ptr> {}, i32 {}, <{} x i1> {})\n", name, mt,
                         x, w, p, dtype_bytes(t), w,
                         gated ? value(u.src(2), w) : fmt::format("splat (i1 true)"));
  }

  std::string convert(UOp u) {
    const UOp s = u.src(0);
    const DType a = s.dtype(), b = u.dtype();
    const int64_t w = width(u);
    const std::string from = type(s), to = type(u), v = value(s, w);
    if (u.op() == Op::BITCAST) return line("bitcast {} {} to {}", from, v, to);
    if (b == DType::Bool)
      return is_float(a) ? line("fcmp une {} {}, {}", from, v, w ? "zeroinitializer" : "0.0")
                         : line("icmp ne {} {}, {}", from, v, w ? "zeroinitializer" : "0");
    if (is_float(a) && is_float(b)) {
      if (dtype_bytes(a) == dtype_bytes(b)) throw Unsupported{"casts between f16 and bf16"};
      return line("{} {} {} to {}", dtype_bytes(a) < dtype_bytes(b) ? "fpext" : "fptrunc", from, v,
                  to);
    }
    if (is_float(b))
      return line("{} {} {} to {}", is_unsigned(a) || a == DType::Bool ? "uitofp" : "sitofp", from,
                  v, to);
    if (is_float(a)) {
      const std::string name = fmt::format("llvm.fpto{}i.sat.{}.{}", is_unsigned(b) ? "u" : "s",
                                           suffix(b, w), suffix(a, w));
      declare(to, name, from);
      return line("call {} @{}({} {})", to, name, from, v);
    }
    if (a != DType::Bool && dtype_bytes(a) == dtype_bytes(b)) return v;
    if (a != DType::Bool && dtype_bytes(a) > dtype_bytes(b))
      return line("trunc {} {} to {}", from, v, to);
    return line("{} {} {} to {}", is_unsigned(a) || a == DType::Bool ? "zext" : "sext", from, v,
                to);
  }

  std::string alu_value(UOp u) {
    const int64_t w = width(u);
    const DType t = u.src(u.op() == Op::WHERE ? 1 : 0).dtype();
    const auto pick = [&](std::string_view f, std::string_view s, std::string_view n) {
      return is_float(t) ? f : is_unsigned(t) || t == DType::Bool ? n : s;
    };
    const std::string vt = type(scalar_type(t), w);
    if (u.op() == Op::WHERE)
      return line("select {} {}, {} {}, {} {}", type("i1", w), value(u.src(0), w), vt,
                  value(u.src(1), w), vt, value(u.src(2), w));
    if (u.op() == Op::NEG)
      return is_float(t)
                 ? line("fneg {} {}", vt, value(u.src(0), w))
                 : line("sub {} {}, {}", vt, w ? "zeroinitializer" : "0", value(u.src(0), w));
    for (const Instruction& i : instructions)
      if (i.op == u.op())
        if (const auto name = pick(i.f, i.s, i.u); !name.empty())
          return line("{} {} {}, {}", name, vt, value(u.src(0), w), value(u.src(1), w));
    for (const Intrinsic& i : intrinsics) {
      if (i.op != u.op()) continue;
      const auto base = pick(i.f, i.s, i.u);
      if (base.empty()) break;
      const std::string name = fmt::format("llvm.{}.{}", base, suffix(t, w));
      if (u.nsrc() == 1) {
        declare(vt, name, vt);
        return line("call {} @{}({} {})", vt, name, vt, value(u.src(0), w));
      }
      declare(vt, name, fmt::format("{}, {}", vt, vt));
      return line("call {} @{}({} {}, {} {})", vt, name, vt, value(u.src(0), w), vt,
                  value(u.src(1), w));
    }
    throw Unsupported{fmt::format("{} of {}", op_name(u.op()), dtype_name(t))};
  }

  std::string across(UOp u) {
    const UOp s = u.src(0);
    const DType t = u.dtype();
    const std::string vt = type(s), st(scalar_type(t));
    for (const Intrinsic& i : intrinsics) {
      if (i.op != u.reduce_op()) continue;
      const std::string name = fmt::format("llvm.vector.reduce.{}.{}",
                                           is_float(t)                          ? i.reduce_f
                                           : is_unsigned(t) || t == DType::Bool ? i.reduce_u
                                                                                : i.reduce_s,
                                           suffix(t, width(s)));
      if (is_float(t) && i.op != Op::MAX) {
        declare(st, name, fmt::format("{}, {}", st, vt));
        const UOp start = fconst(i.op == Op::ADD ? -0.0 : 1.0, t);
        return line("call reassoc {} @{}({} {}, {} {})", st, name, st, literal(start), vt,
                    value(s, width(s)));
      }
      declare(st, name, vt);
      return line("call {} @{}({} {})", st, name, vt, value(s, width(s)));
    }
    throw Unsupported{fmt::format("REDUCE {}", op_name(u.reduce_op()))};
  }

  // INDEX(vector, constant): a lane of a value.
  static bool is_lane(UOp u) {
    return u.op() == Op::INDEX && u.src(0).addrspace() == AddrSpace::None;
  }
  // A STACK of lanes of at most two vectors is one shuffle of these.
  bool shuffled(UOp u) {
    UOp a, b;
    std::string mask;
    for (UOp s : u.srcs()) {
      if (!is_lane(s)) return false;
      const UOp v = s.src(0);
      if (!a)
        a = v;
      else if (!(v == a) && !b)
        b = v;
      if ((!(v == a) && !(v == b)) || width(v) != width(a)) return false;
      mask += fmt::format("{}i32 {}", mask.empty() ? "" : ", ",
                          s.src(1).ival() + (v == a ? 0 : width(a)));
    }
    names_[u] = line("shufflevector {0} {1}, {0} {2}, <{3} x i32> <{4}>", type(a),
                     value(a, width(a)), b ? value(b, width(a)) : "poison", width(u), mask);
    return true;
  }

  void emit(UOp u) {
    switch (u.op()) {
      case Op::CONST:
      case Op::PARAM:
      case Op::INDEX:
      case Op::SHRINK:
      case Op::AFTER:
      case Op::GROUP:
      case Op::SINK:
        if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Alu)
          throw Unsupported{"run-time variables"};
        return;
      case Op::BUFFER:
        allocas_ += fmt::format("  %acc{} = alloca [{} x {}], align 64\n", u.param().slot,
                                u.numel(), memory_type(u.dtype()));
        return;
      case Op::STACK: {
        for (size_t i = 0; i < u.nsrc(); i++)
          if (!u.src(i).shape().empty()) return;  // a shape of shapes: never a value
        std::string v = "poison";
        if (u.dtype() == DType::WeakInt) return;  // a shape operand
        if (shuffled(u)) return;
        for (size_t i = 0; i < u.nsrc(); i++)
          v = line("insertelement {} {}, {} {}, i64 {}", type(u), v, scalar_type(u.dtype()),
                   value(u.src(i), 0), i);
        names_[u] = v;
        return;
      }
      case Op::SPECIAL:
        if (u.text() != "core_id") throw Unsupported{"grids"};
        names_[u] = "%core_id";
        return;
      case Op::RANGE: {
        const auto id = next_++;
        const std::string before = block_, t(scalar_type(u.dtype()));
        block_ = fmt::format("loop{}", id);
        body_ += fmt::format(
            "  br label %{0}\n{0}:\n  %i{1} = phi {2} [ 0, %{3} ], [ %n{1}, %latch{1} ]\n", block_,
            id, t, before);
        names_[u] = fmt::format("%i{}", id);
        loop_id_[u] = id;
        return;
      }
      case Op::END: {
        const UOp r = u.src(1);
        const auto id = loop_id_.at(r);
        const std::string t(scalar_type(r.dtype()));
        body_ += fmt::format(
            "  br label %latch{0}\nlatch{0}:\n  %n{0} = add nuw nsw {1} %i{0}, 1\n", id, t);
        const std::string more = line("icmp ult {} %n{}, {}", t, id, value(r.src(0), 0));
        body_ += fmt::format("  br i1 {0}, label %loop{1}, label %done{1}\ndone{1}:\n", more, id);
        block_ = fmt::format("done{}", id);
        return;
      }
      case Op::LOAD: names_[u] = load(u); return;
      case Op::STORE: store(u); return;
      case Op::CAST:
      case Op::BITCAST:
        names_[u] = convert(u);
        note_divisor(u);
        return;
      case Op::REDUCE: names_[u] = across(u); return;
      default:
        if (!ops::alu.has(u.op())) throw Unsupported{std::string(op_name(u.op()))};
        names_[u] = alu_value(u);
        note_divisor(u);
    }
  }

  const LinearKernel& kernel_;
  const bool streaming_;
  bool ordinary_stores_ = false;
  std::unordered_map<UOp, int64_t, UOpHash> divisors_;  // of index math
  OriginComments origins_;
  std::string body_, allocas_, block_ = "entry";
  std::set<std::string> declared_;
  std::unordered_map<UOp, std::string, UOpHash> names_;
  std::unordered_map<UOp, std::string, UOpHash> splats_;  // of scalars, in their last width
  std::unordered_map<UOp, int64_t, UOpHash> splat_width_;
  std::unordered_map<UOp, size_t, UOpHash> loop_id_;
  size_t next_ = 0;
};

}  // namespace

std::string render_llvm(const LinearKernel& kernel, const std::string& entry, std::string& error) {
  try {
    const bool streaming =
        std::ranges::find(kernel.opts, OptKind::STREAM, &Opt::kind) != kernel.opts.end();
    return Renderer(kernel, streaming).run(entry);
  } catch (const Unsupported& u) {
    error = fmt::format("LLVM renderer: no code for {}", u.what);
    return "";
  }
}

}  // namespace beamline
