// Products, normalisations, reductions.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

void matmul(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1);
  if (!n.ok()) return;
  if (a->rank() == 0 || b->rank() == 0) return n.fail("a scalar is no matrix");
  const auto batch = [](const ValueRef& v) {
    return Dims(v->shape.begin(),
                v->shape.end() - std::min<std::ptrdiff_t>(2, std::ssize(v->shape)));
  };
  Dims shape = n.broadcast(batch(a), batch(b));
  if (a->rank() > 1) shape.push_back(a->shape[a->rank() - 2]);
  if (b->rank() > 1) shape.push_back(b->shape.back());
  n.emit(fmt::format("{} @ {}", n.text(a), n.text(b)), a->dtype, shape);
}

void gemm(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1);
  if (!n.ok()) return;
  if (a->rank() != 2 || b->rank() != 2)
    return n.fail(fmt::format("of shapes {} and {}", list_text(a->shape), list_text(b->shape)),
                  "matrices");
  const bool ta = n.integer("transA", 0), tb = n.integer("transB", 0);
  const auto side = [&](const ValueRef& v, bool turned) {
    return turned ? fmt::format("transpose({})", n.text(v)) : n.text(v);
  };
  const Dims shape{a->shape[ta ? 1 : 0], b->shape[tb ? 0 : 1]};
  const double alpha = n.number("alpha", 1), beta = n.number("beta", 1);
  std::string text = side(a, ta) + " @ " + side(b, tb);
  const auto scaled = [](double by, const std::string& what) {
    return by == 1 ? what : fmt::format("{} * ({})", Element{Dim(0), by, true}.text(), what);
  };
  text = scaled(alpha, text);
  if (n.has(2) && beta != 0) text += " + " + scaled(beta, n.operand(n.input(2), 2));
  n.emit(text, a->dtype, shape);
}

// Before opset 13 everything from the axis on is one row.
void softmax(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  const bool old = n.opset() < 13;
  const int64_t a = n.axis(n.integer("axis", old ? 1 : -1), x->rank());
  std::vector<int64_t> axes;
  for (int64_t i = a; i < (old ? static_cast<int64_t>(x->rank()) : a + 1); i++) axes.push_back(i);
  n.emit(fmt::format("{}({}, axis=[{}])", n.node.op == "Softmax" ? "softmax" : "log_softmax",
                     n.text(x), fmt::join(axes, ", ")),
         x->dtype, x->shape);
}

void batch_norm(NodeContext& n) {
  const ValueRef x = n.input(0), scale = n.input(1), bias = n.input(2), mean = n.input(3),
                 var = n.input(4);
  if (!n.ok()) return;
  if (n.integer("training_mode", 0) || n.integer("spatial", 1) == 0 || n.wants(1))
    return n.fail("batch statistics", "a model for inference");
  n.emit(fmt::format("batch_norm({}, {}, {}, {}, {}, eps={})", n.text(x), n.text(mean), n.text(var),
                     n.text(scale), n.text(bias),
                     Element{Dim(0), n.number("epsilon", 1e-5f), true}.text()),
         x->dtype, x->shape);
}

void instance_norm(NodeContext& n) {
  const ValueRef x = n.input(0), scale = n.input(1), bias = n.input(2);
  if (!n.ok()) return;
  if (x->rank() < 3) return n.fail("of a tensor without pixels", "[N, C, ...]");
  std::vector<size_t> axes;
  std::string column = "[" + x->shape[1].text();
  for (size_t i = 2; i < x->rank(); i++) axes.push_back(i), column += ", 1";
  column += "]";
  const std::string eps = Element{Dim(0), n.number("epsilon", 1e-5f), true}.text();
  n.emit(fmt::format("layer_norm({}, axis=[{}], eps={}) * reshape({}, {}) + reshape({}, {})",
                     n.text(x), fmt::join(axes, ", "), eps, n.text(scale), column, n.text(bias),
                     column),
         x->dtype, x->shape);
}

void layer_norm(NodeContext& n) {
  const ValueRef x = n.input(0), scale = n.input(1);
  if (!n.ok()) return;
  const int64_t a = n.axis(n.integer("axis", -1), x->rank());
  std::vector<int64_t> axes;
  Dims reduced = x->shape;
  for (int64_t i = a; i < static_cast<int64_t>(x->rank()); i++) {
    axes.push_back(i);
    reduced[static_cast<size_t>(i)] = Dim(1);
  }
  const std::string list = fmt::format("[{}]", fmt::join(axes, ", "));
  const std::string eps = Element{Dim(0), n.number("epsilon", 1e-5f), true}.text();
  const std::string in = n.text(x);
  n.emit(fmt::format("layer_norm({}, {}, {}, axis={}, eps={})", in, n.text(scale),
                     n.has(2) ? n.text(n.input(2)) : "none", list, eps),
         x->dtype, x->shape);
  if (n.wants(1))
    n.emit(1, fmt::format("mean({}, axis={}, keepdims=true)", in, list), x->dtype, reduced);
  if (n.wants(2))
    n.emit(2, fmt::format("rsqrt(var({}, axis={}, keepdims=true, ddof=0) + {})", in, list, eps),
           x->dtype, reduced);
}

struct Reduction {
  const char* op;
  const char* text;
  int64_t axes_are_input;  // from this opset on
};
// clang-format off
const Reduction reductions[] = {
    {"ReduceL1",        "sum(abs({0}), {1})",            18},
    {"ReduceL2",        "sqrt(sum({0} * {0}, {1}))",     18},
    {"ReduceLogSum",    "log(sum({0}, {1}))",            18},
    {"ReduceLogSumExp", "",                              18},
    {"ReduceMax",       "max({0}, {1})",                 18},
    {"ReduceMean",      "mean({0}, {1})",                18},
    {"ReduceMin",       "min({0}, {1})",                 18},
    {"ReduceProd",      "prod({0}, {1})",                18},
    {"ReduceSum",       "sum({0}, {1})",                 13},
    {"ReduceSumSquare", "sum({0} * {0}, {1})",           18},
};
// clang-format on

void reduce(NodeContext& n) {
  const Reduction& r = *std::ranges::find(reductions, n.node.op, &Reduction::op);
  const ValueRef x = n.input(0);
  const auto given = n.axes("axes", 1, r.axes_are_input);
  const bool keep = n.integer("keepdims", 1);
  if (!n.ok()) return;
  const bool none = !given || given->empty();
  if (none && n.integer("noop_with_empty_axes", 0)) return n.same(0, x);
  std::vector<bool> gone(x->rank(), none);
  if (!none)
    for (int64_t a : *given) {
      const auto i = static_cast<size_t>(n.axis(a, x->rank()));
      if (!n.ok()) return;
      gone[i] = true;
    }
  Dims shape;
  std::vector<size_t> axes;
  for (size_t i = 0; i < x->rank(); i++) {
    if (gone[i]) axes.push_back(i);
    if (!gone[i] || keep) shape.push_back(gone[i] ? Dim(1) : x->shape[i]);
  }
  if (x->elements && x->rank() == 1 && !axes.empty()) {
    const std::string op = n.node.op == "ReduceProd"  ? "Mul"
                           : n.node.op == "ReduceSum" ? "Add"
                           : n.node.op == "ReduceMax" ? "Max"
                           : n.node.op == "ReduceMin" ? "Min"
                                                      : "";
    std::optional<Elements> all;
    for (const Element& e : *x->elements) {
      auto one = std::make_shared<Value>();
      auto sum = std::make_shared<Value>();
      one->elements = Elements{e};
      if (all) sum->elements = all;
      all = all ? fold(op, {sum, one}, x->dtype) : one->elements;
      if (!all) break;
    }
    if (all && !op.empty()) return n.know(0, x->dtype, shape, std::move(*all));
  }
  const std::string in = n.text(x);
  const std::string how =
      fmt::format("axis=[{}], keepdims={}", fmt::join(axes, ", "), keep ? "true" : "false");
  std::string text;
  if (n.node.op == "ReduceLogSumExp") {  // the greatest is taken out, so that nothing overflows
    const std::string top =
        n.let(fmt::format("max({}, axis=[{}], keepdims=true)", in, fmt::join(axes, ", ")));
    text = fmt::format("log(sum(exp({} - {}), {})) + {}", in, top, how,
                       keep ? top : fmt::format("reshape({}, {})", top, list_text(shape)));
  } else {
    const std::string pattern = r.text;
    for (size_t i = 0; i < pattern.size(); i++) {
      const bool hole = pattern[i] == '{';
      text += !hole ? std::string(1, pattern[i]) : pattern[i + 1] == '0' ? in : how;
      if (hole) i += 2;
    }
  }
  // Sums of small integers are wider here, means of integers are floats.
  if (!is_float(x->dtype)) text = fmt::format("cast({}, {})", text, dtype_name(x->dtype));
  n.emit(text, x->dtype, shape);
}

void global_pool(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  Dims shape = x->shape;
  std::vector<size_t> axes;
  for (size_t i = 2; i < x->rank(); i++) axes.push_back(i), shape[i] = Dim(1);
  if (axes.empty()) return n.fail("of a tensor without pixels", "[N, C, ...]");
  n.emit(
      fmt::format("{}({}, axis=[{}], keepdims=true)", n.node.op == "GlobalMaxPool" ? "max" : "mean",
                  n.text(x), fmt::join(axes, ", ")),
      x->dtype, shape);
}

}  // namespace

const std::vector<Operator>& layer_operators() {
  static const std::vector<Operator> table = [] {
    std::vector<Operator> t = {
        {"BatchNormalization", batch_norm},
        {"Gemm", gemm},
        {"GlobalAveragePool", global_pool},
        {"GlobalMaxPool", global_pool},
        {"InstanceNormalization", instance_norm},
        {"LayerNormalization", layer_norm},
        {"LogSoftmax", softmax},
        {"MatMul", matmul},
        {"Softmax", softmax},
    };
    for (const Reduction& r : reductions) t.push_back({r.op, reduce});
    return t;
  }();
  return table;
}

}  // namespace beamline::onnx
