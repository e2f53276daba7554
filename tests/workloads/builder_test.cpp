// From compute text to a graph: values against what NumPy gives, shapes, dtypes, and mistakes with
// places.
#include "workloads/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "tests/engine/tensor_eval.h"

namespace beamline::workloads {
namespace {

constexpr double inf = INFINITY;

// Inputs: a = [[0 1 2] [3 4 5]] f32, v = [1 -2 3] f32, i = [[7 -7] [4 9]] i32, c = [true false
// true], s = 2.5.
const std::string inputs =
    "[[workload]]\nname = \"w\"\nparams = { N = 3 }\n"
    "inputs = { a = \"f32[2, N]\", v = \"f32[N]\", i = \"i32[2, 2]\", c = \"bool[N]\", s = "
    "\"f32\", h = \"f16[N]\", u = \"u8[2]\" }\n";
const std::vector<test::Tensor> values = {{{2, 3}, {0, 1, 2, 3, 4, 5}},
                                          {{3}, {1, -2, 3}},
                                          {{2, 2}, {7, -7, 4, 9}},
                                          {{3}, {1, 0, 1}},
                                          {{}, {2.5}},
                                          {{3}, {0.5, 2, -1}},
                                          {{2}, {200, 100}}};

Instance instance(const std::string& compute) {
  LoadedFile f = parse_workload_file("w.toml", inputs + "compute = '''\n" + compute + "\n'''\n");
  for (const WorkloadError& e : f.errors) ADD_FAILURE() << to_string(e);
  std::vector<WorkloadError> errors;
  return expand(f.workloads.at(0), {}, errors).at(0);
}

struct Case {
  const char* compute;
  DType dtype;
  Ints shape;
  std::vector<double> data;
};
constexpr DType f32 = DType::F32, i32 = DType::I32, boolean = DType::Bool;

// clang-format off
const Case cases[] = {
    // operators
    {"return a + v", f32, {2, 3}, {1, -1, 5, 4, 2, 8}},
    {"return a - 1", f32, {2, 3}, {-1, 0, 1, 2, 3, 4}},
    {"return 1 - v", f32, {3}, {0, 3, -2}},
    {"return v * s", f32, {3}, {2.5, -5, 7.5}},
    {"return v / 2", f32, {3}, {0.5, -1, 1.5}},
    {"return 2 / v", f32, {3}, {2, -1, 2.0f / 3}},
    {"return i / 2", f32, {2, 2}, {3.5, -3.5, 2, 4.5}},
    {"return i // 2", i32, {2, 2}, {3, -4, 2, 4}},
    {"return i % 3", i32, {2, 2}, {1, 2, 1, 0}},
    {"return i % -3", i32, {2, 2}, {-2, -1, -2, 0}},
    {"return -v", f32, {3}, {-1, 2, -3}},
    {"return v ** 2", f32, {3}, {1, 4, 9}},
    {"return v ** -1", f32, {3}, {1, -0.5, 1.0f / 3}},
    {"return v ** 0", f32, {3}, {1, 1, 1}},
    {"return i ** 3", i32, {2, 2}, {343, -343, 64, 729}},
    {"return 2 ** s", f32, {}, {5.656854}},
    {"return a @ v", f32, {2}, {4, 10}},
    {"return v @ v", f32, {}, {14}},
    {"return matmul(a, transpose(a))", f32, {2, 2}, {5, 14, 14, 50}},
    {"return i @ i", i32, {2, 2}, {21, -112, 64, 53}},
    {"return v < 1", boolean, {3}, {0, 1, 0}},
    {"return v <= 1", boolean, {3}, {1, 1, 0}},
    {"return v > 1", boolean, {3}, {0, 0, 1}},
    {"return v >= 1", boolean, {3}, {1, 0, 1}},
    {"return v == 3", boolean, {3}, {0, 0, 1}},
    {"return v != 3", boolean, {3}, {1, 1, 0}},
    {"return v * nan <= 1", boolean, {3}, {0, 0, 0}},
    {"return (v > 0) & c | (v == -2)", boolean, {3}, {1, 1, 1}},
    {"return c ^ true", boolean, {3}, {0, 1, 0}},
    {"return ~c", boolean, {3}, {0, 1, 0}},
    {"return ~i", i32, {2, 2}, {-8, 6, -5, -10}},
    {"return ~u", DType::U8, {2}, {55, 155}},
    {"return i & 5 | 8 ^ 1", i32, {2, 2}, {13, 9, 13, 9}},
    {"return c + c", boolean, {3}, {1, 0, 1}},
    {"return c * 2", i32, {3}, {2, 0, 2}},
    {"return u + 100", DType::U8, {2}, {44, 200}},
    {"return h + i[0, 0]", DType::F16, {3}, {7.5, 9, 6}},
    {"return h * 0.1", DType::F16, {3}, {0.04998779296875, 0.199951171875, -0.0999755859375}},
    // literals, params, rebinding
    {"x = N * 2 + 1\nreturn x", i32, {}, {7}},
    {"return 1.5", f32, {}, {1.5}},
    {"return true", boolean, {}, {1}},
    {"v = v + 1\nv = v * 2\nreturn v", f32, {3}, {4, -2, 8}},
    {"return a * 1e-3 / 1e-3", f32, {2, 3}, {0, 1, 2, 3, 4, 5}},
    // elementwise functions
    {"return relu(v)", f32, {3}, {1, 0, 3}},
    {"return abs(i)", i32, {2, 2}, {7, 7, 4, 9}},
    {"return sign(v)", f32, {3}, {1, -1, 1}},
    {"return maximum(v, 0.5)", f32, {3}, {1, 0.5, 3}},
    {"return minimum(i, 5)", i32, {2, 2}, {5, -7, 4, 5}},
    {"return minimum(v, h)", f32, {3}, {0.5, -2, -1}},
    {"return clamp(v, -1, 2)", f32, {3}, {1, -1, 2}},
    {"return clamp(v, none, 2)", f32, {3}, {1, -2, 2}},
    {"return where(c, v, 0)", f32, {3}, {1, 0, 3}},
    {"return where(c, 1, 2)", i32, {3}, {1, 2, 1}},
    {"return cast(v, i32) + 1", i32, {3}, {2, -1, 4}},
    {"return cast(v - 1, bool)", boolean, {3}, {0, 1, 1}},
    {"return floor(v / 2)", f32, {3}, {0, -1, 1}},
    {"return round(v / 2)", f32, {3}, {0, -1, 2}},
    {"return sqrt(i[1])", f32, {2}, {2, 3}},
    {"return exp2(v)", f32, {3}, {2, 0.25, 8}},
    {"return log2(i[1, :1])", f32, {1}, {2}},
    {"return pow(v, 3)", f32, {3}, {1, -8, 27}},
    {"return gelu(v)", f32, {3}, {0.84134475, -0.04550026, 2.9959502}},
    {"return gelu(v, approx=\"tanh\")", f32, {3}, {0.841192, -0.045402306, 2.9963627}},
    {"return silu(v)", f32, {3}, {0.7310586, -0.23840584, 2.8577224}},
    // movement
    {"return reshape(a, [3, -1])", f32, {3, 2}, {0, 1, 2, 3, 4, 5}},
    {"return reshape(a, 6)", f32, {6}, {0, 1, 2, 3, 4, 5}},
    {"return permute(a, [1, 0])", f32, {3, 2}, {0, 3, 1, 4, 2, 5}},
    {"return expand(v, [2, N])", f32, {2, 3}, {1, -2, 3, 1, -2, 3}},
    {"return squeeze(unsqueeze(v, [0, 2]), -1)", f32, {1, 3}, {1, -2, 3}},
    {"return pad(v, [[1, 2]])", f32, {6}, {0, 1, -2, 3, 0, 0}},
    {"return pad(v, [[1, 0]], value=-inf)", f32, {4}, {-inf, 1, -2, 3}},
    {"return flip(a, [0, 1])", f32, {2, 3}, {5, 4, 3, 2, 1, 0}},
    {"return concat(a, a + 10, axis=1)", f32, {2, 6}, {0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15}},
    {"return concat(v, i[0])", f32, {5}, {1, -2, 3, 7, -7}},
    {"return stack(v, v + 1, axis=-1)", f32, {3, 2}, {1, 2, -2, -1, 3, 4}},
    {"p, q, r = split(v, 3, 0)\nreturn r - q", f32, {1}, {5}},
    {"return slice(a, [0, 1], [2, 3])", f32, {2, 2}, {1, 2, 4, 5}},
    {"return slice(v, [-1], [-100], [-2])", f32, {2}, {3, 1}},
    {"return zeros([2]) + ones([2])", f32, {2}, {1, 1}},
    {"return full([2], 3, i64)", DType::I64, {2}, {3, 3}},
    {"return tril(reshape(a, [3, 2]))", f32, {3, 2}, {0, 0, 2, 3, 4, 5}},
    {"return triu(a, k=1)", f32, {2, 3}, {0, 1, 2, 0, 0, 5}},
    {"return contiguous(a) + 0", f32, {2, 3}, {0, 1, 2, 3, 4, 5}},
    // indexing
    {"return a[1]", f32, {3}, {3, 4, 5}},
    {"return a[-1, -2]", f32, {}, {4}},
    {"return a[:, 1]", f32, {2}, {1, 4}},
    {"return a[..., 0]", f32, {2}, {0, 3}},
    {"return v[newaxis, :, newaxis]", f32, {1, 3, 1}, {1, -2, 3}},
    {"return v[1:]", f32, {2}, {-2, 3}},
    {"return v[:-1]", f32, {2}, {1, -2}},
    {"return v[::2]", f32, {2}, {1, 3}},
    {"return v[::-1]", f32, {3}, {3, -2, 1}},
    {"return v[::-2]", f32, {2}, {3, 1}},
    {"return v[1::-1]", f32, {2}, {-2, 1}},
    {"return v[5:]", f32, {0}, {}},
    {"return v[-100:100:100]", f32, {1}, {1}},
    {"return reshape(a, 6)[1:6:2]", f32, {3}, {1, 3, 5}},
    {"return reshape(a, 6)[4:0:-3]", f32, {2}, {4, 1}},
    {"return a[0][1:][0]", f32, {}, {1}},
    // reductions
    {"return sum(a)", f32, {}, {15}},
    {"return sum(a, axis=0)", f32, {3}, {3, 5, 7}},
    {"return sum(a, -1, keepdims=true)", f32, {2, 1}, {3, 12}},
    {"return sum(a, [0, 1])", f32, {}, {15}},
    {"return sum(c)", i32, {}, {2}},
    {"return sum(u)", i32, {}, {300}},
    {"return mean(a, axis=1)", f32, {2}, {1, 4}},
    {"return mean(i)", f32, {}, {3.25}},
    {"return max(a, axis=0)", f32, {3}, {3, 4, 5}},
    {"return min(v)", f32, {}, {-2}},
    {"return min(i, axis=0)", i32, {2}, {4, -7}},
    {"return min(u)", DType::U8, {}, {100}},
    {"return prod(i)", i32, {}, {-1764}},
    {"return any(v > 2), 0", boolean, {}, {1}},
    {"return all(c)", boolean, {}, {0}},
    {"return var(v)", f32, {}, {19.0f / 3}},
    {"return var(v, ddof=0, keepdims=true)", f32, {1}, {38.0f / 9}},
    {"return sum(v[3:]) + prod(v[3:])", f32, {}, {1}},
    {"return max(v * nan)", f32, {}, {NAN}},
    // composites
    {"return softmax(v)", f32, {3}, {0.11849965, 0.0058997, 0.8756006}},
    {"return sum(softmax(a, axis=[0, 1]))", f32, {}, {1}},
    {"return log_softmax(v)", f32, {3}, {-2.132845, -5.132845, -0.13284524}},
    {"return layer_norm(v)", f32, {3}, {0.1622212, -1.2977692, 1.135548}},
    {"return layer_norm(v, ones([N]) * 2, v, eps=0.)", f32, {3}, {1 + 2 * 0.16222142, -2 - 2 * 1.2977714, 3 + 2 * 1.1355499}},
    {"return rms_norm(v, eps=0)", f32, {3}, {0.46291006, -0.92582011, 1.3887301}},
    {"return batch_norm(a, v, ones([N]), eps=0)", f32, {2, 3}, {-1, 3, -1, 2, 6, 2}},
    {"return attention(a, a, a)", f32, {2, 3}, {2.983482, 3.983482, 4.983482, 3, 4, 5}},
    {"return attention(a, a, a, causal=true)", f32, {2, 3}, {0, 1, 2, 3, 4, 5}},
    {"return attention(a, a, a, mask=reshape(c[:2], [1, 2]), scale=2)", f32, {2, 3}, {0, 1, 2, 0, 1, 2}},
};
// clang-format on

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
      const double want = c.data[i], have = got.data[i];
      const bool same =
          std::isnan(want)
              ? std::isnan(have)
              : want == have || std::fabs(have - want) <= 2e-6 * std::max(1.0, std::fabs(want));
      EXPECT_TRUE(same) << c.compute << " [" << i << "]: " << have << ", not " << want;
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
      {"return conv2d(a, a)", 1, 8, "function 'conv2d' is not built yet"},
      {"return arange(3)", 1, 8, "function 'arange' is not built yet"},
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
      {"return a // 2", 1, 10, "'//' of f32 is not built yet"},
      {"return u + 300", 1, 10, "'+': 300 does not fit u8"},
      {"return 3 // 0", 1, 10, "division by zero"},
      {"return a + [1]", 1, 10, "'+' of a tensor of f32 and shape (2, 3) and a list"},
      {"return a[2]", 1, 10, "index 2 of an axis of 2"},
      {"return a[0, 0, 0]", 1, 9, "3 indices for shape (2, 3)"},
      {"return a[..., ...]", 1, 9, "more than one '...'"},
      {"return a[::0]", 1, 10, "the step of the slice is 0"},
      {"return a[1.5]", 1, 10, "an index is the number 1.5"},
      {"return a[v]", 1, 10, "indexing by a tensor is not built yet"},
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
