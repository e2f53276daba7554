#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/expression.h"
#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "(-inf)";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == s.npos) s += ".0";
  return v < 0 || (v == 0 && std::signbit(v)) ? "(" + s + ")" : s;
}

}  // namespace

std::string Element::text() const { return is_real ? real_text(real) : whole.text(); }
std::optional<double> Element::number() const {
  if (is_real) return real;
  if (const auto v = whole.value()) return static_cast<double>(*v);
  return std::nullopt;
}

std::string describe(const Node& n) {
  const std::string op = n.domain.empty() || n.domain == "ai.onnx" ? n.op : n.domain + "." + n.op;
  return n.name.empty() ? fmt::format("node {} ({})", n.index, op)
                        : fmt::format("node {} '{}' ({})", n.index, n.name, op);
}

std::string Program::fresh(const std::string& wanted) {
  constexpr size_t longest = 100;
  std::string s;
  for (unsigned char c : wanted.substr(0, longest)) {
    const bool plain = c < 128 && (std::isalnum(c) || c == '_');
    if (plain || (!s.empty() && s.back() != '_')) s += plain ? static_cast<char>(c) : '_';
  }
  while (!s.empty() && s.back() == '_') s.pop_back();
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) s = "v" + s;
  if (workloads::is_reserved(s)) s += "_";
  std::string unique = s;
  for (size_t i = 2; !names.insert(unique).second; i++) unique = fmt::format("{}_{}", s, i);
  return unique;
}

NodeContext::NodeContext(Program& p, const Node& n) : node(n), program_(p) {}

void NodeContext::fail(std::string message, std::string expected) {
  if (!mistake_) mistake_ = workloads::Diagnostic{{}, std::move(message), std::move(expected)};
}

const Attribute* NodeContext::attribute(const char* name) const {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? nullptr : &it->second;
}
int64_t NodeContext::integer(const char* name, int64_t fallback) {
  const Attribute* a = attribute(name);
  if (!a) return fallback;
  if (a->kind != Attribute::Kind::Int)
    fail(fmt::format("attribute '{}' is no integer", name), "an integer");
  return a->integer;
}
double NodeContext::number(const char* name, double fallback) {
  const Attribute* a = attribute(name);
  if (!a) return fallback;
  if (a->kind != Attribute::Kind::Float)
    fail(fmt::format("attribute '{}' is no float", name), "a float");
  return a->number;
}
std::string NodeContext::word(const char* name, const char* fallback) {
  const Attribute* a = attribute(name);
  if (!a) return fallback;
  if (a->kind != Attribute::Kind::Text)
    fail(fmt::format("attribute '{}' is no string", name), "a string");
  return a->text;
}
std::optional<std::vector<int64_t>> NodeContext::integers(const char* name) {
  const Attribute* a = attribute(name);
  if (!a) return std::nullopt;
  if (a->kind != Attribute::Kind::Ints)
    fail(fmt::format("attribute '{}' is no list of integers", name), "integers");
  return a->integers;
}

bool NodeContext::has(size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
bool NodeContext::wants(size_t output) const {
  return output < node.outputs.size() && !node.outputs[output].empty();
}

ValueRef NodeContext::input(size_t i) {
  static const auto nothing = [] { return std::make_shared<Value>(); };
  if (!has(i)) {
    fail(fmt::format("input {} is missing", i), fmt::format("at least {} inputs", i + 1));
    return nothing();
  }
  const auto it = program_.values.find(node.inputs[i]);
  if (it == program_.values.end()) {
    fail(fmt::format("input '{}' is made by nothing before this node", node.inputs[i]),
         "nodes in the order of their dependencies");
    return nothing();
  }
  const ValueRef& v = it->second;
  if (v->dtype == DType::Void) {
    fail(v->data ? fmt::format("initialiser '{}': {}", v->onnx_name, v->data->missing)
                 : fmt::format("input '{}' is of no supported type", v->onnx_name),
         "a tensor of bool, integers or floats");
    return nothing();
  }
  return v;
}

std::optional<Dims> NodeContext::dims(size_t i, const char* what) {
  const ValueRef v = input(i);
  if (!ok()) return std::nullopt;
  Dims out;
  if (v->elements && !is_float(v->dtype) && v->rank() <= 1) {
    for (const Element& e : *v->elements) out.push_back(e.whole);
    return out;
  }
  fail(fmt::format("{} ('{}') depend on data", what, v->onnx_name),
       "integers that follow from constants and shapes");
  return std::nullopt;
}

std::optional<std::vector<int64_t>> NodeContext::numbers(size_t i, const char* what) {
  const auto d = dims(i, what);
  if (!d) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& x : *d) out.push_back(constant(x, what));
  return out;
}

std::optional<std::vector<int64_t>> NodeContext::axes(const char* name, size_t i, int64_t since) {
  if (opset() < since) return integers(name);
  if (!has(i)) return std::nullopt;
  return numbers(i, name);
}

int64_t NodeContext::axis(int64_t a, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (a < -n || a >= n) {
    fail(fmt::format("axis {} of a tensor of {} dims", a, n),
         n == 0 ? "" : fmt::format("{}..{}", -n, n - 1));
    return 0;
  }
  return a < 0 ? a + n : a;
}

int64_t NodeContext::constant(const Dim& d, const char* what) {
  if (const auto v = d.value()) return *v;
  fail(fmt::format("{} are {}, which depends on a param", what, d.text()), "numbers");
  return 1;
}

std::string NodeContext::text(const ValueRef& v) {
  if (!v->text.empty()) return v->text;
  if (v->data && (!v->elements || v->elements->size() > 1)) {
    if (!v->data->missing.empty() && !program_.generated)
      fail(fmt::format("initialiser '{}': {}", v->onnx_name, v->data->missing));
    v->text = program_.fresh(v->onnx_name);
    v->input = static_cast<int>(program_.inputs.size());
    program_.inputs.push_back({v->text, v->onnx_name, v->dtype, v->shape, "", true});
    return v->text;
  }
  if (!v->elements) {
    fail(fmt::format("'{}' has no value", v->onnx_name));
    return "0";
  }
  const std::string type(dtype_name(v->dtype));
  const auto literal = [&](const Element& e) {
    if (v->dtype != DType::Bool) return e.text();
    return std::string(e.whole.is(0) ? "false" : "true");
  };
  if (v->elements->size() == 1)
    return v->text = let(fmt::format("full({}, {}, {})", list_text(v->shape),
                                     literal(v->elements->front()), type));
  if (v->elements->empty())
    return v->text = let(fmt::format("full({}, 0, {})", list_text(v->shape), type));
  std::string parts;
  for (const Element& e : *v->elements)
    parts += fmt::format("{}full([], {}, {})", parts.empty() ? "" : ", ", literal(e), type);
  std::string all = "stack(" + parts + ")";
  if (v->rank() != 1) all = fmt::format("reshape({}, {})", all, list_text(v->shape));
  return v->text = let(all);
}

std::string NodeContext::operand(const ValueRef& v, size_t rank) {
  if (v->elements && v->elements->size() == 1 && v->rank() <= rank && v->dtype != DType::Bool)
    return v->elements->front().text();
  return text(v);
}

std::string NodeContext::let(const std::string& expression) {
  const std::string& hint =
      !node.outputs.empty() && !node.outputs[0].empty() ? node.outputs[0] : node.op;
  const std::string name = program_.fresh(hint + "_part");
  program_.lines.push_back(name + " = " + expression);
  program_.line_nodes.push_back(describe(node));
  return name;
}

ValueRef NodeContext::result(size_t i, DType t, Dims shape) {
  auto v = std::make_shared<Value>();
  v->dtype = t, v->shape = std::move(shape);
  for (const Dim& d : v->shape) {
    if (!d.valid()) fail("a dim of the result leaves 64 bits");
    if (const auto n = d.value(); n && *n < 0)
      fail(fmt::format("the result has shape {}", list_text(v->shape)), "dims of at least 0");
  }
  if (!wants(i)) return v;
  v->onnx_name = node.outputs[i];
  if (program_.values.contains(v->onnx_name))
    fail(fmt::format("'{}' is made twice", v->onnx_name), "a name of its own for every value");
  program_.values[v->onnx_name] = v;
  return v;
}

void NodeContext::emit(size_t i, const std::string& expression, DType t, Dims shape) {
  const ValueRef v = result(i, t, std::move(shape));
  if (!ok() || v->onnx_name.empty()) return;
  v->text = program_.fresh(v->onnx_name);
  program_.lines.push_back(v->text + " = " + expression);
  program_.line_nodes.push_back(describe(node));
}

void NodeContext::know(size_t i, DType t, Dims shape, Elements elements) {
  for (const Element& e : elements)
    if (!e.is_real && !e.whole.valid()) fail("a number leaves 64 bits");
  result(i, t, std::move(shape))->elements = std::move(elements);
}

void NodeContext::same(size_t i, const ValueRef& v) {
  if (!wants(i)) return;
  if (program_.values.contains(node.outputs[i]))
    fail(fmt::format("'{}' is made twice", node.outputs[i]), "a name of its own for every value");
  program_.values[node.outputs[i]] = v;
}

Dims NodeContext::broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims out(rank, Dim(1));
  for (size_t i = 0; i < rank; i++) {
    const Dim x = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim y = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    // A param beside a number has to be that number, or 1: the builder sees which.
    out[i] = x.is(1) || x == y ? y : y.is(1) || x.value() ? x : y;
    if (x.value() && y.value() && !x.is(1) && !y.is(1) && x != y)
      fail(fmt::format("shapes {} and {} do not broadcast", list_text(a), list_text(b)));
    if (!x.value() && !y.value() && x != y)
      fail(fmt::format("dims {} and {} need not be equal", x.text(), y.text()),
           "one name for dims that are equal");
  }
  return out;
}

void NodeContext::bound_input(const ValueRef& v, const Dim& n) {
  if (v->input < 0 || n.is(0)) return;
  InputLine& line = program_.inputs[static_cast<size_t>(v->input)];
  if (!line.constant && line.dist.empty()) line.dist = "int 0.." + (n - Dim(1)).text();
}

}  // namespace beamline::onnx
