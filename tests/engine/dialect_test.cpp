// Small kernels in every dialect for GPUs, as golden texts: tests/golden/DIALECT.txt, which
// UPDATE_GOLDEN=1 writes anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/tensor/tensor_ops.h"

#include "test_paths.h"

namespace beamline {
namespace {

UOp input(int64_t slot, DType t, Ints shape) {
  ParamArg a;
  a.slot = slot;
  return param(a, t, shape);
}
std::string ast_of(UOp value) {
  return print_uops(make_kernels(make(Op::SINK, DType::Void, {value})).kernels.at(0).ast);
}

// clang-format off
struct Case {
  const char* name;
  UOp (*build)(TensorOps& t);
  const char* opts;
  bool product;  // by a tensor core
};
const Case cases[] = {
    {"elementwise, four at a time", [](TensorOps& t) { return t.relu(t.add(t.mul(input(0, DType::F32, {512}), input(1, DType::F32, {512})), input(2, DType::F32, {512}))); }, "UPCAST:0:4;LOCAL:0:32", false},
    {"a sum by a group", [](TensorOps& t) { return t.sum(input(0, DType::F32, {64, 256}), {{1}}, false); }, "GROUP:0:16;UNROLL:0:4", false},
    {"the sine of halves", [](TensorOps& t) { return t.sin(input(0, DType::F16, {64})); }, "LOCAL:0:16", false},
    {"a product of halves", [](TensorOps& t) { return t.matmul(input(0, DType::F16, {32, 64}), input(1, DType::F16, {64, 32})); }, "TC:0:(-1,2,1)", true},
};
struct Dialect {
  const char *renderer, *target;
};
constexpr Dialect dialects[] = {
    {"opencl", "emulator:sm_80"}, {"cuda", "emulator:sm_80"}, {"hip", "emulator:rdna3"}, {"metal", "emulator:metal"},
};
// clang-format on

TEST(Dialects, TextsAreThoseOfTheGoldenFiles) {
  for (const Dialect& d : dialects) {
    std::string now;
    for (const Case& c : cases) {
      if (c.product && std::string(d.renderer) == "opencl") continue;
      Arena arena;
      const Arena::Scope scope(arena);
      TensorOps t;
      RenderRequest request{ast_of(c.build(t)), c.opts, *emulated_target(d.target), false};
      request.renderer = d.renderer;
      const auto out = render_kernel(request);
      if (const auto* r = std::get_if<Refusal>(&out)) FAIL() << d.renderer << ": " << r->reason;
      const auto& kernel = std::get<RenderedKernel>(out);
      now += fmt::format("// ---- {}: {}\n{}\n", c.name, c.opts, kernel.source);
    }
    const std::string path = fmt::format("{}/tests/golden/{}.txt", BEAMLINE_SOURCE_DIR, d.renderer);
    if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
    std::stringstream want;
    want << std::ifstream(path).rdbuf();
    EXPECT_EQ(now, want.str()) << path;
  }
}

TEST(Dialects, WhatTheyLackIsSaid) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const auto refusal = [](UOp value, const char* opts, const Target& target, const char* renderer) {
    RenderRequest request{ast_of(value), opts, target, false};
    request.renderer = renderer;
    const auto out = render_kernel(request);
    const auto* r = std::get_if<Refusal>(&out);
    return r ? r->reason : "";
  };
  const Target nvidia = *emulated_target("emulator:sm_80"),
               apple = *emulated_target("emulator:metal");
  const UOp doubles = t.neg(input(0, DType::F64, {8}));
  const UOp product = t.matmul(input(0, DType::F16, {16, 16}), input(1, DType::F16, {16, 16}));
  EXPECT_EQ(refusal(doubles, "", apple, ""), "C renderer (Metal): no code for dtype f64");
  EXPECT_EQ(refusal(product, "TC:0:(-1,2,1)", nvidia, "opencl"),
            "C renderer (OpenCL): no code for tensor core cuda 8x16x16 f16 f32");
  EXPECT_EQ(refusal(product, "TC:0:(-1,2,1)", nvidia, "metal"),
            "C renderer (Metal): no code for tensor core cuda 8x16x16 f16 f32");
  EXPECT_EQ(refusal(product, "", nvidia, "wgsl"), "there is no renderer 'wgsl'");
  EXPECT_EQ(refusal(product, "", nvidia, "llvm"),
            "renderer 'llvm' is not for kernels of emulator:sm_80");
  EXPECT_EQ(refusal(product, "", Target(), "cuda"), "renderer 'cuda' is not for kernels of cpu");
}

}  // namespace
}  // namespace beamline
