// The functions of real numbers as machine code: every 61st bit pattern and the edges stay within
// the stated bounds. build/release/bin/ulp looks at every pattern.
#include "tests/devices/transcendentals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "devices/cpu/cpu_target.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

constexpr int64_t count = 1 << 14;

class Ulp : public testing::TestWithParam<Transcendental> {};

TEST_P(Ulp, StaysWithinTheStatedBound) {
  const Transcendental& f = GetParam();
  Target target = cpu_target(read_cpu_model(), read_topology(), 1);
  double worst = 0;
  // With the processor's own instructions, and written out.
  for (const std::string& instructions : {target.instructions, std::string("sse2 fma f16c")}) {
    target.instructions = instructions;
    const CodeBlob code = code_of(f, count, target);
    const UlpError edge = greatest_error_at_edges(f, code, count);
    EXPECT_LE(edge.ulps, f.bound) << "at the edge " << edge.at << ", " << instructions;
    // Either sign of each: 2^32 / 61 patterns in all.
    const UlpError e = greatest_error(f, code, count, 0, uint64_t{1} << 31, 61);
    EXPECT_LE(e.ulps, f.bound) << "at " << e.at << ", " << instructions;
    worst = std::max({worst, e.ulps, edge.ulps});
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

// Powers of two are scaled by in one instruction where there is one, and by nothing else.
TEST(Exponential, IsScaledByTheProcessor) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const int64_t shape[] = {64};
  const UOp x = param({}, DType::F32, shape);
  for (UOp root : {t.exp2(x), t.sigmoid(x), t.exp(t.sub(x, t.max(x, {{0}, false}, true)))}) {
    const KernelAst k = make_kernels(make(Op::SINK, DType::Void, {root})).kernels.back();
    for (const int bytes : {64, 32, 16}) {
      Target target;
      target.vector_bytes = bytes;
      const std::string opts = opts_text(cpu_heuristic(k.ast, target));
      const std::string name = "llvm.x86.avx512.mask.scalef.ps." + std::to_string(bytes * 8);
      const auto text = [&] {
        return std::get<RenderedKernel>(render_kernel({print_uops(k.ast), opts, target, false}))
            .source;
      };
      EXPECT_EQ(text().find("scalef"), std::string::npos);
      target.instructions = "sse2 avx512vl";
      EXPECT_NE(text().find("call <" + std::to_string(bytes / 4) + " x float> @" + name),
                std::string::npos)
          << text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ulp, testing::ValuesIn(transcendentals()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(UlpOf, CountsUnitsOfTheExactValue) {
  struct Case {
    float got;
    double exact, want;
  };
  const Case cases[] = {
      {1.0f, 1.0, 0},
      {1.0f, 1.0 + 0x1p-23, 1},
      {1.0f, 1.0 - 0x1p-24, 1},  // below a power of two units are half as large
      {0.0f, 0x1p-149, 1},
      {0x1p-149f, 0x1p-150, 0.5},
      {0x1.fffffep127f, 0x1p128, 1},
      {INFINITY, 1e300, 0},
      {-INFINITY, 1e300, 0x1p25},
      {NAN, NAN, 0},
      {NAN, 1.0, INFINITY},
  };
  for (const Case& c : cases) EXPECT_EQ(ulps(c.got, c.exact), c.want) << c.got << " " << c.exact;
}

}  // namespace
}  // namespace beamline
