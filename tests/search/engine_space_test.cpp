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

// sum(x, axis=1) of a 64 x 96 matrix.
std::string kernel_text() {
  Arena arena;
  Arena::Scope scope(arena);
  const int64_t shape[] = {64, 96};
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

TEST(EngineSpace, BadTextsAreRefused) {
  EXPECT_THROW(engine_space("no kernel", Target{}), std::invalid_argument);
  auto space = engine_space(kernel_text(), Target{});
  EXPECT_TRUE(space->extensions("NOSUCH:0:4").empty());
  EXPECT_TRUE(space->extensions("UPCAST:99:4").empty());
}

}  // namespace
}  // namespace beamline::search
