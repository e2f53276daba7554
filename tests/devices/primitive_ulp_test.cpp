// How far the vector code of the primitive transcendentals is from the exact value, in units of the
// last place of f32: every 997th bit pattern and the edges. At most 1.5.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "devices/cpu/blob.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

struct Primitive {
  const char* name;
  Op op;
  double (*exact)(double);
};
const Primitive primitives[] = {
    {"exp2", Op::EXP2, [](double x) { return std::exp2(x); }},
    {"log2", Op::LOG2, [](double x) { return std::log2(x); }},
    {"sqrt", Op::SQRT, [](double x) { return std::sqrt(x); }},
    {"reciprocal", Op::RECIPROCAL, [](double x) { return 1 / x; }},
};

constexpr int64_t chunk = 1 << 16;

CodeBlob kernel_of(Op op) {
  Arena arena;
  const Arena::Scope scope(arena);
  ParamArg a;
  const int64_t shape[] = {chunk};
  const UOp root = alu(op, {param(a, DType::F32, shape)});
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {root}));
  const auto rendered = render_kernel({print_uops(g.kernels[0].ast), "UPCAST:0:8", {}, false});
  const auto& text = std::get<RenderedKernel>(rendered);
  const auto compiled = compile_ir(text.source, text.entry);
  const auto& blob = std::get<CompiledBlob>(compiled);
  return std::get<CodeBlob>(CodeBlob::map(blob.code, blob.entry_offset));
}

double ulps(float got, double exact) {
  const auto want = static_cast<float>(exact);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(want) || std::isinf(got)) {
    // The largest float may round up, and what exceeds it by less than a unit may round down.
    const double limit = std::ldexp(1.0, 128);
    const double value = std::isinf(got) ? std::copysign(limit, got) : static_cast<double>(got);
    const double target =
        std::isinf(want) && std::fabs(exact) >= limit ? std::copysign(limit, exact) : exact;
    return value == target ? 0 : std::fabs(value - target) / std::ldexp(1.0, 104);
  }
  const int exponent = std::max(std::ilogb(exact == 0 ? 0x1p-149 : exact), -126);
  return std::fabs(static_cast<double>(got) - exact) / std::ldexp(1.0, exponent - 23);
}

class Ulp : public testing::TestWithParam<Primitive> {};

TEST_P(Ulp, IsAtMostOneAndAHalf) {
  const CodeBlob code = kernel_of(GetParam().op);
  std::vector<float> in(chunk), out(chunk);
  double worst = 0;
  float where = 0;
  const auto run = [&] {
    void* buffers[] = {out.data(), in.data()};
    code.entry()(buffers, 0);
    for (size_t i = 0; i < in.size(); i++) {
      const double error = ulps(out[i], GetParam().exact(static_cast<double>(in[i])));
      if (error > worst) worst = error, where = in[i];
    }
  };
  const float edges[] = {0.0f,
                         -0.0f,
                         1.0f,
                         -1.0f,
                         0.5f,
                         2.0f,
                         INFINITY,
                         -INFINITY,
                         NAN,
                         0x1p-126f,
                         0x1p-149f,
                         -0x1p-149f,
                         0x1.fffffep127f,
                         -0x1.fffffep127f,
                         127.99999f,
                         128.0f,
                         129.0f,
                         -126.0f,
                         -126.5f,
                         -148.9f,
                         -149.0f,
                         -149.5f,
                         -150.0f,
                         -150.5f,
                         -151.0f,
                         -1000.0f,
                         1000.0f,
                         0x1.fffffep-127f,
                         0.99999994f,
                         1.0000001f,
                         0.70710677f,
                         0.70710683f};
  std::copy(std::begin(edges), std::end(edges), in.begin());
  run();
  EXPECT_LE(worst, 1.5) << "at the edge " << where;
  uint64_t bits = 0;
  while (bits <= UINT32_MAX) {
    for (float& x : in) {
      x = std::bit_cast<float>(static_cast<uint32_t>(std::min<uint64_t>(bits, UINT32_MAX)));
      bits += 997;
    }
    run();
  }
  EXPECT_LE(worst, 1.5) << "at " << where;
  RecordProperty("worst_ulp", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(All, Ulp, testing::ValuesIn(primitives),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace beamline
