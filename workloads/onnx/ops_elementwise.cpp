// Operators that take tensors element by element, as patterns: {0}, {1} are operands, {alpha} is an
// attribute.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/dist.h"
#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

enum class Gives : uint8_t { Same, Bool };  // the operand's dtype, or bool

struct Pattern {
  const char* op;
  size_t operands;  // 0: any number, folded from the left
  const char* text;
  const char* defaults = "";  // of attributes: "alpha=0.01 beta=1"
  Gives gives = Gives::Same;
};
// clang-format off
const Pattern patterns[] = {
    {"Abs",             1, "abs({0})"},
    {"Add",             2, "{0} + {1}"},
    {"And",             2, "{0} & {1}", "", Gives::Bool},
    {"Ceil",            1, "ceil({0})"},
    {"Celu",            1, "maximum({0}, 0) + minimum(0, {alpha} * (exp({0} / {alpha}) - 1))", "alpha=1"},
    {"Cos",             1, "cos({0})"},
    {"Cosh",            1, "(exp({0}) + exp(-{0})) * 0.5"},
    {"Elu",             1, "where({0} < 0, {alpha} * (exp({0}) - 1), {0})", "alpha=1"},
    {"Equal",           2, "{0} == {1}", "", Gives::Bool},
    {"Erf",             1, "erf({0})"},
    {"Exp",             1, "exp({0})"},
    {"Floor",           1, "floor({0})"},
    {"Greater",         2, "{0} > {1}", "", Gives::Bool},
    {"GreaterOrEqual",  2, "{0} >= {1}", "", Gives::Bool},
    {"HardSigmoid",     1, "clamp({alpha} * {0} + {beta}, 0, 1)", "alpha=0.2 beta=0.5"},
    {"HardSwish",       1, "{0} * clamp({0} / 6 + 0.5, 0, 1)"},
    {"IsNaN",           1, "{0} != {0}", "", Gives::Bool},
    {"LeakyRelu",       1, "where({0} < 0, {alpha} * {0}, {0})", "alpha=0.01"},
    {"Less",            2, "{0} < {1}", "", Gives::Bool},
    {"LessOrEqual",     2, "{0} <= {1}", "", Gives::Bool},
    {"Log",             1, "log({0})"},
    {"Max",             0, "maximum({0}, {1})"},
    {"Min",             0, "minimum({0}, {1})"},
    {"Mul",             2, "{0} * {1}"},
    {"Neg",             1, "-{0}"},
    {"Not",             1, "~{0}", "", Gives::Bool},
    {"Or",              2, "{0} | {1}", "", Gives::Bool},
    {"PRelu",           2, "where({0} < 0, {1} * {0}, {0})"},
    {"Reciprocal",      1, "reciprocal({0})"},
    {"Relu",            1, "relu({0})"},
    {"Round",           1, "round({0})"},
    {"Selu",            1, "where({0} > 0, {gamma} * {0}, {gamma} * {alpha} * (exp({0}) - 1))",
                           "alpha=1.67326319217681884765625 gamma=1.05070102214813232421875"},
    {"Sigmoid",         1, "sigmoid({0})"},
    {"Sign",            1, "sign({0})"},
    {"Sin",             1, "sin({0})"},
    {"Sinh",            1, "(exp({0}) - exp(-{0})) * 0.5"},
    {"Softplus",        1, "maximum({0}, 0) + log(1 + exp(-abs({0})))"},
    {"Softsign",        1, "{0} / (1 + abs({0}))"},
    {"Sqrt",            1, "sqrt({0})"},
    {"Sub",             2, "{0} - {1}"},
    {"Sum",             0, "{0} + {1}"},
    {"Tan",             1, "sin({0}) / cos({0})"},
    {"Tanh",            1, "tanh({0})"},
    {"ThresholdedRelu", 1, "where({0} > {alpha}, {0}, 0)", "alpha=1"},
    {"Xor",             2, "{0} ^ {1}", "", Gives::Bool},
};
// clang-format on

// The pattern with {i} and {name} replaced.
std::string filled(NodeContext& n, const Pattern& p, const std::vector<std::string>& operands) {
  std::string out;
  for (std::string_view s = p.text; !s.empty();) {
    const size_t open = s.find('{');
    out += s.substr(0, open);
    if (open == s.npos) break;
    const size_t close = s.find('}');
    const std::string key(s.substr(open + 1, close - open - 1));
    s.remove_prefix(close + 1);
    if (key.size() == 1 && key[0] >= '0' && key[0] <= '9') {
      out += operands[static_cast<size_t>(key[0] - '0')];
      continue;
    }
    const std::string defaults = p.defaults;
    const double fallback = std::stod(defaults.substr(defaults.find(key + "=") + key.size() + 1));
    out += Element{Dim(0), n.number(key.c_str(), fallback), true}.text();
  }
  return out;
}

void by_pattern(NodeContext& n) {
  const Pattern& p = *std::ranges::find(patterns, n.node.op, &Pattern::op);
  std::vector<ValueRef> v;
  for (size_t i = 0; i < (p.operands ? p.operands : std::max<size_t>(n.input_count(), 1)); i++)
    v.push_back(n.input(i));
  if (!n.ok()) return;
  if (p.operands == 0 && v.size() == 1) return n.same(0, v[0]);
  Dims shape = v[0]->shape;
  for (size_t i = 1; i < v.size(); i++) {
    shape = n.broadcast(shape, v[i]->shape);
    if (v[i]->dtype != v[0]->dtype)
      return n.fail(
          fmt::format("operands of {} and {}", dtype_name(v[0]->dtype), dtype_name(v[i]->dtype)),
          "operands of one type");
  }
  const DType t = p.gives == Gives::Bool ? DType::Bool : v[0]->dtype;
  if (v.size() <= 2)
    if (auto known_result = fold(n.node.op, v, t))
      return n.know(0, t, shape, std::move(*known_result));
  // A literal stands beside a tensor of all dims; two literals would be no tensor.
  const bool literals = std::ranges::all_of(
      v, [](const ValueRef& x) { return x->elements && x->elements->size() == 1; });
  const auto operand = [&](const ValueRef& x, const ValueRef& beside) {
    return literals || v.size() == 1 ? n.text(x) : n.operand(x, beside->rank());
  };
  std::vector<std::string> texts{operand(v[0], v[std::min<size_t>(1, v.size() - 1)])};
  if (v.size() > 2) texts[0] = n.text(v[0]);
  std::string all;
  for (size_t i = 1; i < v.size(); i++) {
    if (!all.empty()) texts = {n.let(all)};
    texts.resize(1);
    texts.push_back(v.size() > 2 ? n.text(v[i]) : operand(v[i], v[0]));
    all = filled(n, p, texts);
  }
  if (v.size() == 1) all = filled(n, p, texts);
  n.emit(all, t, shape);
}

void mean(NodeContext& n) {
  const ValueRef first = n.input(0);
  Dims shape = first->shape;
  std::string sum = n.text(first);
  for (size_t i = 1; i < n.input_count(); i++) {
    const ValueRef v = n.input(i);
    shape = n.broadcast(shape, v->shape);
    sum += " + " + n.text(v);
  }
  n.emit(fmt::format("({}) * {}", sum, 1 / static_cast<double>(n.input_count())), first->dtype,
         shape);
}

// Integers: rounded towards zero. The quotient rounded down is one too small where signs differ
// and it is not exact.
void div(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1);
  if (!n.ok()) return;
  const Dims shape = n.broadcast(a->shape, b->shape);
  if (auto e = fold("Div", {a, b}, a->dtype)) return n.know(0, a->dtype, shape, std::move(*e));
  const bool b_literal = !(a->elements && a->elements->size() == 1);
  const std::string x = n.text(a), y = b_literal ? n.operand(b, a->rank()) : n.text(b);
  if (is_float(a->dtype)) return n.emit(fmt::format("{} / {}", x, y), a->dtype, shape);
  if (is_unsigned(a->dtype)) return n.emit(fmt::format("{} // {}", x, y), a->dtype, shape);
  n.emit(fmt::format("{0} // {1} + cast(({0} % {1} != 0) & (({0} < 0) ^ ({2} < 0)), {3})", x, y,
                     n.text(b), dtype_name(a->dtype)),
         a->dtype, shape);
}

void mod(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1);
  if (!n.ok()) return;
  const Dims shape = n.broadcast(a->shape, b->shape);
  const bool fmod = n.integer("fmod", 0) != 0;
  if (!fmod && is_float(a->dtype)) return n.fail("Mod of floats without fmod", "fmod = 1");
  if (auto e = fmod ? std::nullopt : fold("Mod", {a, b}, a->dtype))
    return n.know(0, a->dtype, shape, std::move(*e));
  const std::string x = n.text(a), y = n.text(b);
  // fmod: the sign of the dividend.
  n.emit(fmod ? fmt::format("where({0} < 0, -(abs({0}) % abs({1})), abs({0}) % abs({1}))", x, y)
              : fmt::format("{} % {}", x, y),
         a->dtype, shape);
}

void pow(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1);
  if (!n.ok()) return;
  const Dims shape = n.broadcast(a->shape, b->shape);
  if (is_float(a->dtype))
    if (auto e = fold("Pow", {a, b}, a->dtype)) return n.know(0, a->dtype, shape, std::move(*e));
  const std::string text = fmt::format("pow({}, {})", n.text(a), n.operand(b, a->rank()));
  n.emit(a->dtype == b->dtype ? text : fmt::format("cast({}, {})", text, dtype_name(a->dtype)),
         a->dtype, shape);
}

void where(NodeContext& n) {
  const ValueRef c = n.input(0), a = n.input(1), b = n.input(2);
  if (!n.ok()) return;
  const Dims shape = n.broadcast(n.broadcast(c->shape, a->shape), b->shape);
  if (auto e = fold("Where", {c, a, b}, a->dtype)) return n.know(0, a->dtype, shape, std::move(*e));
  const bool typed = !(b->elements && b->elements->size() == 1);
  n.emit(fmt::format("where({}, {}, {})", n.text(c), typed ? n.operand(a, c->rank()) : n.text(a),
                     n.operand(b, c->rank())),
         a->dtype, shape);
}

void clip(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  std::string lo = "none", hi = "none";
  if (n.opset() < 11) {
    if (n.attribute("min")) lo = Element{Dim(0), n.number("min", 0), true}.text();
    if (n.attribute("max")) hi = Element{Dim(0), n.number("max", 0), true}.text();
  } else {
    if (n.has(1)) lo = n.operand(n.input(1), x->rank());
    if (n.has(2)) hi = n.operand(n.input(2), x->rank());
  }
  if (lo == "none" && hi == "none") return n.same(0, x);
  n.emit(fmt::format("clamp({}, {}, {})", n.text(x), lo, hi), x->dtype, x->shape);
}

DType cast_type(NodeContext& n, int64_t to) {
  // The numbers of TensorProto.DataType in onnx.proto.
  static const DType types[] = {DType::Void, DType::F32, DType::U8,  DType::I8,   DType::U16,
                                DType::I16,  DType::I32, DType::I64, DType::Void, DType::Bool,
                                DType::F16,  DType::F64, DType::U32, DType::U64,  DType::Void,
                                DType::Void, DType::BF16};
  const DType t = to >= 0 && to < 17 ? types[to] : DType::Void;
  if (t == DType::Void) n.fail(fmt::format("a cast to type {}", to), "a type of bool or numbers");
  return t;
}

void cast_to(NodeContext& n, const ValueRef& x, DType t) {
  if (!n.ok()) return;
  if (x->dtype == t) return n.same(0, x);
  if (x->elements) {
    Elements out;
    bool good = true;
    for (const Element& e : *x->elements) {
      const auto v = e.number();
      const bool whole = v && std::abs(*v) < 0x1p53;
      if (is_float(t) && v)
        out.push_back({Dim(0), round_to(t, *v), true});
      else if (t == DType::Bool && whole)
        out.push_back({Dim(*v != 0 ? 1 : 0), 0, false});
      else if (!is_float(t) && t != DType::Bool && !e.is_real)
        out.push_back(e);
      else if (!is_float(t) && t != DType::Bool && whole)
        out.push_back({Dim(static_cast<int64_t>(*v)), 0, false});
      else
        good = false;
    }
    if (good) return n.know(0, t, x->shape, std::move(out));
  }
  n.emit(fmt::format("cast({}, {})", n.text(x), dtype_name(t)), t, x->shape);
}
void cast(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.attribute("to")) n.fail("attribute 'to' is missing");
  const DType t = cast_type(n, n.integer("to", 1));
  cast_to(n, x, t);
}
void cast_like(NodeContext& n) { cast_to(n, n.input(0), n.input(1)->dtype); }

void identity(NodeContext& n) { n.same(0, n.input(0)); }

// Nothing is dropped outside of training; the mask says so.
void dropout(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (n.opset() >= 12 && n.has(2)) {
    const ValueRef training = n.input(2);
    if (!training->elements || training->elements->size() != 1 ||
        !training->elements->front().whole.is(0))
      return n.fail("training mode", "a model for inference");
  }
  if (!n.ok()) return;
  n.same(0, x);
  if (n.wants(1))
    n.emit(1, fmt::format("full({}, true, bool)", list_text(x->shape)), DType::Bool, x->shape);
}

}  // namespace

const std::vector<Operator>& elementwise_operators() {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> t = {
        {"Cast", cast},       {"CastLike", cast_like}, {"Clip", clip}, {"Div", div},
        {"Dropout", dropout}, {"Identity", identity},  {"Mean", mean}, {"Mod", mod},
        {"Pow", pow},         {"Where", where},
    };
    for (const Pattern& p : patterns) t.push_back({p.op, by_pattern});
    return t;
  }();
  return table;
}

}  // namespace beamline::onnx
