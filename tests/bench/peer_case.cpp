#include "tests/bench/peer_case.h"

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "test_paths.h"
#include "workloads/selection.h"

namespace beamline::bench {
namespace {

Case memory_case(const std::string& name, HandOp op, int64_t rows, int64_t columns,
                 const std::string& inputs, const std::string& compute) {
  Case c;
  c.name = fmt::format("{}/{}x{}", name, rows, columns);
  c.group = "memory-bound";
  c.toml = fmt::format(
      "[[workload]]\nname = \"{}\"\nparams = {{ R = {}, C = {} }}\n"
      "inputs = {{ {} }}\ncompute = '''return {}'''\n",
      name, rows, columns, inputs, compute);
  c.kind = Case::Kind::Memory;
  c.op = op;
  c.rows = rows, c.columns = columns;
  return c;
}

std::vector<Case> memory_cases() {
  const std::string x = R"(x = "f32[R, C]")";
  const auto norm = x + R"(, w = "f32[C]", b = "f32[C]")";
  Case pool = memory_case("max_pool", HandOp::MaxPool, 8 * 64 * 112, 112,
                          R"(x = "f32[8, 64, R // 512, C]")", "max_pool2d(x, 2, stride=2)");
  // clang-format off
  return {
      memory_case("add",        HandOp::Add,       4096, 4096, R"(a = "f32[R, C]", b = "f32[R, C]")", "a + b"),
      memory_case("gelu_tanh",  HandOp::Gelu,      4096, 4096, x,    "gelu(x, approx=\"tanh\")"),
      memory_case("softmax",    HandOp::Softmax,   4096, 1024, x,    "softmax(x)"),
      memory_case("softmax",    HandOp::Softmax,   512,  512,  x,    "softmax(x)"),
      memory_case("layer_norm", HandOp::LayerNorm, 4096, 1024, norm, "layer_norm(x, w, b)"),
      memory_case("transpose",  HandOp::Transpose, 4096, 4096, x,    "contiguous(transpose(x))"),
      memory_case("sum_rows",   HandOp::RowSum,    4096, 4096, x,    "sum(x, axis=1)"),
      memory_case("sum_columns", HandOp::ColumnSum, 4096, 4096, x,   "sum(x, axis=0)"),
      pool,
  };
  // clang-format on
}

// He et al. 2015, table 1: every distinct convolution of ResNet-50 on an image of 224.
std::vector<Case> resnet_cases() {
  std::vector<Case> out;
  const auto add = [&](int64_t c, int64_t k, int64_t size, int64_t filter, int64_t stride) {
    ConvShape s{1, c, size, size, k, filter, filter, stride, stride, filter / 2, filter / 2};
    out.push_back(conv_case("ResNet-50 convolutions", s));
  };
  add(3, 64, 224, 7, 2);
  add(64, 64, 56, 1, 1);
  for (int64_t stage = 0, mid = 64, size = 56; stage < 4; stage++, mid *= 2, size /= 2) {
    if (stage > 0) {
      add(2 * mid, mid, 2 * size, 1, 1);
      add(mid, mid, 2 * size, 3, 2);
      add(2 * mid, 4 * mid, 2 * size, 1, 2);
    }
    add(mid, mid, size, 3, 1);
    add(mid, 4 * mid, size, 1, 1);
    add(4 * mid, mid, size, 1, 1);
  }
  return out;
}

int64_t param(const workloads::Params& params, const std::string& name) {
  for (const auto& [key, value] : params)
    if (key == name) return value;
  throw std::runtime_error("no param " + name);
}

std::vector<Case> deepbench_cases() {
  const workloads::Selection all =
      workloads::select({std::string(BEAMLINE_SOURCE_DIR) + "/workloads/deepbench.toml"});
  if (!all.errors.empty()) throw std::runtime_error(workloads::to_string(all.errors[0]));
  std::vector<Case> out;
  for (const workloads::Instance& i : all.instances) {
    const auto p = [&](const char* name) { return param(i.params, name); };
    if (i.workload == "conv")
      out.push_back(
          conv_case("DeepBench convolutions", {p("N"), p("C"), p("H"), p("W"), p("K"), p("R"),
                                               p("S"), p("SH"), p("SW"), p("PH"), p("PW")}));
    else if (i.workload.starts_with("gemm_"))
      out.push_back(product_case("DeepBench products", p("M"), p("N"), p("K"), i.workload[5] == 't',
                                 i.workload[6] == 't'));
  }
  return out;
}

// Always the same: std::shuffle may differ between libraries, this cannot.
std::vector<Case> sample(std::vector<Case> cases, size_t products, size_t convolutions) {
  std::mt19937 random(7);
  std::vector<Case> out;
  for (size_t i = cases.size(); i > 1; i--) std::swap(cases[i - 1], cases[random() % i]);
  for (Case& c : cases) {
    if (c.flops() > 10e9 || c.bytes() > 1e9) continue;
    size_t& left = c.kind == Case::Kind::Product ? products : convolutions;
    if (left == 0) continue;
    left--;
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace

double Case::flops() const {
  switch (kind) {
    case Kind::Product: return 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
    case Kind::Convolution:
      return 2.0 * static_cast<double>(conv.n * conv.k * conv.out_h() * conv.out_w()) *
             static_cast<double>(conv.c * conv.r * conv.s);
    case Kind::Memory: return 0;
  }
  return 0;
}

double Case::bytes() const {
  const auto cells = static_cast<double>(rows * columns);
  switch (kind) {
    case Kind::Product: return 4.0 * static_cast<double>(m * k + k * n + m * n);
    case Kind::Convolution:
      return 4.0 * static_cast<double>(conv.n * conv.c * conv.h * conv.w +
                                       conv.k * conv.c * conv.r * conv.s +
                                       conv.n * conv.k * conv.out_h() * conv.out_w());
    case Kind::Memory:
      switch (op) {
        case HandOp::Add: return 12 * cells;
        case HandOp::MaxPool: return 5 * cells;
        case HandOp::RowSum: return 4 * cells + 4.0 * static_cast<double>(rows);
        case HandOp::ColumnSum: return 4 * cells + 4.0 * static_cast<double>(columns);
        case HandOp::LayerNorm: return 8 * cells + 8.0 * static_cast<double>(columns);
        default: return 8 * cells;
      }
  }
  return 0;
}

Case product_case(const std::string& group, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  Case c;
  c.name = fmt::format("gemm_{}{}/{}x{}x{}", ta ? 't' : 'n', tb ? 't' : 'n', m, n, k);
  c.group = group;
  c.toml = fmt::format(
      "[[workload]]\nname = \"gemm\"\nparams = {{ M = {}, N = {}, K = {} }}\n"
      "inputs = {{ a = \"f32[{}]\", b = \"f32[{}]\" }}\ncompute = \"return {} @ {}\"\n",
      m, n, k, ta ? "K, M" : "M, K", tb ? "N, K" : "K, N", ta ? "transpose(a)" : "a",
      tb ? "transpose(b)" : "b");
  c.m = m, c.n = n, c.k = k, c.ta = ta, c.tb = tb;
  return c;
}

Case conv_case(const std::string& group, const ConvShape& s) {
  Case c;
  c.name = fmt::format("conv/{}x{}x{}x{},{}x{}->{}", s.n, s.c, s.h, s.w, s.r, s.s, s.k);
  if (s.stride_h != 1 || s.stride_w != 1) c.name += fmt::format(",s{}{}", s.stride_h, s.stride_w);
  c.group = group;
  c.toml = fmt::format(
      "[[workload]]\nname = \"conv\"\ninputs = {{ x = \"f32[{}, {}, {}, {}]\", "
      "w = {{ dtype = \"f32[{}, {}, {}, {}]\", const = true }} }}\n"
      "compute = \"return conv2d(x, w, stride=[{}, {}], padding=[{}, {}])\"\n",
      s.n, s.c, s.h, s.w, s.k, s.c, s.r, s.s, s.stride_h, s.stride_w, s.pad_h, s.pad_w);
  c.kind = Case::Kind::Convolution;
  c.conv = s;
  return c;
}

std::vector<Case> peer_cases(bool all) {
  std::vector<Case> out;
  for (int64_t n : {256, 512, 1024, 2048}) out.push_back(product_case("squares", n, n, n));
  const std::string shapes = "products of the design study";
  using Shape = std::array<int64_t, 3>;
  for (const Shape& s : {Shape{1760, 128, 1760},
                         {2560, 64, 2560},
                         {35, 700, 2048},
                         {5124, 700, 2048},
                         {1024, 8, 50000},
                         {3072, 1, 1024},
                         {127, 129, 131},
                         {7680, 16, 2560},
                         {4096, 1, 4096}})
    out.push_back(product_case(shapes, s[0], s[1], s[2]));
  out.push_back(product_case(shapes, 1760, 128, 1760, true));
  std::vector<Case> deepbench = deepbench_cases();
  for (std::vector<Case> part :
       {all ? deepbench : sample(deepbench, 16, 8),
        resnet_cases(),
        {conv_case("convolution of batch 8", {8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1})},
        memory_cases()})
    for (Case& c : part) out.push_back(std::move(c));
  return out;
}

}  // namespace beamline::bench
