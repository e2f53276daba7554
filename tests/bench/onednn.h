// The competitor from Debian: oneDNN on the CPU. Plain tensors in and out (row-major, NCHW);
// weights are laid out once, outside the timing. It chooses its kernels; what it chose is said, and
// reference code or too narrow vectors make a comparison of products and convolutions void.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace beamline::bench {

struct DnnlRun {
  std::string name;  // "plain, gemm:jit", the implementation as oneDNN calls it
  std::function<void()> run;
  bool reference = false;  // its slow fallback
};

struct ConvShape {
  int64_t n = 1, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t out_h() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t out_w() const { return (w + 2 * pad_w - s) / stride_w + 1; }
};

/// Limits it to `threads`; empty, or why a comparison with it would not be fair. A variable that
/// steers it is allowed only where the program has set it itself (`own_variables`).
std::string dnnl_crippled(int threads, bool own_variables = false);
/// "2.6.3, AVX512_CORE".
std::string dnnl_version_and_core();

// All pointers stay the caller's and must outlive the run; f32.
/// c[m, n] = op(a) op(b), an operand stored transposed where its flag is set.
DnnlRun dnnl_matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, float* c, float* a,
                    float* b);
/// Its plain path, and its own blocked layout with the activations' reorders, in this order.
std::vector<DnnlRun> dnnl_conv(const ConvShape& shape, float* y, float* x, float* w);
DnnlRun dnnl_softmax(int64_t rows, int64_t columns, float* y, float* x);
DnnlRun dnnl_layer_norm(int64_t rows, int64_t columns, float epsilon, float* y, float* x, float* w,
                        float* b);
DnnlRun dnnl_gelu(int64_t count, float* y, float* x);
DnnlRun dnnl_add(int64_t count, float* y, float* a, float* b);
DnnlRun dnnl_transpose(int64_t rows, int64_t columns, float* y, float* x);
DnnlRun dnnl_max_pool(int64_t planes, int64_t h, int64_t w, float* y, float* x);
/// Sums over the last axis, or over the first.
DnnlRun dnnl_sum(int64_t rows, int64_t columns, bool over_rows, float* y, float* x);

}  // namespace beamline::bench
