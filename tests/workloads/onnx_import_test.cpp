// ONNX models to workloads: what operators give, whole layers, and what is refused.
#include "workloads/onnx/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/interpret/tensor.h"
#include "engine/ir/arena.h"
#include "engine/rangeify/rangeify.h"
#include "tests/workloads/onnx_models.h"
#include "workloads/builder.h"
#include "workloads/elements.h"
#include "workloads/input_data.h"
#include "workloads/onnx/dim.h"
#include "workloads/onnx/model.h"
#include "workloads/selection.h"

namespace beamline::onnx {
namespace {

using test::Damage;
using test::write_model;
using workloads::Instance;
using workloads::ParamOverride;
using workloads::WorkloadError;

std::string text_of(const std::string& path, const ImportOptions& options = {}) {
  auto r = import_model(path, options);
  if (const auto* errors = std::get_if<1>(&r)) {
    ADD_FAILURE() << to_string(errors->at(0));
    return "";
  }
  return std::get<std::string>(r);
}

ImportOptions like_data() {
  ImportOptions o;
  o.generated = true;
  return o;
}

Instance instance_of(const std::string& text, const std::vector<ParamOverride>& params = {}) {
  const workloads::LoadedFile f = workloads::parse_workload_file("/model.toml", text);
  std::vector<WorkloadError> errors = f.errors;
  std::vector<Instance> all;
  if (errors.empty()) all = workloads::expand(f.workloads.at(0), params, errors);
  for (const WorkloadError& e : errors) ADD_FAILURE() << to_string(e) << "\n" << text;
  return all.empty() ? Instance{} : all[0];
}

TensorValue value_of(const workloads::InputSpec& spec) {
  auto data = workloads::input_data(spec, 0);
  TensorValue v(spec.dtype, spec.shape);
  if (const auto* why = std::get_if<std::string>(&data)) {
    ADD_FAILURE() << *why;
    return v;
  }
  const auto& bytes = std::get<0>(data);
  for (size_t i = 0; i < v.size(); i++) {
    const double x = workloads::load(bytes, spec.dtype, i);
    if (is_float(spec.dtype))
      v.reals[i] = x;
    else
      v.wholes[i] = static_cast<int64_t>(x);
  }
  return v;
}

/// Values of the outputs; the free inputs get `given` in their order, or what their dist makes.
std::vector<TensorValue> evaluate(const Instance& in,
                                  const std::vector<std::vector<double>>& given = {}) {
  std::vector<TensorValue> values;
  size_t next = 0;
  for (const auto& spec : in.inputs) {
    if (spec.constant || next >= given.size()) {
      values.push_back(value_of(spec));
      continue;
    }
    TensorValue v(spec.dtype, spec.shape);
    const std::vector<double>& g = given[next++];
    EXPECT_EQ(g.size(), v.size()) << spec.name;
    for (size_t i = 0; i < std::min(g.size(), v.size()); i++) {
      if (is_float(spec.dtype))
        v.reals[i] = g[i];
      else
        v.wholes[i] = static_cast<int64_t>(g[i]);
    }
    values.push_back(std::move(v));
  }
  const auto built = workloads::build(in);
  if (const auto* errors = std::get_if<1>(&built)) {
    ADD_FAILURE() << to_string(errors->at(0));
    return {};
  }
  return evaluate_tensors(std::get<0>(built).sink, values, Rounding::Wide);
}

struct Row {
  const char* name;
  int opset;
  const char* graph;
  std::vector<std::vector<double>> inputs;
  std::vector<double> want;
  Ints shape;
};
// clang-format off
const Row rows[] = {
    {"add", 13, "g (float[2] x, float[2] y) => (float[2] z) { z = Add(x, y) }", {{1, 2}, {10, 20}}, {11, 22}, {2}},
    {"div of integers", 14, "g (int32[4] x, int32[4] y) => (int32[4] z) { z = Div(x, y) }", {{7, -7, 7, -7}, {2, 2, -2, -2}}, {3, -3, -3, 3}, {4}},
    {"fmod", 13, "g (float[4] x, float[4] y) => (float[4] z) { z = Mod <fmod = 1> (x, y) }", {{7, -7, 7.5, -7}, {2, 2, -2, -2}}, {1, -1, 1.5, -1}, {4}},
    {"mod", 13, "g (int64[3] x, int64[3] y) => (int64[3] z) { z = Mod(x, y) }", {{-4, 7, 5}, {2, -3, 8}}, {0, -2, 5}, {3}},
    {"pow", 15, "g (float[2] x, int64[2] y) => (float[2] z) { z = Pow(x, y) }", {{2, 3}, {3, 2}}, {8, 9}, {2}},
    {"leaky relu", 16, "g (float[2] x) => (float[2] z) { z = LeakyRelu <alpha = 0.5> (x) }", {{-2, 3}}, {-1, 3}, {2}},
    {"hard sigmoid", 16, "g (float[3] x) => (float[3] z) { z = HardSigmoid <alpha = 0.5, beta = 0.25> (x) }", {{-2, 0.5, 4}}, {0, 0.5, 1}, {3}},
    {"prelu", 16, "g (float[2, 2] x, float[2] s) => (float[2, 2] z) { z = PRelu(x, s) }", {{-1, -1, 2, -3}, {10, 20}}, {-10, -20, 2, -60}, {2, 2}},
    {"clip 6", 10, "g (float[3] x) => (float[3] z) { z = Clip <min = -1.0, max = 1.0> (x) }", {{-3, 0.5, 3}}, {-1, 0.5, 1}, {3}},
    {"clip 11", 13, "g (float[3] x, float h) => (float[3] z) { z = Clip(x, , h) }", {{-3, 0.5, 3}, {1}}, {-3, 0.5, 1}, {3}},
    {"min of three", 13, "g (float[2] x, float[2] y, float[2] w) => (float[2] z) { z = Min(x, y, w) }", {{1, 9}, {2, 8}, {3, 7}}, {1, 7}, {2}},
    {"mean of three", 13, "g (float[2] x, float[2] y, float[2] w) => (float[2] z) { z = Mean(x, y, w) }", {{1, 9}, {2, 9}, {3, 3}}, {2, 7}, {2}},
    {"cast", 13, "g (float[3] x) => (int32[3] z) { z = Cast <to = 6> (x) }", {{1.9, -1.9, 3}}, {1, -1, 3}, {3}},
    {"where", 16, "g (bool[3] c, float[3] x) => (float[3] z) { k = Constant <value = float {-5.0}> () z = Where(c, x, k) }", {{1, 0, 1}, {1, 2, 3}}, {1, -5, 3}, {3}},
    {"dropout", 13, "g (float[2] x) => (float[2] z) { y, mask = Dropout(x) z = Relu(y) }", {{-1, 2}}, {0, 2}, {2}},

    {"reshape copies and infers", 14, "g (float[2, 3, 2] x) => (float[2, 6] z) { s = Constant <value_ints = [0, -1]> () z = Reshape(x, s) }", {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 6}},
    {"transpose", 13, "g (float[2, 3] x) => (float[3, 2] z) { z = Transpose(x) }", {{0, 1, 2, 3, 4, 5}}, {0, 3, 1, 4, 2, 5}, {3, 2}},
    {"flatten", 13, "g (float[2, 1, 3] x) => (float[2, 3] z) { z = Flatten <axis = -1> (x) }", {{0, 1, 2, 3, 4, 5}}, {0, 1, 2, 3, 4, 5}, {2, 3}},
    {"squeeze 11", 11, "g (float[1, 2, 1] x) => (float[2, 1] z) { z = Squeeze <axes = [0]> (x) }", {{1, 2}}, {1, 2}, {2, 1}},
    {"squeeze all", 13, "g (float[1, 2, 1] x) => (float[2] z) { z = Squeeze(x) }", {{1, 2}}, {1, 2}, {2}},
    {"unsqueeze", 13, "g (float[2] x) => (float[1, 2, 1] z) { a = Constant <value_ints = [0, -1]> () z = Unsqueeze(x, a) }", {{1, 2}}, {1, 2}, {1, 2, 1}},
    {"expand", 13, "g (float[2, 1] x) => (float[2, 3] z) { s = Constant <value_ints = [2, 3]> () z = Expand(x, s) }", {{1, 2}}, {1, 1, 1, 2, 2, 2}, {2, 3}},
    {"tile", 13, "g (float[1, 2] x) => (float[2, 4] z) { s = Constant <value_ints = [2, 2]> () z = Tile(x, s) }", {{1, 2}}, {1, 2, 1, 2, 1, 2, 1, 2}, {2, 4}},
    {"concat", 13, "g (float[1, 2] x, float[1, 1] y) => (float[1, 3] z) { z = Concat <axis = -1> (x, y) }", {{1, 2}, {3}}, {1, 2, 3}, {1, 3}},
    {"split equal", 11, "g (float[4] x) => (float[2] b) { a, b = Split <axis = 0> (x) }", {{1, 2, 3, 4}}, {3, 4}, {2}},
    {"split sizes", 13, "g (float[4] x) => (float[3] b) { s = Constant <value_ints = [1, 3]> () a, b = Split <axis = 0> (x, s) }", {{1, 2, 3, 4}}, {2, 3, 4}, {3}},
    {"slice 1", 9, "g (float[2, 4] x) => (float[2, 2] z) { z = Slice <axes = [1], starts = [1], ends = [-1]> (x) }", {{0, 1, 2, 3, 4, 5, 6, 7}}, {1, 2, 5, 6}, {2, 2}},
    {"slice backwards", 13, "g (float[4] x) => (float[2] z) { b = Constant <value_ints = [-1]> () e = Constant <value_ints = [-9223372036854775807]> () a = Constant <value_ints = [0]> () s = Constant <value_ints = [-2]> () z = Slice(x, b, e, a, s) }", {{0, 1, 2, 3}}, {3, 1}, {2}},
    {"gather", 13, "g (float[3, 2] x, int64[2] i) => (float[2, 2] z) { z = Gather(x, i) }", {{0, 1, 2, 3, 4, 5}, {2, -3}}, {4, 5, 0, 1}, {2, 2}},
    {"gather one", 13, "g (float[3, 2] x) => (float[3] z) { i = Constant <value_int = -1> () z = Gather <axis = 1> (x, i) }", {{0, 1, 2, 3, 4, 5}}, {1, 3, 5}, {3}},
    {"gather elements", 13, "g (float[2, 2] x, int64[2, 1] i) => (float[2, 1] z) { z = GatherElements <axis = 1> (x, i) }", {{1, 2, 3, 4}, {1, -2}}, {2, 3}, {2, 1}},
    {"pad and cut", 13, "g (float[3] x) => (float[4] z) { p = Constant <value_ints = [-1, 2]> () z = Pad(x, p) }", {{1, 2, 3}}, {2, 3, 0, 0}, {4}},
    {"trilu", 14, "g (float[2, 2] x) => (float[2, 2] z) { z = Trilu <upper = 0> (x) }", {{1, 2, 3, 4}}, {1, 0, 3, 4}, {2, 2}},
    {"cumsum", 14, "g (float[3] x) => (float[3] z) { a = Constant <value_int = 0> () z = CumSum <exclusive = 1, reverse = 1> (x, a) }", {{1, 2, 4}}, {6, 4, 0}, {3}},
    {"argmax", 13, "g (float[2, 3] x) => (int64[2] z) { z = ArgMax <axis = 1, keepdims = 0> (x) }", {{1, 5, 5, 9, 2, 3}}, {1, 0}, {2}},
    {"one hot", 11, "g (int64[2] i, float[2] v) => (float[2, 3] z) { d = Constant <value_int = 3> () z = OneHot(i, d, v) }", {{-1, 0}, {5, 7}}, {5, 5, 7, 7, 5, 5}, {2, 3}},
    {"constant of shape", 9, "g (float[2] x) => (float[2] z) { s = Shape(x) c = ConstantOfShape <value = float[1] {3.0}> (s) z = Mul(x, c) }", {{1, 2}}, {3, 6}, {2}},
    {"range", 13, "g (int64[3] x) => (int64[3] z) { a = Constant <value_int = 7> () b = Constant <value_int = 1> () s = Constant <value_int = -2> () r = Range(a, b, s) z = Add(x, r) }", {{0, 0, 100}}, {7, 5, 103}, {3}},
    {"depth to space", 13, "g (float[1, 4, 1, 1] x) => (float[1, 1, 2, 2] z) { z = DepthToSpace <blocksize = 2> (x) }", {{1, 2, 3, 4}}, {1, 2, 3, 4}, {1, 1, 2, 2}},

    {"matmul", 13, "g (float[2, 2] x, float[2] y) => (float[2] z) { z = MatMul(x, y) }", {{1, 2, 3, 4}, {1, 10}}, {21, 43}, {2}},
    {"gemm", 13, "g (float[2, 2] x, float[2, 2] y, float[2] c) => (float[2, 2] z) { z = Gemm <transB = 1, alpha = 2.0, beta = 0.5> (x, y, c) }", {{1, 2, 3, 4}, {1, 0, 1, 1}, {2, 4}}, {3, 8, 7, 16}, {2, 2}},
    {"softmax 11", 11, "g (float[1, 2, 2] x) => (float[1, 2, 2] z) { z = Softmax(x) }", {{0, 0, 0, 0}}, {0.25, 0.25, 0.25, 0.25}, {1, 2, 2}},
    {"softmax 13", 13, "g (float[1, 2, 2] x) => (float[1, 2, 2] z) { z = Softmax(x) }", {{0, 0, 0, 0}}, {0.5, 0.5, 0.5, 0.5}, {1, 2, 2}},
    {"batch norm", 15, "g (float[1, 2, 1] x, float[2] s, float[2] b, float[2] m, float[2] v) => (float[1, 2, 1] z) { z = BatchNormalization <epsilon = 0.0> (x, s, b, m, v) }", {{5, 9}, {2, 1}, {1, 0}, {1, 3}, {4, 9}}, {5, 2}, {1, 2, 1}},
    {"layer norm", 17, "g (float[1, 2] x, float[2] s, float[2] b) => (float[1, 2] z) { z = LayerNormalization <epsilon = 0.0> (x, s, b) }", {{1, 3}, {2, 3}, {10, 20}}, {8, 23}, {1, 2}},
    {"layer norm's mean", 17, "g (float[1, 2] x, float[2] s) => (float[1, 1] m) { z, m, d = LayerNormalization(x, s) }", {{1, 3}, {2, 3}}, {2}, {1, 1}},
    {"instance norm", 6 + 1, "g (float[1, 1, 2] x, float[1] s, float[1] b) => (float[1, 1, 2] z) { z = InstanceNormalization <epsilon = 0.0> (x, s, b) }", {{1, 3}, {2}, {5}}, {3, 7}, {1, 1, 2}},
    {"reduce mean", 13, "g (float[2, 2] x) => (float[2] z) { z = ReduceMean <axes = [-1], keepdims = 0> (x) }", {{1, 3, 5, 7}}, {2, 6}, {2}},
    {"reduce sum 13", 13, "g (float[2, 2] x) => (float[1, 2] z) { a = Constant <value_ints = [0]> () z = ReduceSum(x, a) }", {{1, 3, 5, 7}}, {6, 10}, {1, 2}},
    {"reduce all", 13, "g (int32[2, 2] x) => (int32 z) { z = ReduceMax <keepdims = 0> (x) }", {{1, 3, 7, 5}}, {7}, {}},
    {"reduce l2", 13, "g (float[2] x) => (float[1] z) { z = ReduceL2(x) }", {{3, 4}}, {5}, {1}},
    {"log sum exp", 13, "g (float[2] x) => (float z) { z = ReduceLogSumExp <keepdims = 0> (x) }", {{1000, 1000}}, {1000.6931471805599}, {}},
    {"global average", 1 + 6, "g (float[1, 1, 2, 2] x) => (float[1, 1, 1, 1] z) { z = GlobalAveragePool(x) }", {{1, 2, 3, 6}}, {3}, {1, 1, 1, 1}},

    {"conv", 11, "g (float[1, 1, 2, 2] x, float[1, 1, 2, 2] k, float[1] b) => (float[1, 1, 2, 2] z) { z = Conv <pads = [0, 0, 1, 1]> (x, k, b) }", {{1, 2, 3, 4}, {1, 10, 100, 1000}, {0.5}}, {4321.5, 402.5, 43.5, 4.5}, {1, 1, 2, 2}},
    {"conv of a row", 11, "g (float[1, 1, 3] x, float[1, 1, 2] k) => (float[1, 1, 2] z) { z = Conv <strides = [2], pads = [1, 0]> (x, k) }", {{1, 2, 3}, {10, 1}}, {1, 23}, {1, 1, 2}},
    {"conv same", 11, "g (float[1, 1, 1, 3] x, float[1, 1, 1, 2] k) => (float[1, 1, 1, 3] z) { z = Conv <auto_pad = \"SAME_UPPER\"> (x, k) }", {{1, 2, 3}, {10, 1}}, {12, 23, 30}, {1, 1, 1, 3}},
    {"conv transposed", 11, "g (float[1, 1, 1, 2] x, float[1, 1, 1, 2] k) => (float[1, 1, 1, 3] z) { z = ConvTranspose <strides = [1, 2], pads = [0, 1, 0, 0]> (x, k) }", {{1, 2}, {10, 1}}, {1, 20, 2}, {1, 1, 1, 3}},
    {"max pool", 12, "g (float[1, 1, 1, 3] x) => (float[1, 1, 1, 2] z) { z = MaxPool <kernel_shape = [1, 2], strides = [1, 2], pads = [0, 0, 0, 1]> (x) }", {{-1, -2, -3}}, {-1, -3}, {1, 1, 1, 2}},
    {"max pool, rounded up", 12, "g (float[1, 1, 3] x) => (float[1, 1, 2] z) { z = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x) }", {{-1, -2, -3}}, {-1, -3}, {1, 1, 2}},
    {"average pool", 11, "g (float[1, 1, 3] x) => (float[1, 1, 2] z) { z = AveragePool <kernel_shape = [2], strides = [2], pads = [0, 1]> (x) }", {{1, 2, 4}}, {1.5, 4}, {1, 1, 2}},
    {"average pool counts pads", 11, "g (float[1, 1, 3] x) => (float[1, 1, 2] z) { z = AveragePool <kernel_shape = [2], strides = [2], pads = [0, 1], count_include_pad = 1> (x) }", {{1, 2, 4}}, {1.5, 2}, {1, 1, 2}},
};
// clang-format on

TEST(Onnx, OperatorsGiveWhatTheyShould) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Arena arena;
    const Arena::Scope scope(arena);
    const std::string text = text_of(write_model("row", row.graph, row.opset));
    if (text.empty()) continue;
    const auto got = evaluate(instance_of(text), row.inputs);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].shape, row.shape) << text;
    ASSERT_EQ(got[0].size(), row.want.size()) << text;
    for (size_t i = 0; i < row.want.size(); i++)
      EXPECT_NEAR(got[0].number(i), row.want[i], 1e-6 * std::max(1.0, std::fabs(row.want[i])))
          << text << i;
  }
}

// Every operator of the tables is either in a row above or in a model below.
TEST(Onnx, PatternsOfOneOperand) {
  struct Unary {
    const char* op;
    double x, want;
  };
  const Unary all[] = {{"Abs", -2, 2},
                       {"Ceil", 1.2, 2},
                       {"Celu", -1, std::exp(-1) - 1},
                       {"Cos", 1, std::cos(1)},
                       {"Cosh", 1, std::cosh(1)},
                       {"Elu", -1, std::exp(-1) - 1},
                       {"Erf", 0.5, std::erf(0.5)},
                       {"Exp", 1, std::exp(1)},
                       {"Floor", -1.2, -2},
                       {"HardSwish", 1, 2.0 / 3},
                       {"Identity", 3, 3},
                       {"Log", 2, std::log(2)},
                       {"Neg", 2, -2},
                       {"Reciprocal", 4, 0.25},
                       {"Relu", -1, 0},
                       {"Round", 2.5, 2},
                       {"Selu", -1, 1.0507010221481323 * 1.6732631921768188 * (std::exp(-1) - 1)},
                       {"Sigmoid", 0, 0.5},
                       {"Sign", -3, -1},
                       {"Sin", 1, std::sin(1)},
                       {"Sinh", 1, std::sinh(1)},
                       {"Softplus", 1, std::log1p(std::exp(1))},
                       {"Softsign", 1, 0.5},
                       {"Sqrt", 9, 3},
                       {"Tan", 1, std::tan(1)},
                       {"Tanh", 1, std::tanh(1)},
                       {"ThresholdedRelu", 0.5, 0}};
  for (const Unary& u : all) {
    SCOPED_TRACE(u.op);
    Arena arena;
    const Arena::Scope scope(arena);
    const std::string text = text_of(write_model(
        "unary", std::string("g (float[1] x) => (float[1] z) { z = ") + u.op + "(x) }", 14));
    if (text.empty()) continue;
    EXPECT_NEAR(evaluate(instance_of(text), {{u.x}}).at(0).number(0), u.want, 1e-6) << text;
  }
}

const char* attention_layer = R"(g (float[N, T, 8] x, float[8, 24] w_qkv, float[24] w_qkv_b,
   float[8, 8] w_proj, float[8] w_proj_b, float[8] w_ln, float[8] w_ln_b) => (float[N, T, 8] z) {
  shape = Shape(x)
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  n = Gather(shape, zero)
  t = Gather(shape, one)
  axis0 = Constant <value_ints = [0]> ()
  nv = Unsqueeze(n, axis0)
  tv = Unsqueeze(t, axis0)
  heads = Constant <value_ints = [2]> ()
  width = Constant <value_ints = [-1]> ()
  split_shape = Concat <axis = 0> (nv, tv, heads, width)
  whole_shape = Concat <axis = 0> (nv, tv, width)
  normal = LayerNormalization(x, w_ln, w_ln_b)
  product = MatMul(normal, w_qkv)
  qkv = Add(product, w_qkv_b)
  q, k, v = Split <axis = -1> (qkv)
  q4 = Reshape(q, split_shape)
  k4 = Reshape(k, split_shape)
  v4 = Reshape(v, split_shape)
  qh = Transpose <perm = [0, 2, 1, 3]> (q4)
  kh = Transpose <perm = [0, 2, 3, 1]> (k4)
  vh = Transpose <perm = [0, 2, 1, 3]> (v4)
  dim = Constant <value_float = 4.0> ()
  root = Sqrt(dim)
  raw = MatMul(qh, kh)
  scores = Div(raw, root)
  ones = Constant <value = float[1] {1.0}> ()
  square = Concat <axis = 0> (tv, tv)
  full = Expand(ones, square)
  mask = Trilu <upper = 0> (full)
  keep = Cast <to = 9> (mask)
  low = Constant <value_float = -10000.0> ()
  masked = Where(keep, scores, low)
  p = Softmax(masked)
  mixed = MatMul(p, vh)
  back = Transpose <perm = [0, 2, 1, 3]> (mixed)
  joined = Reshape(back, whole_shape)
  projected = MatMul(joined, w_proj)
  biased = Add(w_proj_b, projected)
  z = Add(x, biased)
})";

TEST(Onnx, AnAttentionLayerOfAnyBatch) {
  const std::string path = write_model("gpt", attention_layer);
  const std::string text = text_of(path);
  for (const auto& [n, t] : {std::pair{1, 1}, {2, 5}, {3, 4}}) {
    Arena arena;
    const Arena::Scope scope(arena);
    const Instance in = instance_of(text, {{"N", {n}}, {"T", {t}}});
    const Ints shape{n, t, 8};
    // The same in the language itself, on the same weights.
    std::string language = text.substr(0, text.find("compute")) + "compute = '''\n" +
                           R"(q, k, v = split(layer_norm(x, w_ln, w_ln_b) @ w_qkv + w_qkv_b, 3, -1)
q = permute(reshape(q, [N, T, 2, 4]), [0, 2, 1, 3])
k = permute(reshape(k, [N, T, 2, 4]), [0, 2, 1, 3])
v = permute(reshape(v, [N, T, 2, 4]), [0, 2, 1, 3])
h = reshape(permute(attention(q, k, v, causal=true), [0, 2, 1, 3]), [N, T, 8])
return x + h @ w_proj + w_proj_b
''')";
    const auto got = evaluate(in), want = evaluate(instance_of(language, {{"N", {n}}, {"T", {t}}}));
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(want.size(), 1u);
    EXPECT_EQ(got[0].shape, shape);
    ASSERT_EQ(got[0].size(), want[0].size());
    for (size_t i = 0; i < want[0].size(); i++)
      EXPECT_NEAR(got[0].reals[i], want[0].reals[i], 1e-6);
  }
}

TEST(Onnx, AResidualBlock) {
  const std::string path = write_model("resnet", R"(g (float[N, 4, 6, 6] x, float[4, 4, 3, 3] w_a,
   float[4] w_s, float[4] w_b, float[4] w_m, float[4] v, float[3, 4] w_fc, float[3] w_fc_b) => (float[N, 3] z) {
  two = Constant <value_float = 2.0> ()
  var = Add(v, two)
  c = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w_a)
  n = BatchNormalization(c, w_s, w_b, w_m, var)
  s = Add(n, x)
  r = Relu(s)
  p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r)
  g = GlobalAveragePool(p)
  f = Flatten(g)
  z = Gemm <transB = 1> (f, w_fc, w_fc_b)
})");
  const std::string text = text_of(path);
  Arena arena;
  const Arena::Scope scope(arena);
  const std::string language = text.substr(0, text.find("compute")) + R"(compute = '''
r = relu(batch_norm(conv2d(x, w_a, padding=1), w_m, v + 2, w_s, w_b) + x)
return mean(max_pool2d(r, 3, stride=2, padding=1), axis=[2, 3]) @ transpose(w_fc) + w_fc_b
''')";
  const auto got = evaluate(instance_of(text, {{"N", {2}}})),
             want = evaluate(instance_of(language, {{"N", {2}}}));
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(got[0].size(), want[0].size());
  for (size_t i = 0; i < want[0].size(); i++) EXPECT_NEAR(got[0].reals[i], want[0].reals[i], 1e-6);
}

TEST(Onnx, EqualLayersAreEqualKernels) {
  const std::string path = write_model("twice", R"(g (float[4, 8] x, float[8, 8] w_1,
   float[8, 8] w_2, float[8, 8] w_3) => (float[4, 8] z) {
  a = MatMul(x, w_1) b = Relu(a) c = MatMul(b, w_2) d = Relu(c) e = MatMul(d, w_3) z = Relu(e) })");
  Arena arena;
  const Arena::Scope scope(arena);
  const auto built = workloads::build(instance_of(text_of(path)));
  const KernelGraph g = make_kernels(std::get<0>(built).sink);
  ASSERT_EQ(g.kernels.size(), 3u);
  EXPECT_EQ(g.kernels[0].key, g.kernels[1].key);
  EXPECT_EQ(g.kernels[1].key, g.kernels[2].key);
}

TEST(Onnx, WeightsAreDataOrLikeIt) {
  const std::string path =
      write_model("weights", "g (float[2] x, float[2] w_a) => (float[2] z) { z = Add(x, w_a) }");
  const Instance data = instance_of(text_of(path)), made = instance_of(text_of(path, like_data()));
  EXPECT_EQ(data.inputs.at(1).dist.kind, workloads::DistKind::File);
  EXPECT_EQ(made.inputs.at(1).dist.kind, workloads::DistKind::Uniform);
  EXPECT_TRUE(data.inputs[1].constant && made.inputs[1].constant);
  const TensorValue real = value_of(data.inputs[1]), like = value_of(made.inputs[1]);
  const double least = std::min(real.reals[0], real.reals[1]),
               most = std::max(real.reals[0], real.reals[1]);
  for (double v : like.reals) EXPECT_TRUE(v >= least && v <= most) << v;
  // Dims of an index input follow from what it indexes.
  const Instance index = instance_of(text_of(write_model(
      "index", "g (int64[4] i, float[50, 2] w_t) => (float[4, 2] z) { z = Gather(w_t, i) }")));
  EXPECT_EQ(index.inputs.at(0).dist.highest, 49);
}

TEST(Onnx, AModelIsAWorkload) {
  const std::string path = write_model("direct", attention_layer);
  const workloads::Selection s = workloads::select({path}, {{"N", {1, 2}}});
  ASSERT_TRUE(s.errors.empty()) << to_string(s.errors[0]);
  ASSERT_EQ(s.instances.size(), 2u);
  EXPECT_TRUE(s.instances[1].name.ends_with("/N=2,T=1")) << s.instances[1].name;
  EXPECT_EQ(workloads::select({path + ":*N=2*"}, {{"N", {1, 2}}}).instances.size(), 1u);
}

struct Refusal {
  const char* name;
  int opset;
  const char* graph;
  const char* message;
};
TEST(Onnx, RefusalsNameTheNode) {
  // clang-format off
  const Refusal all[] = {
      {"operator", 13, "g (float[2] x) => (float[2] z) { y = Relu(x) z = Einsum <equation = \"i->i\"> (y) }", "node 1 (Einsum): operator Einsum is not supported"},
      {"opset", 18, "g (float[2] x) => (float[2] z) { z = Relu(x) }", "opset 18 (expected opset 7 to 17)"},
      {"old opset", 6, "g (float[2] x) => (float[2] z) { z = Relu(x) }", "opset 6 (expected opset 7 to 17)"},
      {"input", 13, "g (float[2] x) => (float[2] z) { z = Relu(y) }", "node 0 (Relu): input 'y' is made by nothing before this node"},
      {"output", 13, "g (float[2] x) => (float[2] y) { z = Relu(x) }", "output 'y': is made by no node"},
      {"shapes", 13, "g (float[2] x, float[3] y) => (float[2] z) { z = Add(x, y) }", "node 0 (Add): shapes [2] and [3] do not broadcast"},
      {"dims", 13, "g (float[N] x, float[M] y) => (float[N] z) { z = Add(x, y) }", "node 0 (Add): dims N and M need not be equal"},
      {"types", 13, "g (float[2] x, int32[2] y) => (float[2] z) { z = Add(x, y) }", "node 0 (Add): operands of f32 and i32"},
      {"reshape", 13, "g (float[2] x) => (float[3] z) { s = Constant <value_ints = [3]> () z = Reshape(x, s) }", "node 1 (Reshape): shape [2] cannot become [3]"},
      {"reshape by data", 13, "g (float[2] x, int64[1] s) => (float[2] z) { z = Reshape(x, s) }", "node 0 (Reshape): the dims ('s') depend on data"},
      {"two unknown dims", 13, "g (float[4] x) => (float[2, 2] z) { s = Constant <value_ints = [-1, -1]> () z = Reshape(x, s) }", "node 1 (Reshape): the dims hold two -1"},
      {"axis", 13, "g (float[2] x) => (float[2] z) { z = Softmax <axis = 1> (x) }", "node 0 (Softmax): axis 1 of a tensor of 1 dims (expected -1..0)"},
      {"matmul", 13, "g (float[2, 3] x, float[2, 3] y) => (float[2, 3] z) { z = MatMul(x, y) }", "node 0 (MatMul): '@': matmul of shapes (2, 3) and (2, 3)"},
      {"missing input", 13, "g (float[2] x) => (float[2] z) { z = Add(x) }", "node 0 (Add): input 1 is missing"},
      {"attribute", 13, "g (float[2] x) => (float[2] z) { z = Cast(x) }", "node 0 (Cast): attribute 'to' is missing"},
      {"attribute's type", 13, "g (float[2] x) => (float[2] z) { z = Softmax <axis = 1.5> (x) }", "node 0 (Softmax): attribute 'axis' is no integer"},
      {"cast to strings", 13, "g (float[2] x) => (float[2] z) { z = Cast <to = 8> (x) }", "node 0 (Cast): a cast to type 8"},
      {"training", 15, "g (float[1, 2] x, float[2] s) => (float[1, 2] z) { z = BatchNormalization <training_mode = 1> (x, s, s, s, s) }", "node 0 (BatchNormalization): batch statistics (expected a model for inference)"},
      {"pad mode", 13, "g (float[3] x) => (float[5] z) { p = Constant <value_ints = [1, 1]> () z = Pad <mode = \"reflect\"> (x, p) }", "node 1 (Pad): mode 'reflect'"},
      {"dilated pool", 12, "g (float[1, 1, 5] x) => (float[1, 1, 3] z) { z = MaxPool <kernel_shape = [2], dilations = [2]> (x) }", "node 0 (MaxPool): dilated windows"},
      {"a kernel too large", 12, "g (float[1, 1, 2] x, float[1, 1, 5] k) => (float[1, 1, 1] z) { z = Conv(x, k) }", "node 0 (Conv): the kernel reaches over dim 2 of [1, 1, 2]"},
      {"volumes", 12, "g (float[1, 1, 2, 2, 2] x) => (float[1, 1, 1, 1, 1] z) { z = MaxPool <kernel_shape = [2, 2, 2]> (x) }", "node 0 (MaxPool): of a tensor of 5 dims"},
      {"a step of 0", 13, "g (float[2] x) => (float[2] z) { a = Constant <value_ints = [0]> () z = Slice(x, a, a, a, a) }", "node 1 (Slice): a step is 0"},
      {"a giant", 13, "g (float[2] x) => (float[2] z) { s = Constant <value_ints = [4611686018427387904, 4]> () z = Expand(x, s) }", "node 1 (Expand)"},
      {"sum of sizes", 13, "g (float[4] x) => (float[2] a) { s = Constant <value_ints = [1, 2]> () a, b = Split <axis = 0> (x, s) }", "node 1 (Split): the sizes come to 3, the axis has 4"},
      {"uneven parts", 13, "g (float[5] x) => (float[2] a) { a, b = Split <axis = 0> (x) }", "node 0 (Split): 5 elements do not fall into 2 equal parts"},
      {"an index beyond", 13, "g (float[3] x) => (float z) { i = Constant <value_int = 3> () z = Gather(x, i) }", "node 1 (Gather): index 3 of an axis of 3"},
  };
  // clang-format on
  for (const Refusal& r : all) {
    const auto got = import_model(write_model("refused", r.graph, r.opset));
    ASSERT_EQ(got.index(), 1u) << r.name << "\n" << std::get<0>(got);
    const std::string text = to_string(std::get<1>(got).at(0));
    EXPECT_NE(text.find(r.message), text.npos) << r.name << ": " << text;
  }
}

TEST(Onnx, DamagedModelsAreRefused) {
  struct Case {
    Damage damage;
    const char* message;
  };
  const Case all[] = {
      {Damage::ExternalData, "initialiser 'w_a': its external data is missing: "},
      {Damage::ExternalOutside, "its external data lies at '../weights.bin', not beside the model"},
      {Damage::ShortData,
       "initialiser 'w_a': it holds 31 bytes of data, shape [2, 4] of FLOAT needs 32"},
      {Damage::SameInitialiser, "two initialisers are called 'w_a'"},
      {Damage::SameOutput, "node 1 (Relu): 'y' is made twice"},
      {Damage::GiantDims,
       "node 0 (Add): shapes [1099511627776, 1099511627776] and [2, 4] do not broadcast"},
      {Damage::NegativeDim, "input 'x': dim 0 is -3"},
      {Damage::NoShape, "input 'x': has no shape"},
      {Damage::StringInput, "input 'x': is STRING"},
      {Damage::NoOpset, "no opset of the default domain is named"},
      {Damage::NoOutputs, "the graph has no outputs"},
      {Damage::BackwardOrder, "node 0 (Relu): input 'y' is made by nothing before this node"},
      {Damage::ForeignDomain,
       "node 0 (com.example.Add): operator Add is not supported (domain com.example)"},
  };
  for (const Case& c : all) {
    const std::string path = write_model(
        "damaged",
        "g (float[2, 4] x, float[2, 4] w_a) => (float[2, 4] z) { y = Add(x, w_a) z = Relu(y) }");
    test::damage(path, c.damage);
    const auto got = import_model(path);
    ASSERT_EQ(got.index(), 1u) << c.message;
    const std::string text = to_string(std::get<1>(got).at(0));
    EXPECT_NE(text.find(c.message), text.npos) << text;
    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
    // Without data a model can still be tuned.
    if (c.damage == Damage::ExternalData) {
      EXPECT_EQ(import_model(path, like_data()).index(), 0u);
    }
  }
}

// Any file cut short, or with a byte changed, is a model or a list of mistakes: nothing else.
TEST(Onnx, BrokenFiles) {
  const std::string path = write_model("broken", attention_layer);
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto with = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return import_model(path);
  };
  EXPECT_EQ(to_string(std::get<1>(with("")).at(0)),
            path + ": the file is empty (expected an ONNX model)");
  EXPECT_EQ(with("[[workload]]\nname = \"x\"\n").index(), 1u);
  EXPECT_EQ(import_model("/no/such.onnx").index(), 1u);
  EXPECT_EQ(import_model("/").index(), 1u);
  size_t refused = 0;
  for (size_t n = 1; n < bytes.size(); n += 1 + bytes.size() / 60)
    refused += with(bytes.substr(0, n)).index();
  EXPECT_GT(refused, 50u);
  uint64_t state = 12345;
  for (int i = 0; i < 300; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::string changed = bytes;
    changed[(state >> 33) % changed.size()] = static_cast<char>(state >> 24);
    const auto got = with(changed);
    if (got.index() == 1)
      for (const WorkloadError& e : std::get<1>(got)) EXPECT_FALSE(e.message.empty());
    else
      EXPECT_FALSE(instance_of(std::get<0>(got)).inputs.empty());
  }
}

TEST(Onnx, TensorsAreFoundByName) {
  const std::string path = write_model("tensor",
                                       "g (float[2] x, float[3] w_a) => (float[2] z) { c = "
                                       "Constant <value = float[2] {1.5, 2.5}> () z = Add(x, c) }");
  const auto c = read_tensor(path + ":c", DType::F32, {2});
  ASSERT_EQ(c.index(), 0u) << std::get<1>(c);
  float v[2];
  std::memcpy(v, std::get<0>(c).data(), sizeof v);
  EXPECT_EQ(v[1], 2.5f);
  EXPECT_EQ(read_tensor(path + ":w_a", DType::F32, {3}).index(), 0u);
  EXPECT_NE(
      std::get<1>(read_tensor(path + ":w_a", DType::F16, {3})).find("is f32[3], the input f16[3]"),
      std::string::npos);
  EXPECT_NE(
      std::get<1>(read_tensor(path + ":none", DType::F32, {3})).find("holds no tensor 'none'"),
      std::string::npos);
  EXPECT_EQ(read_tensor("/no/such.onnx:a", DType::F32, {3}).index(), 1u);
}

TEST(Onnx, Dims) {
  const Dim n = Dim::param("N"), m = Dim::param("M");
  EXPECT_EQ((n * 2 + 3).text(), "(2*N + 3)");
  EXPECT_EQ((n - n + 4).value(), 4);
  EXPECT_EQ(floordiv(n * m * 6, n * 2).text(), "(3*M)");
  EXPECT_EQ(floordiv(n + 1, 2).text(), "((N + 1) // 2)");
  EXPECT_EQ(floordiv(Dim(-7), 2).value(), -4);
  EXPECT_EQ(floordiv(Dim(7), -2).value(), -4);
  EXPECT_EQ(n.compare(0), 1);
  EXPECT_EQ(n.compare(2), std::nullopt);
  EXPECT_EQ((n * -1).compare(0), -1);
  EXPECT_FALSE((Dim(INT64_MAX) + 1).valid());
  EXPECT_FALSE((Dim(INT64_MAX) * n * 2).valid());
  const Dim dims[] = {n, Dim(3), n * 2, n + 1};
  EXPECT_EQ(list_text(dims), "[N, 3, 2*N, N + 1]");
}

}  // namespace
}  // namespace beamline::onnx
