// How many kernels programs fall into, and that no loop is left where none is needed. The counts
// are the reference's or lower.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rangeify/rangeify.h"
#include "workloads/builder.h"

namespace beamline::workloads {
namespace {

struct Row {
  const char* name;
  const char* inputs;
  const char* compute;
  size_t kernels;
  size_t reduces;  // REDUCE nodes left in all kernels
};
// clang-format off
const Row rows[] = {
    {"softmax",          "x = \"f32[64, 100]\"",  "return softmax(x)", 1, 2},
    {"log_softmax",      "x = \"f32[64, 100]\"",  "return log_softmax(x)", 1, 2},
    {"layer_norm",       "x = \"f32[64, 100]\", w = \"f32[100]\", b = \"f32[100]\"", "return layer_norm(x, w, b)", 1, 2},
    {"softmax of columns", "x = \"f32[100, 64]\"", "return softmax(x, axis=0)", 1, 2},
    {"softmax of a lone row", "x = \"f32[4096]\"", "return softmax(x)", 1, 2},
    {"softmax of a row too long", "x = \"f32[20, 70000]\"", "return softmax(x)", 5, 4},
    {"rows of three",    "x = \"f32[3, 100]\"", "return softmax(x, axis=0)", 3, 2},
    {"few long rows",    "x = \"f32[4, 8192]\"", "return softmax(x)", 3, 2},
    {"stored in any case", "x = \"f32[64, 100]\"", "m = contiguous(max(x, axis=1, keepdims=true))\nreturn x - m", 2, 1},
    {"result of its own", "x = \"f32[64, 100]\"", "m = max(x, axis=1, keepdims=true)\nreturn x - m, m", 2, 1},
    {"product before softmax", "x = \"f32[64, 100]\", w = \"f32[100, 50]\"", "return softmax(x @ w)", 2, 3},
    {"product by rows",  "x = \"f32[64, 100]\", w = \"f32[100, 50]\"", "return reshape(x @ w, [64, 50, 1]) * reshape(x, [64, 1, 100])", 2, 1},
    {"norm before product", "x = \"f32[64, 100]\", w = \"f32[100, 50]\"", "return (x / sqrt(mean(x * x, axis=1, keepdims=true))) @ w", 2, 2},
    {"softmax before product", "x = \"f32[64, 100]\", w = \"f32[100, 50]\"", "return softmax(x) @ w", 2, 3},
    {"rms_norm",         "x = \"f32[64, 100]\", w = \"f32[100]\"", "return rms_norm(x, w)", 1, 1},
    {"argmax",           "x = \"f32[64, 100]\"",  "return argmax(x, 1)", 1, 2},
    {"argmin of ints",   "x = \"i32[64, 100]\"",  "return argmin(x, 0)", 1, 2},
    {"var",              "x = \"f32[64, 100]\"",  "return var(x, axis=1)", 1, 2},
    {"conv bias relu",   "x = \"f32[2, 8, 14, 14]\", w = \"f32[16, 8, 3, 3]\", b = \"f32[16]\"", "return relu(conv2d(x, w, b, padding=1))", 1, 1},
    {"conv strided",     "x = \"f32[2, 8, 15, 15]\", w = \"f32[16, 4, 3, 3]\"", "return conv2d(x, w, stride=2, padding=1, dilation=2, groups=2)", 1, 1},
    {"conv transposed",  "x = \"f32[2, 8, 7, 7]\", w = \"f32[8, 16, 3, 3]\"", "return conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)", 1, 1},
    {"conv norm relu",   "x = \"f32[2, 8, 14, 14]\", w = \"f32[16, 8, 3, 3]\", m = \"f32[16]\", v = \"f32[16]\"", "return relu(batch_norm(conv2d(x, w), m, v))", 1, 1},
    {"matmul bias gelu", "a = \"f32[33, 65]\", b = \"f32[65, 17]\", c = \"f32[17]\"", "return gelu(a @ b + c)", 1, 1},
    {"attention",        "q = \"f32[2, 4, 32, 16]\", k = \"f32[2, 4, 32, 16]\", v = \"f32[2, 4, 32, 16]\"", "return attention(q, k, v)", 3, 4},
    {"causal attention", "q = \"f32[2, 4, 32, 16]\", k = \"f32[2, 4, 32, 16]\", v = \"f32[2, 4, 32, 16]\"", "return attention(q, k, v, causal=true)", 3, 4},
    {"embedding",        "w = \"f32[1000, 64]\", i = \"i32[2, 16]\"", "return embedding(w, i)", 1, 0},
    {"gather",           "x = \"f32[100, 64]\", i = \"i64[7, 64]\"", "return gather(x, i, 0)", 1, 0},
    {"take of bools",    "x = \"bool[5, 100]\", i = \"u8[7]\"", "return take(x, i, 1)", 1, 0},
    {"index by tensors", "x = \"f32[10, 20, 30]\", i = \"i32[7]\", j = \"i32[7]\"", "return x[i, :, j]", 1, 0},
    {"one_hot",          "i = \"i32[7]\"", "return one_hot(i, 100)", 1, 0},
    {"one-hot sum",      "x = \"i32[100]\", i = \"i32[7]\"", "return sum(where(one_hot(i, 100) == 1, x, 0), axis=1)", 1, 0},
    {"one-hot product",  "x = \"i32[100]\", i = \"i32[7]\"", "return one_hot(i, 100) @ x", 1, 0},
    {"arange",           "x = \"i32[1]\"", "return arange(1000)", 1, 0},
    {"arange steps",     "x = \"i32[1000]\"", "return x + arange(5, 5 + 3000, 3)", 1, 0},
    {"run-time length",  "n = \"i32[]\"", "return sum(cast(arange(64) >= n, i32))", 1, 0},
    {"rand",             "x = \"i32[1]\"", "return rand([1000], 3)", 1, 0},
    {"max_pool",         "x = \"f32[2, 8, 14, 14]\"", "return max_pool2d(x, 2)", 1, 1},
    {"max_pool overlaps", "x = \"f32[2, 8, 14, 14]\"", "return max_pool2d(x, 3, stride=2, padding=1)", 1, 1},
    {"avg_pool",         "x = \"f32[2, 8, 14, 14]\"", "return avg_pool2d(x, 3, stride=2, padding=1)", 1, 1},
    {"avg_pool uncounted", "x = \"f32[2, 8, 14, 14]\"", "return avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=false)", 1, 1},
    {"cumsum",           "x = \"f32[1024]\"", "return cumsum(x, 0)", 3, 2},
    {"short cumsum",     "x = \"f32[3, 300]\"", "return cumsum(x, 1)", 1, 1},
    {"tril",             "x = \"f32[30, 30]\"", "return tril(x)", 1, 0},
    {"concat",           "x = \"f32[30, 30]\", y = \"f32[20, 30]\"", "return concat(x, y, axis=0)", 1, 0},
    {"sum of sums",      "x = \"f32[30, 30]\"", "return sum(sum(x, axis=0))", 1, 2},
    {"tall sum",         "x = \"f32[4194304]\"", "return sum(x)", 2, 2},
    {"tall mean",        "x = \"f32[8, 1048576]\"", "return mean(x * x, axis=1) + 1", 2, 2},
    {"long row",         "x = \"f32[64, 30000]\"", "return sum(x, axis=1)", 1, 1},
    {"residual block",   "x = \"f32[1, 8, 14, 14]\", w = \"f32[8, 8, 3, 3]\", u = \"f32[8, 8, 3, 3]\"", "y = relu(conv2d(x, w, padding=1))\nreturn relu(conv2d(y, u, padding=1) + x)", 2, 2},
    {"large vocabulary", "w = \"f16[50257, 64]\", i = \"i64[4]\"", "return embedding(w, i)", 1, 0},
};
// clang-format on

class KernelCounts : public testing::TestWithParam<Row> {};
TEST_P(KernelCounts, AreTheReferencesOrLower) {
  const Row& row = GetParam();
  const std::string text = std::string("[[workload]]\nname = \"w\"\ninputs = { ") + row.inputs +
                           " }\ncompute = '''\n" + row.compute + "\n'''\n";
  LoadedFile f = parse_workload_file("w.toml", text);
  ASSERT_TRUE(f.errors.empty()) << to_string(f.errors[0]);
  std::vector<WorkloadError> errors;
  Arena arena;
  const Arena::Scope scope(arena);
  const auto built = build(expand(f.workloads.at(0), {}, errors).at(0));
  ASSERT_TRUE(std::holds_alternative<TensorGraph>(built))
      << to_string(std::get<std::vector<WorkloadError>>(built).at(0));
  const KernelGraph g = make_kernels(std::get<TensorGraph>(built).sink);
  size_t reduces = 0;
  std::string all;
  for (const KernelAst& k : g.kernels) {
    for (UOp u : toposort(k.ast)) reduces += u.op() == Op::REDUCE;
    all += print_uops(k.ast) + "\n";
  }
  EXPECT_EQ(g.kernels.size(), row.kernels) << all;
  EXPECT_EQ(reduces, row.reduces) << all;
}
INSTANTIATE_TEST_SUITE_P(Rows, KernelCounts, testing::ValuesIn(rows), [](const auto& p) {
  std::string n = p.param.name;
  std::ranges::replace_if(
      n, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return n;
});

}  // namespace
}  // namespace beamline::workloads
