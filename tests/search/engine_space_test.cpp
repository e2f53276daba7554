#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/target.h"
#include "engine/rangeify/rangeify.h"
#include "search/space.h"

namespace beamline::search {
namespace {

// sum(x, axis=1) of a matrix.
std::string kernel_text(int64_t rows = 64, int64_t columns = 96) {
  Arena arena;
  Arena::Scope scope(arena);
  const int64_t shape[] = {rows, columns};
  ParamArg p;
  p.slot = 0;
  UOp x = param(p, DType::F32, shape);
  UOp perm = make(Op::PERMUTE, DType::F32, {x}, 0, intern(Ints{1, 0}));
  UOp sum = reduce(Op::ADD, perm, {}, 1);
  KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {sum}));
  return print_uops(g.kernels.at(0).ast);
}

TEST(EngineSpace, ActionsOfAKernelAreDistinctAndStable) {
  std::string text = kernel_text();
  auto space = engine_space(text, Target{});
  auto first = space->extensions("");
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), first.size());
  EXPECT_EQ(engine_space(text, Target{})->extensions(""), first);
  for (const std::string& deeper : space->extensions(first[0]))
    EXPECT_TRUE(deeper.starts_with(first[0] + ";")) << deeper;
}

// Where there is work for two threads, the heuristic's schedule on two is the first start.
TEST(EngineSpace, ThreadsAreTheFirstStart) {
  Target target;
  target.threads = 2;
  const auto large = engine_space(kernel_text(8192, 8192), target);
  const auto starts = large->starts();
  ASSERT_FALSE(starts.empty());
  EXPECT_TRUE(starts[0].find("THREAD:0:2") != std::string::npos) << starts[0];
  EXPECT_EQ(std::set<std::string>(starts.begin(), starts.end()).size(), starts.size());
  EXPECT_FALSE(std::set<std::string>(starts.begin(), starts.end()).contains(large->heuristic()));
  for (const std::string& opts : engine_space(kernel_text(), target)->starts())
    EXPECT_TRUE(opts.find("THREAD") == std::string::npos) << opts;
}

TEST(EngineSpace, BadTextsAreRefused) {
  EXPECT_THROW(engine_space("no kernel", Target{}), std::invalid_argument);
  auto space = engine_space(kernel_text(), Target{});
  EXPECT_TRUE(space->extensions("NOSUCH:0:4").empty());
  EXPECT_TRUE(space->extensions("UPCAST:99:4").empty());
}

}  // namespace
}  // namespace beamline::search
