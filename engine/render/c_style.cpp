#include "engine/render/c_style.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "engine/render/c_body.h"
#include "engine/render/origin_comments.h"

namespace beamline {
namespace {

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

class CRenderer : CBody {
 public:
  CRenderer(const LinearKernel& k, const CDialect& d) : CBody(d), kernel_(k) {}

  std::string run(const std::string& entry) {
    std::string head, list;
    for (const LinearArg& a : kernel_.args) {
      const std::string_view constant = a.written ? "" : "const ";
      head += fmt::format(fmt::runtime(dialect_.argument), constant, memory_type(a.dtype), a.slot);
      list += fmt::format(fmt::runtime(dialect_.parameter), list.empty() ? "" : ", ", constant,
                          memory_type(a.dtype), a.slot);
    }
    for (UOp u : kernel_.list) {
      const size_t before = text_.size();
      emit(u);
      origins_.note(u, text_, before, indent_, "// ");
    }
    std::string text = fmt::format("// {}\n{}", kernel_.name, dialect_.prelude);
    if (std::ranges::any_of(kernel_.list, [](UOp u) { return u.dtype() == DType::F16; }))
      text += dialect_.half_prelude;
    text += declarations();
    for (const std::string& f : functions_) text += f;
    int64_t threads = 1;
    for (int64_t n : kernel_.grid.local) threads *= n;
    return text + fmt::format(fmt::runtime(dialect_.signature), entry, list, threads) + " {\n" +
           head + text_ + "}\n";
  }

 private:
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

  // A processor's products of neighbours, in plain C, a lane and a step at a time.
  void products_by_lane(UOp u, const TensorCore& core) {
    if (dialect_.core.empty()) throw Unsupported{fmt::format("tensor core {}", core.name())};
    const int64_t steps = core.shape->k, w = width(u);
    const std::string t(scalar_type(core.out));
    const auto number = [&](size_t operand, int64_t i) {
      const int64_t all = width(u.src(operand));
      const std::string v = lane(u.src(operand), all == steps ? i % steps : i);
      if (core.factor(static_cast<int>(operand)) != DType::BF16) return fmt::format("({}){}", t, v);
      const std::string bits = let("unsigned", "(unsigned){} << 16", v);
      const std::string name = fmt::format("v{}", next_++);
      put("{} {};", t, name);
      put("{}", fmt::format(fmt::runtime(dialect_.bitcast), name, bits, 4, t));
      return name;
    };
    const std::string d = fmt::format("v{}", next_++);
    put("{} {} = {};", type(u), d, value(u.src(2), w));
    for (int64_t i = 0; i < std::max<int64_t>(w, 1) * steps; i++) {
      const std::string x = number(0, i), y = number(1, i);
      put("{} += {} * {};", w ? element(d, i / steps) : d, x, y);
    }
    names_[u] = d;
  }

  // D = A B + C by all threads of a warp.
  void matrix_product(UOp u) {
    const TensorCore& core = *tensor_core(u.text());
    if (core.shape->by_lane()) {
      products_by_lane(u, core);
      return;
    }
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
      case Op::NOOP: prefetch(u.src(0), is_written(kernel_, memory_of(u.src(0)))); return;
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
  OriginComments origins_;
  std::set<std::string> functions_;  // declared before the entry
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
