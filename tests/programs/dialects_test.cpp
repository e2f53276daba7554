// The texts for GPUs through the compilers of their vendors' languages: random programs with random
// legal opts on every emulated target, and a product for each tensor core.
#include <gtest/gtest.h>

#include <map>

#include <fmt/format.h>

#include "devices/cpu/clang_compiler.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/tensor_core.h"
#include "engine/rangeify/prepare.h"
#include "engine/render/c_style.h"
#include "tests/programs/gpu_text.h"
#include "tests/programs/loops.h"
#include "tests/programs/machine.h"
#include "tests/programs/settings.h"

namespace beamline::fuzz {
namespace {

// A text, or nothing where the dialect says what it lacks.
void add(std::vector<std::string>& texts, std::map<std::string, size_t>& refused,
         const std::string& ast, const std::string& opts, const Target& target,
         const std::string& renderer = "") {
  RenderRequest request{ast, opts, target, false};
  request.renderer = renderer;
  const auto rendered = render_kernel(request);
  if (const auto* r = std::get_if<Refusal>(&rendered))
    refused[r->reason]++;
  else
    texts.push_back(std::get<RenderedKernel>(rendered).source);
}

// c[m, n] = sum of a[m, k] * b[k, n] with the types of a tensor core: two of its products along
// each axis.
std::string product_of(const TensorCore& core) {
  Arena arena;
  const Arena::Scope scope(arena);
  const MatrixShape& s = *core.shape;
  const int64_t sizes[] = {2 * s.m, 2 * s.n, 2 * s.k};
  const auto memory = [](int64_t slot, DType t, int64_t elements) {
    ParamArg a;
    a.slot = slot;
    const int64_t shape[] = {elements};
    return param(a, t, shape);
  };
  const auto element = [](UOp m, UOp at) { return make(Op::INDEX, m.dtype(), {m, at}); };
  const UOp m = range(sizes[0], 0, AxisType::WEAK), n = range(sizes[1], 1, AxisType::WEAK),
            k = range(sizes[2], 2, AxisType::REDUCE);
  const UOp a = element(memory(1, core.in, sizes[0] * sizes[2]), m * iconst(sizes[2]) + k);
  const UOp b = element(memory(2, core.in, sizes[2] * sizes[1]), k * iconst(sizes[1]) + n);
  const UOp steps[] = {k};
  const UOp sum = reduce(Op::ADD, cast(a, core.out) * cast(b, core.out), steps, 0);
  const UOp c = element(memory(0, core.out, sizes[0] * sizes[1]), m * iconst(sizes[1]) + n);
  const UOp store = make(Op::STORE, DType::Void, {c, sum});
  return print_uops(
      prepare(make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, m, n})})).ast);
}

class OfChip : public testing::TestWithParam<std::string_view> {
 protected:
  std::string chip() const { return std::string(GetParam().substr(GetParam().find(':') + 1)); }
  // Random kernels of `count` programs, and those of the tensor cores.
  std::vector<std::string> texts(uint64_t count) {
    Target target = *emulated_target(GetParam());
    target.allow_tf32 = true;
    std::vector<std::string> out;
    std::map<std::string, size_t> refused;
    size_t index = 0;
    for (const TensorCore* core : tensor_cores(target)) {
      const size_t before = out.size();
      add(out, refused, product_of(*core), fmt::format("TC:0:({},2,1)", index++), target);
      EXPECT_EQ(out.size(), before + 1) << core->name();
      if (out.size() > before) {
        EXPECT_NE(out.back().find("mma_"), std::string::npos) << out.back();
      }
    }
    const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1);
    for (uint64_t seed = first; seed < first + setting("BEAMLINE_FUZZ_COUNT", count); seed++)
      for (const auto& [ast, opts] :
           kernels_of(random_loops(seed), {Plan::Kind::Random, target, seed, {}, ""}))
        add(out, refused, ast, opts, target);
    fmt::print("{}: {} texts in {}\n", GetParam(), out.size(), default_renderer(target));
    for (const auto& [why, n] : refused) {
      fmt::print("  {} refused: {}\n", n, why);
      EXPECT_EQ(why, "C renderer (Metal): no code for dtype f64");
    }
    return out;
  }
};

TEST_P(OfChip, ClangCompilesTheTexts) {
  if (clang_toolchain().empty()) GTEST_SKIP() << "there is no clang";
  const Target target = *emulated_target(GetParam());
  const std::string renderer(default_renderer(target));
  EXPECT_NE(clang_refuses({"no text of a kernel"}, renderer, chip()), "");
  EXPECT_EQ(clang_refuses(texts(programs / 20), renderer, chip()), "");
}

class OfNvidia : public OfChip {};

TEST_P(OfNvidia, NvccCompilesTheTexts) {
  if (!has_nvcc())
    GTEST_SKIP() << "SKIPPED: there is no nvcc, CUDA texts were checked by clang only";
  EXPECT_NE(nvcc_refuses({"no text of a kernel"}, chip()), "");
  EXPECT_EQ(nvcc_refuses(texts(programs / 100), chip()), "");
}

std::vector<std::string_view> nvidia() {
  std::vector<std::string_view> out = emulated_targets();
  std::erase_if(out, [](std::string_view t) { return t.find(":sm_") == t.npos; });
  return out;
}
std::string chip_name(const testing::TestParamInfo<std::string_view>& p) {
  return std::string(p.param.substr(p.param.find(':') + 1));
}
INSTANTIATE_TEST_SUITE_P(All, OfChip, testing::ValuesIn(emulated_targets()), chip_name);
INSTANTIATE_TEST_SUITE_P(All, OfNvidia, testing::ValuesIn(nvidia()), chip_name);

}  // namespace
}  // namespace beamline::fuzz
