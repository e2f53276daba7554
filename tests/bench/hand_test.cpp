// The kernels written by hand compute what they say, on both vector widths; shapes with a tail
// where they allow one.
#include "tests/bench/hand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "devices/cpu/topology.h"

namespace beamline::bench {
namespace {

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Memory = std::unique_ptr<float[], Free>;

Memory memory(size_t n) {
  return Memory(static_cast<float*>(std::aligned_alloc(64, (n * sizeof(float) + 63) / 64 * 64)));
}

using Row = std::vector<double>;
using Truth = std::function<Row(const HandArgs&)>;

Row each(const HandArgs& a, const std::function<double(double, double)>& f) {
  Row out;
  for (int64_t i = 0; i < a.rows * a.columns; i++)
    out.push_back(f(a.in[0][i], a.in[1] ? a.in[1][i] : 0));
  return out;
}

Row gelu(const HandArgs& a) {
  return each(a, [](double x, double) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
}

Row softmax(const HandArgs& a) {
  Row out;
  for (int64_t r = 0; r < a.rows; r++) {
    const float* x = a.in[0] + r * a.columns;
    double sum = 0;
    for (int64_t i = 0; i < a.columns; i++) sum += std::exp(x[i]);
    for (int64_t i = 0; i < a.columns; i++) out.push_back(std::exp(x[i]) / sum);
  }
  return out;
}

Row layer_norm(const HandArgs& a) {
  Row out;
  for (int64_t r = 0; r < a.rows; r++) {
    const float* x = a.in[0] + r * a.columns;
    const auto n = static_cast<double>(a.columns);
    double mean = 0, var = 0;
    for (int64_t i = 0; i < a.columns; i++) mean += x[i] / n;
    for (int64_t i = 0; i < a.columns; i++) var += (x[i] - mean) * (x[i] - mean) / n;
    for (int64_t i = 0; i < a.columns; i++)
      out.push_back((x[i] - mean) / std::sqrt(var + a.epsilon) * a.in[1][i] + a.in[2][i]);
  }
  return out;
}

Row transpose(const HandArgs& a) {
  Row out;
  for (int64_t c = 0; c < a.columns; c++)
    for (int64_t r = 0; r < a.rows; r++) out.push_back(a.in[0][r * a.columns + c]);
  return out;
}

Row max_pool(const HandArgs& a) {
  Row out;
  for (int64_t r = 0; r < a.rows; r += 2)
    for (int64_t c = 0; c + 1 < a.columns; c += 2) {
      const float* x = a.in[0] + r * a.columns + c;
      out.push_back(std::max(std::max(x[0], x[1]), std::max(x[a.columns], x[a.columns + 1])));
    }
  return out;
}

Row sums(const HandArgs& a, bool over_rows) {
  Row out(static_cast<size_t>(over_rows ? a.columns : a.rows));
  for (int64_t r = 0; r < a.rows; r++)
    for (int64_t c = 0; c < a.columns; c++)
      out[static_cast<size_t>(over_rows ? c : r)] += a.in[0][r * a.columns + c];
  return out;
}

struct Line {
  const char* name;
  HandOp op;
  int64_t rows, columns;
  Truth truth;
};

TEST(HandKernels, ComputeWhatTheySay) {
  // clang-format off
  const Line lines[] = {
      {"add",        HandOp::Add,       4,   96,  [](const HandArgs& a) { return each(a, std::plus<double>()); }},
      {"gelu",       HandOp::Gelu,      4,   96,  gelu},
      {"softmax",    HandOp::Softmax,   3,   96,  softmax},
      {"layer_norm", HandOp::LayerNorm, 3,   128, layer_norm},
      {"transpose",  HandOp::Transpose, 64,  256, transpose},
      {"max_pool",   HandOp::MaxPool,   8,   56,  max_pool},
      {"max_pool",   HandOp::MaxPool,   4,   64,  max_pool},
      {"row_sum",    HandOp::RowSum,    5,   256, [](const HandArgs& a) { return sums(a, false); }},
      {"column_sum", HandOp::ColumnSum, 16,  48,  [](const HandArgs& a) { return sums(a, true); }},
  };
  // clang-format on
  const CpuModel model = read_cpu_model();
  if (!model.has("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  for (const Line& l : lines) {
    const auto n = static_cast<size_t>(l.rows * l.columns);
    std::vector<Memory> in;
    HandArgs args;
    args.rows = l.rows, args.columns = l.columns;
    for (size_t k = 0; k < 3; k++) {
      in.push_back(memory(n));
      for (size_t i = 0; i < n; i++)
        in[k][i] = static_cast<float>(static_cast<int>((i * 37 + k * 11) % 127) - 63) / 16;
      args.in[k] = in[k].get();
    }
    const Row want = l.truth(args);
    for (const bool wide : {false, true})
      for (const bool streaming : {false, true}) {
        if (wide && !model.has("avx512vl")) continue;
        const HandKernel kernel = wide ? hand_avx512(l.op, streaming) : hand_avx2(l.op, streaming);
        if (kernel == nullptr) continue;
        const Memory out = memory(n);
        std::fill(out.get(), out.get() + n, NAN);
        args.out = out.get();
        kernel(args);
        for (size_t i = 0; i < want.size(); i++)
          ASSERT_NEAR(out[i], want[i], 2e-6 * (1 + std::fabs(want[i])))
              << l.name << (wide ? " of 16 lanes" : " of 8 lanes")
              << (streaming ? ", streaming" : "") << ", element " << i;
      }
  }
}

}  // namespace
}  // namespace beamline::bench
