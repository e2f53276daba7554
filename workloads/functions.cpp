// The table of functions: signature, and how each is built. Sorted by name.
#include <algorithm>

#include <fmt/format.h>

#include "workloads/builder.h"
#include "workloads/value_internal.h"

namespace beamline::workloads {
namespace {

using Unary = UOp (TensorOps::*)(UOp);
using Binary = UOp (TensorOps::*)(UOp, UOp);
using Reduction = UOp (TensorOps::*)(UOp, const TensorOps::Axes&, bool);

template <Unary F>
Value unary(Call& c) {
  return Value::of((c.ops.*F)(c.tensor("x")));
}
template <Binary F>
Value binary(Call& c) {
  const UOp x = c.operand("x"), y = c.operand("y");
  return Value::of((c.ops.*F)(x, y));
}
template <Reduction F>
Value reduction(Call& c) {
  const UOp x = c.tensor("x");
  return Value::of((c.ops.*F)(x, c.axes("axis", std::nullopt), c.flag("keepdims", false)));
}
template <bool Lower>
Value band(Call& c) {
  return Value::of(c.ops.band(c.tensor("x"), c.integer("k", 0), Lower));
}

Value gelu(Call& c) {
  const Value& v = c.value("approx");
  const bool none = v.is(Value::Kind::None) || (v.is(Value::Kind::Text) && v.text == "none");
  const bool tanh = v.is(Value::Kind::Text) && v.text == "tanh";
  if (!none && !tanh)
    c.fail(v.at, fmt::format("gelu: 'approx' is {}", describe(v)), "\"none\" or \"tanh\"");
  return Value::of(c.ops.gelu(c.tensor("x"), tanh));
}

Value slice(Call& c) {
  UOp x = c.tensor("x");
  const Ints starts = c.integers("starts"), ends = c.integers("ends");
  const Ints steps = c.given("steps") ? c.integers("steps") : Ints(starts.size(), 1);
  if (!x) return {};
  if (starts.size() != ends.size() || steps.size() != starts.size() ||
      starts.size() > x.shape().size()) {
    c.fail({},
           fmt::format("slice: {} starts, {} ends and {} steps for shape {}", starts.size(),
                       ends.size(), steps.size(), shape_text(x.shape())),
           "as many of each, at most one per axis");
    return {};
  }
  for (size_t i = 0; i < starts.size(); i++) {
    if (steps[i] == 0)
      return c.fail(c.value("steps").at, "slice: a step is 0", "a step other than 0"), Value{};
    x = take_span(c.ops, x, i, resolve_slice(starts[i], ends[i], steps[i], x.shape()[i]));
    if (!x) return {};
  }
  return Value::of(x);
}

Value pad(Call& c) {
  const Value& v = c.value("pads");
  Ints before, after;
  const auto is_integer = [](const Value& e) {
    return e.is(Value::Kind::Number) && e.number.kind == Number::Kind::Int;
  };
  bool good = v.is(Value::Kind::List);
  for (size_t i = 0; good && i < v.list.size(); i++) {
    const Value& pair = v.list[i];
    good = pair.is(Value::Kind::List) && pair.list.size() == 2 && is_integer(pair.list[0]) &&
           is_integer(pair.list[1]);
    if (good)
      before.push_back(pair.list[0].number.integer), after.push_back(pair.list[1].number.integer);
  }
  if (!good)
    c.fail(v.at, fmt::format("pad: 'pads' is {}", describe(v)),
           "[[before, after], ...], one pair per axis");
  const UOp x = c.tensor("x");
  return good ? Value::of(
                    c.ops.pad(x, before, after, c.given("value") ? c.operand("value") : iconst(0)))
              : Value{};
}

Value split(Call& c) {
  Value v;
  const UOp x = c.tensor("x");
  for (UOp part : c.ops.split(x, c.integer("n", 1), c.integer("axis", 0)))
    v.list.push_back(Value::of(part));
  v.kind = v.list.empty() ? Value::Kind::Poison : Value::Kind::List;
  return v;
}

template <UOp (TensorOps::*F)(UOp, int64_t, bool)>
Value positions(Call& c) {
  const UOp x = c.tensor("x");
  return Value::of((c.ops.*F)(x, c.integer("axis", 0), c.flag("keepdims", false)));
}
template <UOp (TensorOps::*F)(UOp, int64_t)>
Value scan(Call& c) {
  const UOp x = c.tensor("x");
  return Value::of((c.ops.*F)(x, c.integer("axis", 0)));
}
template <UOp (TensorOps::*F)(UOp, UOp, std::optional<UOp>, const TensorOps::Conv&),
          bool Transposed>
Value convolution(Call& c) {
  const UOp x = c.tensor("x"), w = c.tensor("w");
  const auto bias = c.optional_tensor("bias");
  TensorOps::Conv p;
  p.stride = c.pair("stride", p.stride), p.padding = c.pair("padding", p.padding);
  p.dilation = c.pair("dilation", p.dilation), p.groups = c.integer("groups", 1);
  if constexpr (Transposed) p.output_padding = c.pair("output_padding", p.output_padding);
  return c.mistake() ? Value{} : Value::of((c.ops.*F)(x, w, bias, p));
}
template <UOp (TensorOps::*F)(UOp, const TensorOps::Pool&)>
Value pool(Call& c) {
  const UOp x = c.tensor("x");
  TensorOps::Pool p;
  p.kernel = c.pair("kernel", p.kernel), p.stride = c.pair("stride", p.kernel);
  p.padding = c.pair("padding", p.padding), p.ceil = c.flag("ceil", false);
  p.count_include_pad = c.flag("count_include_pad", true);
  return c.mistake() ? Value{} : Value::of((c.ops.*F)(x, p));
}

Value arange(Call& c) {
  const bool one = !c.given("stop");  // arange(stop)
  if (one && !c.given("start"))
    c.fail({}, "arange: argument 'stop' is missing", "arange(stop), arange(start, stop, step)");
  const Number start = one ? Number::of(int64_t{0}) : c.number("start", Number::of(int64_t{0}));
  const Number stop = c.number(one ? "start" : "stop", start),
               step = c.number("step", Number::of(int64_t{1}));
  if (c.mistake()) return {};
  if (start.is_float() || stop.is_float() || step.is_float())
    return Value::of(c.ops.arange(start.value(), stop.value(), step.value()));
  return Value::of(c.ops.arange(start.integer, stop.integer, step.integer));
}

Value filled(Call& c, UOp scalar) { return Value::of(c.ops.full(c.integers("dims"), scalar)); }

Parameter need(const char* name) { return {name, true, false}; }
Parameter may(const char* name) { return {name, false, false}; }

using T = TensorOps;
using Parameters = std::vector<Parameter>;

const std::vector<Function>& table() {
  static const Parameters x = {need("x")}, xy = {need("x"), need("y")}, dims = {need("dims")};
  static const Parameters reduced = {need("x"), may("axis"), may("keepdims")};
  static const Parameters along = {need("x"), need("axis"), may("keepdims")};
  static const Parameters pooling = {need("x"),      need("kernel"), may("stride"),
                                     may("padding"), may("ceil"),    may("count_include_pad")};
  static const Parameters parts = {{"x", false, true}, may("axis")};
  // clang-format off
  static const std::vector<Function> functions = [] {
    std::vector<Function> f = {
    {"abs", x, unary<&T::abs>}, {"ceil", x, unary<&T::ceil>}, {"contiguous", x, unary<&T::contiguous>},
    {"cos", x, unary<&T::cos>}, {"erf", x, unary<&T::erf>}, {"exp", x, unary<&T::exp>}, {"exp2", x, unary<&T::exp2>},
    {"floor", x, unary<&T::floor>}, {"log", x, unary<&T::log>}, {"log2", x, unary<&T::log2>},
    {"reciprocal", x, unary<&T::reciprocal>}, {"relu", x, unary<&T::relu>}, {"round", x, unary<&T::round>},
    {"rsqrt", x, unary<&T::rsqrt>}, {"sigmoid", x, unary<&T::sigmoid>}, {"sign", x, unary<&T::sign>},
    {"silu", x, unary<&T::silu>}, {"sin", x, unary<&T::sin>}, {"sqrt", x, unary<&T::sqrt>},
    {"tanh", x, unary<&T::tanh>}, {"trunc", x, unary<&T::trunc>},
    {"gelu", {need("x"), may("approx")}, gelu},
    {"maximum", xy, binary<&T::maximum>}, {"minimum", xy, binary<&T::minimum>}, {"pow", xy, binary<&T::pow>},
    {"sum", reduced, reduction<&T::sum>}, {"prod", reduced, reduction<&T::prod>}, {"max", reduced, reduction<&T::max>},
    {"min", reduced, reduction<&T::min>}, {"mean", reduced, reduction<&T::mean>}, {"any", reduced, reduction<&T::any>},
    {"all", reduced, reduction<&T::all>},
    {"var", {need("x"), may("axis"), may("keepdims"), may("ddof")}, [](Call& c) {
       const UOp v = c.tensor("x");
       return Value::of(c.ops.var(v, c.axes("axis", std::nullopt), c.flag("keepdims", false), c.integer("ddof", 1))); }},
    {"matmul", {need("a"), need("b")}, [](Call& c) {
       const UOp a = c.tensor("a");
       return Value::of(c.ops.matmul(a, c.tensor("b"))); }},
    {"where", {need("c"), need("x"), need("y")}, [](Call& c) {
       const UOp cond = c.operand("c"), a = c.operand("x");
       return Value::of(c.ops.where(cond, a, c.operand("y"))); }},
    {"clamp", {need("x"), need("lo"), need("hi")}, [](Call& c) {
       const UOp v = c.tensor("x");
       const auto lo = c.given("lo") ? std::optional(c.operand("lo")) : std::nullopt;
       return Value::of(c.ops.clamp(v, lo, c.given("hi") ? std::optional(c.operand("hi")) : std::nullopt)); }},
    {"cast", {need("x"), need("dtype")}, [](Call& c) { return Value::of(c.ops.cast(c.tensor("x"), c.type("dtype"))); }},
    {"bitcast", {need("x"), need("dtype")}, [](Call& c) { return Value::of(c.ops.bitcast(c.tensor("x"), c.type("dtype"))); }},
    {"reshape", {need("x"), need("dims")}, [](Call& c) { return Value::of(c.ops.reshape(c.tensor("x"), c.integers("dims"))); }},
    {"expand", {need("x"), need("dims")}, [](Call& c) { return Value::of(c.ops.expand(c.tensor("x"), c.integers("dims"))); }},
    {"permute", {need("x"), need("axes")}, [](Call& c) { return Value::of(c.ops.permute(c.tensor("x"), c.integers("axes"))); }},
    {"transpose", {need("x"), may("i"), may("j")}, [](Call& c) {
       return Value::of(c.ops.transpose(c.tensor("x"), c.integer("i", -2), c.integer("j", -1))); }},
    {"squeeze", {need("x"), need("axis")}, [](Call& c) { return Value::of(c.ops.squeeze(c.tensor("x"), c.integers("axis"))); }},
    {"unsqueeze", {need("x"), need("axis")}, [](Call& c) { return Value::of(c.ops.unsqueeze(c.tensor("x"), c.integers("axis"))); }},
    {"flip", {need("x"), need("axis")}, [](Call& c) { return Value::of(c.ops.flip(c.tensor("x"), c.integers("axis"))); }},
    {"pad", {need("x"), need("pads"), may("value")}, pad},
    {"slice", {need("x"), need("starts"), need("ends"), may("steps")}, slice},
    {"concat", parts, [](Call& c) { return Value::of(c.ops.concat(c.rest(), c.integer("axis", 0))); }},
    {"stack", parts, [](Call& c) { return Value::of(c.ops.stack(c.rest(), c.integer("axis", 0))); }},
    {"split", {need("x"), need("n"), need("axis")}, split},
    {"tril", {need("x"), may("k")}, band<true>}, {"triu", {need("x"), may("k")}, band<false>},
    {"zeros", dims, [](Call& c) { return filled(c, fconst(0, DType::F32)); }},
    {"ones", dims, [](Call& c) { return filled(c, fconst(1, DType::F32)); }},
    {"full", {need("dims"), need("v"), need("dtype")}, [](Call& c) {
       const UOp v = c.operand("v");
       return filled(c, c.ops.cast(v, c.type("dtype"))); }},
    {"softmax", {need("x"), may("axis")}, [](Call& c) { return Value::of(c.ops.softmax(c.tensor("x"), c.axes("axis", -1))); }},
    {"log_softmax", {need("x"), may("axis")}, [](Call& c) { return Value::of(c.ops.log_softmax(c.tensor("x"), c.axes("axis", -1))); }},
    {"layer_norm", {need("x"), may("weight"), may("bias"), may("axis"), may("eps")}, [](Call& c) {
       const UOp v = c.tensor("x");
       const auto weight = c.optional_tensor("weight"), bias = c.optional_tensor("bias");
       return Value::of(c.ops.layer_norm(v, weight, bias, c.axes("axis", -1), c.real("eps", 1e-5))); }},
    {"rms_norm", {need("x"), may("weight"), may("axis"), may("eps")}, [](Call& c) {
       const UOp v = c.tensor("x");
       const auto weight = c.optional_tensor("weight");
       return Value::of(c.ops.rms_norm(v, weight, c.axes("axis", -1), c.real("eps", 1e-6))); }},
    {"batch_norm", {need("x"), need("mean"), need("var"), may("weight"), may("bias"), may("eps")}, [](Call& c) {
       const UOp v = c.tensor("x"), mean = c.tensor("mean"), var = c.tensor("var");
       const auto weight = c.optional_tensor("weight"), bias = c.optional_tensor("bias");
       return Value::of(c.ops.batch_norm(v, mean, var, weight, bias, c.real("eps", 1e-5))); }},
    {"attention", {need("q"), need("k"), need("v"), may("causal"), may("mask"), may("scale")}, [](Call& c) {
       const UOp q = c.tensor("q"), k = c.tensor("k"), v = c.tensor("v");
       const auto mask = c.optional_tensor("mask");
       const auto scale = c.given("scale") ? std::optional(c.real("scale", 1)) : std::nullopt;
       return Value::of(c.ops.attention(q, k, v, c.flag("causal", false), mask, scale)); }},
    {"conv2d", {need("x"), need("w"), may("bias"), may("stride"), may("padding"), may("dilation"), may("groups")},
     convolution<&T::conv2d, false>},
    {"conv_transpose2d", {need("x"), need("w"), may("bias"), may("stride"), may("padding"), may("output_padding"),
                          may("dilation"), may("groups")}, convolution<&T::conv_transpose2d, true>},
    {"max_pool2d", pooling, pool<&T::max_pool2d>}, {"avg_pool2d", pooling, pool<&T::avg_pool2d>},
    {"argmax", along, positions<&T::argmax>}, {"argmin", along, positions<&T::argmin>},
    {"cumsum", {need("x"), need("axis")}, scan<&T::cumsum>}, {"cumprod", {need("x"), need("axis")}, scan<&T::cumprod>},
    {"gather", {need("x"), need("index"), need("axis")}, [](Call& c) {
       const UOp v = c.tensor("x"), index = c.tensor("index");
       return Value::of(c.ops.gather(v, index, c.integer("axis", 0))); }},
    {"take", {need("x"), need("index"), may("axis")}, [](Call& c) {
       const UOp v = c.tensor("x"), index = c.tensor("index");
       return Value::of(c.ops.take(v, index, c.integer("axis", 0))); }},
    {"embedding", {need("weight"), need("index")}, [](Call& c) {
       const UOp weight = c.tensor("weight");
       return Value::of(c.ops.embedding(weight, c.tensor("index"))); }},
    {"one_hot", {need("index"), need("n")}, [](Call& c) { return Value::of(c.ops.one_hot(c.tensor("index"), c.integer("n", 0))); }},
    {"arange", {may("start"), may("stop"), may("step")}, arange},
    {"rand", {need("dims"), need("seed")}, [](Call& c) { return Value::of(c.ops.rand(c.integers("dims"), c.integer("seed", 0))); }},
    };
    std::ranges::sort(f, {}, &Function::name);
    return f;
  }();
  // clang-format on
  return functions;
}

}  // namespace

const Function* find_function(std::string_view name) {
  const auto it = std::ranges::find(table(), name, &Function::name);
  return it == table().end() ? nullptr : &*it;
}

std::vector<std::string> function_names() {
  std::vector<std::string> out;
  for (const Function& f : table()) out.push_back(f.name);
  return out;
}

}  // namespace beamline::workloads
