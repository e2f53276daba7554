// The expressions random programs are made of: every function and operator of the language.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/programs/generator.h"

namespace beamline::fuzz {
namespace {

using G = Generator;
using fmt::format;

bool any(const Var&) { return true; }
bool real(const Var& v) { return is_float(v.dtype()); }
bool exact_real(const Var& v) { return is_float(v.dtype()) && v.exact; }
bool whole(const Var& v) { return is_int(v.dtype()); }
bool truth(const Var& v) { return v.dtype() == DType::Bool; }
bool exact_number(const Var& v) { return v.exact && v.dtype() != DType::Bool; }
bool numeric(const Var& v) { return v.dtype() != DType::Bool; }
bool bits(const Var& v) { return !is_float(v.dtype()); }
bool full(const Var& v) { return v.typed.size() > 0; }
bool full_real(const Var& v) { return real(v) && full(v); }
bool full_exact(const Var& v) { return exact_number(v) && full(v); }
bool single(const Var& v) { return v.dtype() == DType::F32; }

std::string list(const Ints& v) { return format("[{}]", fmt::join(v, ", ")); }
const char* keepdims(G& g) { return g.chance(30) ? ", keepdims=true" : ""; }
const char* real_type(G& g) {
  return g.one_of({"f16", "bf16", "f32", "f64", "f32", "fp8e4m3", "fp8e5m2"});
}
const char* whole_type(G& g) {
  return g.one_of({"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"});
}
const char* small_stop(G& g) { return g.one_of({"2", "3", "5", "7"}); }
DType real_dtype(G& g) {
  return g.one_of({DType::F32, DType::F32, DType::F16, DType::BF16, DType::F64});
}
std::string positive(const std::string& x) { return format("(abs({}) + 0.5)", x); }

// f of any float; of a float that is kept in a range; of an exact one.
#define SMOOTH(f)                                                  \
  {                                                                \
#f, [](G & g) { return format(#f "({})", g.pick(real).name); } \
  }
#define BOUNDED(f)                                                               \
  {                                                                              \
#f, [](G & g) { return format(#f "(clamp({}, -3, 3))", g.pick(real).name); } \
  }
#define STEPS(f)                                                         \
  {                                                                      \
#f, [](G & g) { return format(#f "({})", g.pick(exact_real).name); } \
  }
#define ABOVE(f)                                                             \
  {                                                                          \
#f, [](G & g) { return format(#f "({})", positive(g.pick(real).name)); } \
  }
#define BINARY(label, op, wish)                                                 \
  {                                                                             \
    label, [](G& g) {                                                           \
      const Var& x = g.pick(wish);                                              \
      return g.chance(50) ? format("{} " op " {}", x.name, g.partner(x, wish))  \
                          : format("{} " op " {}", g.partner(x, wish), x.name); \
    }                                                                           \
  }
#define REDUCE(f, wish) \
  {                     \
#f, [](G& g) { \
    const Var& x = g.pick(wish); \
    return format(#f "({}{}{})", x.name, g.axes(x), keepdims(g)); }        \
  }

std::string conv(G& g, bool transposed) {
  const int64_t groups = g.one_of<int64_t>({1, 1, 2}), c = groups * g.number(1, 2),
                o = groups * g.number(1, 2);
  const int64_t kh = g.number(1, 2), kw = g.number(1, 3);
  const DType t = real_dtype(g);
  const std::string x = g.fresh(t, {g.number(1, 2), c, g.number(2, 4), g.number(3, 5)});
  const std::string w =
      transposed ? g.fresh(t, {c, o / groups, kh, kw}) : g.fresh(t, {o, c / groups, kh, kw});
  const std::string bias = g.chance(40) ? ", " + g.fresh(t, {o}) : "";
  std::string s =
      format("{}({} * 0.5, {}{}, stride=[{}, {}], padding=[{}, {}], dilation={}, groups={}",
             transposed ? "conv_transpose2d" : "conv2d", x, w, bias, g.number(1, 2), g.number(1, 3),
             g.number(0, 1), g.number(0, 1), g.number(1, 2), groups);
  return s + (transposed && g.chance(40) ? ", output_padding=[0, 1])" : ")");
}
std::string pool(G& g, const char* f) {
  const Var& x = g.pick(full_real, DType::F32, 2);
  const int64_t h = std::min<int64_t>(g.number(1, 3), x.shape()[x.rank() - 2]),
                w = std::min<int64_t>(g.number(1, 3), x.shape().back());
  std::string s = format("{}({}, [{}, {}]", f, x.name, h, w);
  if (g.chance(50)) s += format(", stride=[{}, {}]", g.number(1, 2), g.number(1, 3));
  if (g.chance(40)) s += format(", padding=[{}, {}]", h / 2, w / 2);
  if (g.chance(40)) s += ", ceil=true";
  if (g.chance(40)) s += ", count_include_pad=false";
  return s + ")";
}
std::string matmul(G& g, const char* form) {
  const Var& a = g.pick(numeric, DType::F32, 1);
  Ints s{a.shape().back()};
  if (g.chance(80)) s.push_back(g.number(1, 5));
  if (s.size() == 2 && a.rank() > 2 && g.chance(40))
    s.insert(s.begin(), g.chance(50) ? 1 : a.shape()[a.rank() - 3]);
  const std::string x = a.name, b = g.fresh(g.chance(70) ? a.dtype() : DType::F32, s);
  return fmt::format(fmt::runtime(form), x, b);
}
std::string indices(G& g, const Ints& shape, int64_t n) {
  const std::string i = g.fresh(g.one_of({DType::I32, DType::I64, DType::U8, DType::I16}), shape);
  return g.chance(60) && n > 0 ? format("{} % {}", i, n) : i;
}
std::string subscript(G& g, int kind) {
  const Var& x = g.pick(any, DType::F32, 1);
  const std::string name = x.name;
  const auto n = [&](size_t d) { return x.shape()[d]; };
  const auto bound = [&](size_t d) {
    return g.chance(30) ? std::string() : format("{}", g.number(-n(d), n(d)));
  };
  switch (kind) {
    case 0: return n(0) == 0 ? "" : format("{}[{}]", name, g.number(-n(0), n(0) - 1));
    case 1:
      return format("{}[{}:{}:{}]", name, bound(0), bound(0), g.one_of<int64_t>({1, 2, 3, -1, -2}));
    case 2: return format("{}[..., {}:{}]", name, bound(x.rank() - 1), bound(x.rank() - 1));
    case 3: return format("{}[newaxis, ..., newaxis]", name);
    case 4: {
      const int64_t size = n(0);
      return format("{}[{}]", name, indices(g, g.some_shape(0, 2), size));
    }
    default: {
      if (x.rank() < 2) return "";
      const Ints joint = g.some_shape(1, 2);
      const int64_t first = n(0), last = n(x.rank() - 1);
      const std::string i = indices(g, joint, first);
      return format("{}[{}, ..., {}]", name, i, indices(g, joint, last));
    }
  }
}
std::string reshape(G& g) {
  const Var& x = g.pick(full);
  Ints dims;
  auto rest = static_cast<int64_t>(x.typed.size());
  while (rest > 1 && dims.size() < 3) {
    int64_t d = g.number(1, rest);
    while (rest % d != 0) d--;
    dims.push_back(d), rest /= d;
  }
  dims.push_back(g.chance(50) ? -1 : rest);
  return format("reshape({}, {})", x.name, list(dims));
}
std::string permute(G& g) {
  const Var& x = g.pick(any, DType::F32, 2);
  Ints axes(x.rank());
  for (size_t i = 0; i < axes.size(); i++) axes[i] = static_cast<int64_t>(i);
  for (size_t i = axes.size(); i-- > 1;)
    std::swap(axes[i], axes[static_cast<size_t>(g.number(0, static_cast<int64_t>(i)))]);
  return format("permute({}, {})", x.name, list(axes));
}
std::string expand(G& g) {
  const Var& x = g.pick(any);
  Ints shape = x.shape();
  for (int64_t& d : shape)
    if (d == 1) d = g.number(1, 3);
  if (g.chance(70)) shape.insert(shape.begin(), g.number(1, 3));
  return format("expand({}, {})", x.name, list(shape));
}
std::string pad(G& g) {
  const Var& x = g.pick(numeric, DType::F32, 1);
  std::vector<std::string> pairs;
  for (size_t i = 0; i < x.rank(); i++)
    pairs.push_back(format("[{}, {}]", g.number(0, 2), g.number(0, 2)));
  return format("pad({}, [{}]{})", x.name, fmt::join(pairs, ", "), g.chance(40) ? ", value=2" : "");
}
std::string slice(G& g) {
  const Var& x = g.pick(any, DType::F32, 1);
  Ints starts, ends, steps;
  for (size_t i = 0; i < x.rank(); i++) {
    const int64_t n = x.shape()[i];
    starts.push_back(g.number(-n, n)), ends.push_back(g.number(-n, n)),
        steps.push_back(g.one_of<int64_t>({1, 1, 2, -1, -3}));
  }
  return format("slice({}, {}, {}, {})", x.name, list(starts), list(ends), list(steps));
}
std::string attention(G& g) {
  const Var& q = g.pick(full_real, DType::F32, 2);
  const int64_t d = q.shape().back(), tk = g.number(1, 4), tq = q.shape()[q.rank() - 2];
  const std::string name = q.name;
  const DType t = q.dtype();
  const std::string k = g.fresh(t, {tk, d}), v = g.fresh(t, {tk, g.number(1, 4)});
  const bool causal = tk >= tq && g.chance(50);
  std::string mask = !causal && g.chance(50) ? ", mask=" + g.fresh(DType::F32, {tk}) : "";
  return format("attention(clamp({}, -2, 2), {}, {}{}{}{})", name, k, v,
                causal ? ", causal=true" : "", mask, g.chance(30) ? ", scale=0.5" : "");
}
std::string norm(G& g, bool layer) {
  const Var& x = g.pick(full_real, DType::F32, 1);
  const Ints last{x.shape().back()};
  const std::string name = x.name;
  const DType t = x.dtype();
  std::string s = format("{}(clamp({}, -9, 9)", layer ? "layer_norm" : "rms_norm", name);
  if (g.chance(50)) s += ", " + g.fresh(t, last);
  if (layer && g.chance(30)) s += ", bias=" + g.fresh(t, last);
  return s + ", eps=0.25)";
}
std::string batch_norm(G& g) {
  const Var& x = g.pick(real, DType::F32, 2);
  const Ints c{x.shape()[1]};
  const std::string name = x.name, mean = g.fresh(DType::F32, c), var = g.fresh(DType::F32, c, 1);
  std::string s = format("batch_norm({}, {}, {}", name, mean, var);
  if (g.chance(50)) s += ", " + g.fresh(DType::F32, c);
  if (g.chance(30)) s += ", bias=" + g.fresh(DType::F32, c);
  return s + ", eps=0.5)";
}
std::string gather(G& g) {
  const Var& x = g.pick(any, DType::F32, 1);
  const int64_t axis = g.number(0, static_cast<int64_t>(x.rank()) - 1),
                n = x.shape()[static_cast<size_t>(axis)];
  Ints shape = x.shape();
  for (int64_t& d : shape) d = d > 1 ? g.number(1, d) : d;
  shape[static_cast<size_t>(axis)] = g.number(1, 5);
  const std::string name = x.name;
  return format("gather({}, {}, {})", name, indices(g, shape, n), axis);
}
std::string take(G& g) {
  const Var& x = g.pick(any, DType::F32, 1);
  const int64_t
      axis = g.axis(x),
      n = x.shape()[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.rank()) : axis)];
  const std::string name = x.name;
  return format("take({}, {}, axis={})", name, indices(g, g.some_shape(0, 2), n), axis);
}
std::string bitcast(G& g) {
  if (g.chance(50)) {
    const Var& x = g.pick(whole);
    const char* same = dtype_bytes(x.dtype()) == 1   ? "u8"
                       : dtype_bytes(x.dtype()) == 2 ? "i16"
                       : dtype_bytes(x.dtype()) == 4 ? "u32"
                                                     : "i64";
    return format("bitcast({}, {})", x.name, g.chance(50) ? "i8" : same);
  }
  const Var& x = g.pick([](const Var& v) { return single(v) && v.exact; });
  return format("bitcast(where({} == 0, 1, {}), {}) % 7", x.name, x.name,
                g.one_of({"i32", "u32", "u8", "i16"}));
}
std::string parts(G& g, const char* f) {
  const Var& x = g.pick(any, DType::F32, 1);
  return format("{}({}, {}, {}, axis={})", f, x.name, x.name,
                g.chance(50) ? format("flip({}, 0)", x.name) : x.name, g.axis(x));
}

// clang-format off
const std::vector<Choice> all = {
    SMOOTH(abs), SMOOTH(cos), SMOOTH(sin), SMOOTH(tanh), SMOOTH(sigmoid), SMOOTH(silu), SMOOTH(erf), SMOOTH(relu), SMOOTH(softmax), SMOOTH(log_softmax),
    SMOOTH(contiguous), BOUNDED(exp), BOUNDED(exp2), ABOVE(log), ABOVE(log2), ABOVE(sqrt), ABOVE(rsqrt), ABOVE(reciprocal),
    STEPS(sign), STEPS(ceil), STEPS(floor), STEPS(round), STEPS(trunc), STEPS(log2), STEPS(sqrt),
    {"gelu", [](G& g) { return format("gelu({}{})", g.pick(real).name, g.chance(50) ? ", approx=\"tanh\"" : ""); }},
    BINARY("+", "+", numeric), BINARY("-", "-", numeric), BINARY("*", "*", numeric), BINARY("+ any", "+", any),
    BINARY("==", "==", exact_number), BINARY("!=", "!=", exact_number), BINARY("<", "<", exact_number), BINARY("<=", "<=", exact_number),
    BINARY(">", ">", exact_number), BINARY(">=", ">=", exact_number),
    {"/", [](G& g) { const Var& x = g.pick(numeric); return format("{} / {}", x.name, positive(g.partner(x, real))); }},
    {"//", [](G& g) { const Var& x = g.pick(exact_number); return format("{} // {}", x.name, g.chance(50) ? format("(abs({}) + 1)", g.partner(x, exact_number)) : small_stop(g)); }},
    {"%", [](G& g) { const Var& x = g.pick(exact_number); return format("{} % {}", x.name, g.chance(50) ? format("(abs({}) + 1)", g.partner(x, exact_number)) : small_stop(g)); }},
    {"// -", [](G& g) { const Var& x = g.pick(exact_number); return is_unsigned(x.dtype()) ? "" : format("{} // -{} + {} % -{}", x.name, small_stop(g), x.name, small_stop(g)); }},
    {"**", [](G& g) { const Var& x = g.pick(numeric); return format("{} ** {}", x.name, g.number(0, 3)); }},
    {"** tensor", [](G& g) { const Var& x = g.pick(real); return format("{} ** clamp({}, -2, 2)", positive(x.name), g.partner(x, real)); }},
    {"** whole", [](G& g) { const Var& x = g.pick(whole); return format("{} ** ({} % 4)", x.name, g.partner(x, whole)); }},
    {"pow", [](G& g) { const Var& x = g.pick(real); return format("pow({}, {})", positive(x.name), g.one_of({"0.5", "-0.5", "1.5", "-2"})); }},
    {"@", [](G& g) { return matmul(g, "{} @ {}"); }}, {"matmul", [](G& g) { return matmul(g, "matmul({}, {})"); }},
    BINARY("&", "&", bits), BINARY("|", "|", bits), BINARY("^", "^", bits),
    {"~", [](G& g) { return format("~{}", g.pick(bits, DType::Bool).name); }},
    {"neg", [](G& g) { return format("-{}", g.pick(numeric).name); }},
    {"maximum", [](G& g) { const Var& x = g.pick(any); return format("maximum({}, {})", x.name, g.partner(x, any)); }},
    {"minimum", [](G& g) { const Var& x = g.pick(any); return format("minimum({}, {})", x.name, g.partner(x, any)); }},
    {"clamp", [](G& g) { return format("clamp({}, {}, {})", g.pick(numeric).name, g.one_of({"0", "1", "none"}), g.one_of({"2", "none", "5"})); }},
    {"where", [](G& g) { const Var& x = g.pick(any); const std::string c = g.partner(x, truth, false); return c == x.name && !truth(x) ? format("where({} == 1, {}, 2)", g.pick(whole, DType::I32).name, x.name) : format("where({}, {}, {})", c, x.name, g.partner(x, any)); }},
    {"cast real", [](G& g) { return format("cast({}, {})", g.pick(any).name, real_type(g)); }},
    {"cast whole", [](G& g) { return format("cast({}, {})", g.pick(exact_number).name, g.chance(20) ? "bool" : whole_type(g)); }},
    {"bitcast", bitcast},
    REDUCE(sum, any), REDUCE(mean, numeric), REDUCE(max, any), REDUCE(min, any), REDUCE(any, exact_number), REDUCE(all, exact_number),
    {"prod", [](G& g) { const Var& x = g.pick(numeric); return format("prod(clamp({}, -2, 2){}{})", x.name, g.axes(x), keepdims(g)); }},
    {"var", [](G& g) { const Var& x = g.pick(real); return format("var({}{}, ddof={}{})", x.name, g.axes(x), g.number(0, 1), keepdims(g)); }},
    {"argmax", [](G& g) { const Var& x = g.pick(full_exact, DType::F32, 1); return format("argmax({}, {}{})", x.name, g.axis(x), keepdims(g)); }},
    {"argmin", [](G& g) { const Var& x = g.pick(full_exact, DType::F32, 1); return format("argmin({}, {}{})", x.name, g.axis(x), keepdims(g)); }},
    {"cumsum", [](G& g) { const Var& x = g.pick(any, DType::F32, 1); return format("cumsum({}, {})", x.name, g.axis(x)); }},
    {"cumprod", [](G& g) { const Var& x = g.pick(numeric, DType::F32, 1); return format("cumprod(clamp({}, -2, 2), {})", x.name, g.axis(x)); }},
    {"layer_norm", [](G& g) { return norm(g, true); }}, {"rms_norm", [](G& g) { return norm(g, false); }}, {"batch_norm", batch_norm}, {"attention", attention},
    {"conv2d", [](G& g) { return conv(g, false); }}, {"conv_transpose2d", [](G& g) { return conv(g, true); }},
    {"max_pool2d", [](G& g) { return pool(g, "max_pool2d"); }}, {"avg_pool2d", [](G& g) { return pool(g, "avg_pool2d"); }},
    {"reshape", reshape}, {"permute", permute}, {"expand", expand}, {"pad", pad}, {"slice", slice},
    {"transpose", [](G& g) { return format("transpose({})", g.pick(any, DType::F32, 2).name); }},
    {"squeeze", [](G& g) { const Var& x = g.pick([](const Var& v) { return std::ranges::find(v.shape(), 1) != v.shape().end(); }, DType::F32, 1);
       const auto at = std::ranges::find(x.shape(), 1) - x.shape().begin(); return format("squeeze({}, {})", x.name, at); }},
    {"unsqueeze", [](G& g) { const Var& x = g.pick(any); return format("unsqueeze({}, {})", x.name, g.number(0, static_cast<int64_t>(x.rank()))); }},
    {"flip", [](G& g) { const Var& x = g.pick(any, DType::F32, 1); return format("flip({}, {})", x.name, g.axis(x)); }},
    {"concat", [](G& g) { return parts(g, "concat"); }}, {"stack", [](G& g) { return parts(g, "stack"); }},
    {"split", [](G& g) { const Var& x = g.pick([](const Var& v) { return v.rank() > 0 && v.shape()[0] % 2 == 0; }, DType::F32, 1); return format("split({}, 2, 0)", x.name); }},
    {"gather", gather}, {"take", take},
    {"embedding", [](G& g) { const std::string w = g.fresh(real_dtype(g), {g.number(2, 6), g.number(1, 4)}); return format("embedding({}, {})", w, indices(g, g.some_shape(0, 2), 4)); }},
    {"one_hot", [](G& g) { return format("one_hot({}, {})", g.pick(whole, DType::I32).name, g.number(1, 4)); }},
    {"arange", [](G& g) { const Var& x = g.pick(numeric, DType::F32, 1); return format("{} + arange({})", x.name, x.shape().back()); }},
    {"arange step", [](G& g) { return g.chance(50) ? format("arange({}, {}, {})", g.number(-5, 2), g.number(3, 90), g.number(1, 3)) : format("arange({}, {}, 0.5)", g.number(-2, 0), g.number(1, 3)); }},
    {"full", [](G& g) { return format("full({}, {}, {})", list(g.some_shape(0, 3)), g.number(0, 3), g.chance(50) ? real_type(g) : whole_type(g)); }},
    {"zeros", [](G& g) { return format("zeros({}) + {}", list(g.some_shape(0, 1)), g.number(0, 9)); }},
    {"ones", [](G& g) { const Var& x = g.pick(numeric); return format("{} - ones({})", x.name, list(x.shape())); }},
    {"tril", [](G& g) { return format("tril({}, k={})", g.pick(any, DType::F32, 2).name, g.number(-2, 2)); }},
    {"triu", [](G& g) { return format("triu({}, k={})", g.pick(any, DType::F32, 2).name, g.number(-2, 2)); }},
    {"rand", [](G& g) { return format("rand({}, {})", list(g.some_shape(0, 2)), g.number(0, 99)); }},
    {"x[i]", [](G& g) { return subscript(g, 0); }}, {"x[a:b:s]", [](G& g) { return subscript(g, 1); }}, {"x[..., a:b]", [](G& g) { return subscript(g, 2); }},
    {"x[newaxis]", [](G& g) { return subscript(g, 3); }}, {"x[tensor]", [](G& g) { return subscript(g, 4); }}, {"x[tensors]", [](G& g) { return subscript(g, 5); }},
};
// clang-format on

}  // namespace

const std::vector<Choice>& choices() { return all; }

}  // namespace beamline::fuzz
