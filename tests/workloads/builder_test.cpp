// From compute text to a graph: values against what NumPy gives, shapes, dtypes, and mistakes with
// places.
#include "workloads/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "tests/engine/tensor_eval.h"
#include "tests/workloads/language_cases.h"

namespace beamline::workloads {
namespace {

using namespace language;

TEST(Builder, ValuesLikeNumpys) {
  for (const Case& c : cases) {
    Arena arena;
    const Arena::Scope scope(arena);
    const Instance in = instance(c.compute);
    const auto r = build(in);
    if (const auto* errors = std::get_if<std::vector<WorkloadError>>(&r)) {
      ADD_FAILURE() << c.compute << "\n" << to_string(errors->at(0));
      continue;
    }
    const TensorGraph& g = std::get<TensorGraph>(r);
    ASSERT_EQ(g.outputs.size(), g.sink.nsrc());
    EXPECT_EQ(g.outputs[0].dtype, c.dtype) << c.compute;
    EXPECT_EQ(g.outputs[0].shape, c.shape) << c.compute;
    for (UOp u : toposort(g.sink))
      EXPECT_TRUE(u.op() == Op::CONST || u.op() == Op::STACK || !is_weak(u.dtype()))
          << c.compute << "\n"
          << print_uops(u);
    const test::Tensor got = test::evaluate(g.sink, values)[0];
    ASSERT_EQ(got.data.size(), c.data.size()) << c.compute;
    for (size_t i = 0; i < c.data.size(); i++) {
      EXPECT_TRUE(close(got.data[i], c.data[i]))
          << c.compute << " [" << i << "]: " << got.data[i] << ", not " << c.data[i];
    }
  }
}

struct Mistake {
  const char* compute;
  int line, column;  // within the compute text
  const char* message;
};
TEST(Builder, MistakesHavePlaces) {
  const Mistake mistakes[] = {
      {"return a + i", 1, 10, "'+': shapes (2, 3) and (2, 2) do not broadcast"},
      {"x = a * 2\nreturn (x @\n  a) + 1", 2, 11,
       "'@': matmul of shapes (2, 3) and (2, 3): 3 and 2 differ"},
      {"return matmul(a, a)", 1, 8, "matmul of shapes (2, 3) and (2, 3)"},
      {"return bais", 1, 8, "unknown name 'bais'"},
      {"bias = v\nreturn bais + 1", 2, 8, "unknown name 'bais'; did you mean 'bias'?"},
      {"return sum", 1, 8, "unknown name 'sum'; it is a function"},
      {"return True", 1, 8, "did you mean 'true'?"},
      {"return sofmax(a)", 1, 8, "unknown function 'sofmax'; did you mean 'softmax'?"},
      {"return conv2d(a, a)", 1, 8,
       "conv2d: of shape (2, 3) with kernels of shape (2, 3): [N, C, H, W]"},
      {"return conv2d(ones([1, 2, 3, 3]), ones([4, 3, 1, 1]))", 1, 8,
       "2 input channels are not 1 groups of 3"},
      {"return conv2d(ones([1, 4, 3, 3]), ones([3, 2, 1, 1]), groups=2)", 1, 8,
       "3 output channels do not fall into 2 groups"},
      {"return conv2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2]), dilation=3)", 1, 8,
       "the kernel reaches over (4, 4), the padded input is (3, 3)"},
      {"return conv2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2]), stride=0)", 1, 8,
       "the stride (0, 0) is not positive"},
      {"return conv2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2]), stride=[1, 2, 3])", 1, 62,
       "conv2d: 'stride' is a list"},
      {"return conv2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2]), ones([2]))", 1, 8,
       "the bias has shape (2,), there are 1 output channels"},
      {"return conv_transpose2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2]), output_padding=1)", 1, 8,
       "the output padding (1, 1) is not below the stride or dilation"},
      {"return max_pool2d(a, 3)", 1, 8, "the kernel (3, 3) is larger than the padded input"},
      {"return max_pool2d(a, 2, padding=2)", 1, 8,
       "the padding (2, 2) is not within half of the kernel (2, 2)"},
      {"return arange()", 1, 8, "arange: argument 'stop' is missing"},
      {"return arange(3, 0, 0)", 1, 8, "arange: the step is 0"},
      {"return arange(v)", 1, 15, "arange: 'start' is a tensor of f32"},
      {"return argmax(a, 2)", 1, 8, "argmax: axis 2 is not in -2..1"},
      {"return cumsum(s, 0)", 1, 8, "cumsum: axis 0 of a scalar"},
      {"return gather(a, v, 0)", 1, 8, "gather: an index of shape (3,) does not fit (2, 3)"},
      {"return take(a, v)", 1, 8, "take: the index is f32, not an integer"},
      {"return one_hot(i, -1)", 1, 8, "one_hot: -1 classes"},
      {"return rand([2], -1)", 1, 8, "rand: the seed -1 is not in 0..4294967295"},
      {"return bitcast(v[:2], f64) + bitcast(v, i64)", 1, 30,
       "the last dim of shape (3,) is not a multiple of 2"},
      {"return bitcast(c, u8)", 1, 8, "bools have no bits of their own"},
      {"return c ** c", 1, 10, "bools have no powers"},
      {"return relu(a, a)", 1, 16, "relu takes at most 1 arguments, 2 are given"},
      {"return relu()", 1, 8, "relu: argument 'x' is missing"},
      {"return concat()", 1, 8, "concat: argument 'x' is missing"},
      {"return sum(a, axes=0)", 1, 15, "sum has no parameter 'axes'; did you mean 'axis'?"},
      {"return sum(a, 0, axis=0)", 1, 18, "sum: 'axis' is given twice"},
      {"return sum(a, axis=2)", 1, 8, "sum: axis 2 is not in -2..1"},
      {"return sum(a, axis=1.5)", 1, 20, "sum: 'axis' is the number 1.5"},
      {"return sum(a, axis=[0, v])", 1, 24, "sum: 'axis' is a tensor of f32 and shape (3,)"},
      {"return sum(a, keepdims=1)", 1, 24, "sum: 'keepdims' is the integer 1"},
      {"return sum([1, 2])", 1, 12, "sum: 'x' is a list"},
      {"return gelu(a, approx=\"fast\")", 1, 23, "gelu: 'approx' is the string \"fast\""},
      {"return cast(a, 16)", 1, 16, "cast: 'dtype' is the integer 16"},
      {"return reshape(a, [4, -1])", 1, 8,
       "reshape: shape (2, 3) of 6 elements cannot become (4, -1)"},
      {"return pad(a, [[1, 1]])", 1, 8, "pad: 1 pairs of padding for shape (2, 3)"},
      {"return pad(a, 3)", 1, 15, "pad: 'pads' is the integer 3"},
      {"return slice(v, [0], [1, 2])", 1, 8, "slice: 1 starts, 2 ends and 1 steps for shape (3,)"},
      {"return where(a, 1, 2)", 1, 8, "where: the condition is f32, not bool"},
      {"return c - c", 1, 10, "'-': bools cannot be subtracted"},
      {"return -c", 1, 8, "bools have no negative"},
      {"return ~a", 1, 8, "'~' needs integers or bools, not f32"},
      {"return a & 1", 1, 10, "bit operations need integers or bools, not f32"},
      {"return u + 300", 1, 10, "'+': 300 does not fit u8"},
      {"return 3 // 0", 1, 10, "division by zero"},
      {"return a + [1]", 1, 10, "'+' of a tensor of f32 and shape (2, 3) and a list"},
      {"return a[2]", 1, 10, "index 2 of an axis of 2"},
      {"return a[0, 0, 0]", 1, 9, "3 indices for shape (2, 3)"},
      {"return a[..., ...]", 1, 9, "more than one '...'"},
      {"return a[::0]", 1, 10, "the step of the slice is 0"},
      {"return a[1.5]", 1, 10, "an index is the number 1.5"},
      {"return a[v]", 1, 9, "an index is f32, not an integer"},
      {"return a[c]", 1, 9, "a mask as an index gives a shape that depends on data"},
      {"return a[i, arange(3)]", 1, 9, "indices of shapes (2, 2) and (3,) do not broadcast"},
      {"return a[[0, 1]]", 1, 10, "an index is a list"},
      {"return a[v:]", 1, 10, "a bound of the slice is no integer"},
      {"return N[0]", 1, 9, "the integer 3 cannot be indexed"},
      {"return [a, v]", 1, 8, "a list is returned"},
      {"return \"a\"", 1, 8, "the string \"a\" is returned"},
      {"p, q = split(v, 3, 0)\nreturn p", 1, 1, "3 parts for 2 names"},
      {"p = split(v, 3, 0)\nreturn p", 1, 1, "3 parts for one name"},
      {"p, q = v\nreturn p", 1, 1,
       "a tensor of f32 and shape (3,) cannot be unpacked into 2 names"},
      {"p, q = split(v, 2, 0)\nreturn p", 1, 8,
       "split: axis 0 of shape (3,) does not split into 2 equal parts"},
      {"return full([2], 300, u8)", 1, 8, "full: 300 does not fit u8"},
      {"return zeros([1048576, 1048577])", 1, 8, "more than 2^40 elements"},
      {"return layer_norm(a, v[:2])", 1, 8,
       "layer_norm: a weight or bias has shape (2,), the axes have (3,)"},
  };
  for (const Mistake& m : mistakes) {
    Arena arena;
    const Arena::Scope scope(arena);
    const auto r = build(instance(m.compute));
    ASSERT_TRUE(std::holds_alternative<std::vector<WorkloadError>>(r)) << m.compute;
    const WorkloadError& e = std::get<std::vector<WorkloadError>>(r).at(0);
    EXPECT_EQ((SourcePos{e.line, e.column}), (SourcePos{m.line + 5, m.column})) << m.compute << "\n"
                                                                                << to_string(e);
    EXPECT_NE(e.message.find(m.message), std::string::npos) << m.compute << "\n" << to_string(e);
    EXPECT_EQ(e.field, "w.compute");
  }
}

TEST(Builder, OneMistakeIsReportedOnce) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto r = build(instance("x = a + i\ny = x * 2\nz = nope + y\nreturn z, a[7], x"));
  const auto& errors = std::get<std::vector<WorkloadError>>(r);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(errors[0].line, 6);
  EXPECT_EQ(errors[1].message.substr(0, 19), "unknown name 'nope'");
  EXPECT_EQ(errors[2].message, "index 7 of an axis of 2");
}

TEST(Builder, InputsAreParamsInFileOrder) {
  Arena arena;
  const Arena::Scope scope(arena);
  LoadedFile f = parse_workload_file(
      "w.toml",
      "[[workload]]\nname = \"w\"\ninputs = { z = \"f16[2]\", b = { dtype = \"f32[2]\", const = "
      "true }, a = \"i32[2]\" }\ncompute = \"return a * z, b, 1\"\n");
  std::vector<WorkloadError> errors;
  const auto r = build(expand(f.workloads.at(0), {}, errors).at(0));
  const TensorGraph& g = std::get<TensorGraph>(r);
  ASSERT_EQ(g.sink.nsrc(), 3U);
  EXPECT_EQ(g.sink.op(), Op::SINK);
  std::vector<int64_t> slots(3, -1);
  for (UOp u : toposort(g.sink)) {
    if (u.op() != Op::PARAM) continue;
    const std::string names = "zba";
    slots[names.find(u.param().name)] = u.param().slot;
    EXPECT_EQ(u.param().constant, u.param().name == "b");
  }
  EXPECT_EQ(slots, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(g.outputs[0].dtype, DType::F16);
  EXPECT_EQ(g.outputs[1].dtype, DType::F32);
  EXPECT_EQ(g.outputs[2].dtype, DType::I32);
}

TEST(Builder, FunctionNamesAreSortedAndUnique) {
  const std::vector<std::string> names = function_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_GT(names.size(), 70U);
}

}  // namespace
}  // namespace beamline::workloads
