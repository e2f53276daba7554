// What the compute language means: texts over fixed inputs, and the dtype, shape and values NumPy
// gives.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/engine/tensor_eval.h"
#include "workloads/workload_file.h"

namespace beamline::workloads::language {

constexpr double inf = INFINITY;

// Inputs: a = [[0 1 2] [3 4 5]] f32, v = [1 -2 3] f32, i = [[7 -7] [4 9]] i32, c = [true false
// true], s = 2.5.
inline const std::string inputs =
    "[[workload]]\nname = \"w\"\nparams = { N = 3 }\n"
    "inputs = { a = \"f32[2, N]\", v = \"f32[N]\", i = \"i32[2, 2]\", c = \"bool[N]\", s = "
    "\"f32\", h = \"f16[N]\", u = \"u8[2]\" }\n";
inline const std::vector<test::Tensor> values = {{{2, 3}, {0, 1, 2, 3, 4, 5}},
                                                 {{3}, {1, -2, 3}},
                                                 {{2, 2}, {7, -7, 4, 9}},
                                                 {{3}, {1, 0, 1}},
                                                 {{}, {2.5}},
                                                 {{3}, {0.5, 2, -1}},
                                                 {{2}, {200, 100}}};

inline Instance instance(const std::string& compute) {
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
inline const Case cases[] = {
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
    {"return v // 2", f32, {3}, {0, -1, 1}},
    {"return 7 % v", f32, {3}, {0, -1, 1}},
    {"return v % -2", f32, {3}, {-1, 0, -1}},
    {"return stack(v % inf, v // inf, v % -inf)", f32, {3, 3}, {1, inf, 3, 0, -1, 0, -inf, -2, -inf}},
    {"return h % 0.75", DType::F16, {3}, {0.5, 0.5, 0.5}},
    {"return i ** reshape(i, [4])[:2]", i32, {2, 2}, {823543, 0, 16384, 0}},
    {"return 2 ** (i % 5)", i32, {2, 2}, {4, 8, 16, 16}},
    {"return u ** u[0]", DType::U8, {2}, {0, 0}},
    {"return bitcast(v, i32)", i32, {3}, {1065353216, -1073741824, 1077936128}},
    {"return bitcast(v[:2], u16)", DType::U16, {4}, {0, 16256, 0, 49152}},
    {"return bitcast(u, i16)", DType::I16, {1}, {25800}},
    {"return bitcast(bitcast(v, u8), f32)", f32, {3}, {1, -2, 3}},
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
    {"return v[i[0] - 6]", f32, {2}, {-2, 0}},
    {"return a[:, i - 5]", f32, {2, 2, 2}, {2, 0, 2, 0, 5, 0, 5, 0}},
    {"return a[u - 100, u - 100]", f32, {2}, {0, 0}},
    {"return a[0, arange(3)[::-1]]", f32, {3}, {2, 1, 0}},
    {"return reshape(arange(8), [2, 2, 2])[arange(2), :, arange(2)]", i32, {2, 2}, {0, 2, 5, 7}},
    {"return reshape(arange(8), [2, 2, 2])[1, :, arange(2)]", i32, {2, 2}, {4, 6, 5, 7}},
    {"return c[arange(2)]", boolean, {2}, {1, 0}},
    // positions
    {"return arange(4)", i32, {4}, {0, 1, 2, 3}},
    {"return arange(5, 0, -2)", i32, {3}, {5, 3, 1}},
    {"return arange(1, 2, 0.25)", f32, {4}, {1, 1.25, 1.5, 1.75}},
    {"return arange(3, 3)", i32, {0}, {}},
    {"return arange(200)[60:196:27]", i32, {6}, {60, 87, 114, 141, 168, 195}},
    {"return sum(arange(300))", i32, {}, {44850}},
    {"return argmax(v, 0)", i32, {}, {2}},
    {"return argmax(a % 3, 1)", i32, {2}, {2, 2}},
    {"return argmax(floor(a / 3), axis=-1, keepdims=true)", i32, {2, 1}, {0, 0}},
    {"return argmin(v, 0)", i32, {}, {1}},
    {"return argmin(u, 0) + argmax(c, 0)", i32, {}, {1}},
    {"return argmax(where(v < 0, nan, v), 0)", i32, {}, {1}},
    {"return argmin(where(v < 0, nan, v), 0)", i32, {}, {1}},
    {"return cumsum(a, 0)", f32, {2, 3}, {0, 1, 2, 3, 5, 7}},
    {"return cumsum(c, 0)", i32, {3}, {1, 1, 2}},
    {"return cumprod(v, -1)", f32, {3}, {1, -2, -6}},
    {"return cumprod(h, 0)", DType::F16, {3}, {0.5, 1, -1}},
    {"return cumsum(ones([700]), 0)[254:700:111]", f32, {5}, {255, 366, 477, 588, 699}},
    {"return gather(a, i % 2, 0)", f32, {2, 2}, {3, 4, 0, 4}},
    {"return gather(a, i - 6, 1)", f32, {2, 2}, {1, 0, 0, 0}},
    {"return take(v, i - 5)", f32, {2, 2}, {3, 0, 0, 0}},
    {"return take(a, cast(c, i32), axis=1)", f32, {2, 3}, {1, 0, 1, 4, 3, 4}},
    {"return embedding(a, u - 99)", f32, {2, 3}, {0, 0, 0, 3, 4, 5}},
    {"return one_hot(i - 6, 3)", i32, {2, 2, 3}, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"return one_hot(arange(2), 2) @ a", f32, {2, 3}, {0, 1, 2, 3, 4, 5}},
    {"return rand([2, 2], 0)", f32, {2, 2}, {0x6b2001p-24, 0x508efbp-24, 0x64a626p-24, 0xb8abc4p-24}},
    {"return rand([100], 7)[70]", f32, {}, {0x9473ddp-24}},
    // windows
    {"return conv2d(reshape(a, [1, 1, 2, 3]), ones([1, 1, 2, 2]))", f32, {1, 1, 1, 2}, {8, 12}},
    {"return conv2d(reshape(a, [1, 1, 2, 3]), ones([2, 1, 1, 2]), v[:2], stride=[1, 2], padding=[0, 1])", f32, {1, 2, 2, 2}, {1, 4, 4, 10, -2, 1, 1, 7}},
    {"return conv2d(reshape(arange(9), [1, 1, 3, 3]), ones([1, 1, 2, 2]), dilation=2)", f32, {1, 1, 1, 1}, {16}},
    {"return conv2d(reshape(a, [1, 2, 1, 3]), reshape(arange(4) + 1, [2, 1, 1, 2]), groups=2)", f32, {1, 2, 1, 2}, {2, 5, 25, 32}},
    {"return conv2d(reshape(u, [1, 1, 1, 2]), reshape(u, [1, 1, 1, 2]))", i32, {1, 1, 1, 1}, {50000}},
    {"return conv_transpose2d(reshape(v, [1, 1, 1, 3]), reshape(a[0] + 1, [1, 1, 1, 3]), stride=[1, 2])", f32, {1, 1, 1, 7}, {1, 2, 1, -4, -3, 6, 9}},
    {"return conv_transpose2d(reshape(v, [1, 1, 1, 3]), ones([1, 2, 1, 3]), ones([2]), padding=[0, 1])", f32, {1, 2, 1, 3}, {0, 3, 2, 0, 3, 2}},
    {"return conv_transpose2d(reshape(v, [1, 1, 1, 3]), ones([1, 1, 1, 1]), stride=[1, 2], output_padding=[0, 1])", f32, {1, 1, 1, 6}, {1, 0, -2, 0, 3, 0}},
    {"return max_pool2d(reshape(a, [1, 1, 2, 3]), [2, 2], stride=1)", f32, {1, 1, 1, 2}, {4, 5}},
    {"return max_pool2d(reshape(a - 9, [2, 3]), [1, 2], padding=[0, 1], stride=2)", f32, {1, 2}, {-9, -7}},
    {"return max_pool2d(reshape(u, [1, 1, 2]), [1, 2], ceil=true)", DType::U8, {1, 1, 1}, {200}},
    {"return max_pool2d(a, [2, 2], ceil=true)", f32, {1, 2}, {4, 5}},
    {"return avg_pool2d(a, 2)", f32, {1, 1}, {2}},
    {"return avg_pool2d(a, [1, 2], padding=[0, 1])", f32, {2, 2}, {0, 1.5, 1.5, 4.5}},
    {"return avg_pool2d(a, [1, 2], padding=[0, 1], count_include_pad=false)", f32, {2, 2}, {0, 1.5, 3, 4.5}},
    {"return avg_pool2d(a, [1, 2], ceil=true)", f32, {2, 2}, {0.5, 2, 3.5, 5}},
    {"return avg_pool2d(a, [2, 2], stride=2, padding=1, ceil=true)", f32, {2, 2}, {0, 0.75, 0.75, 2.25}},
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

/// Equal up to a few roundings of f32; NaN and infinities match in place.
inline bool close(double have, double want) {
  if (std::isnan(want)) return std::isnan(have);
  return have == want || std::fabs(have - want) <= 3e-6 * std::max(1.0, std::fabs(want));
}

}  // namespace beamline::workloads::language
