// Buffers that are alive together never share a byte, and the arena is not much larger than needed.
#include "engine/rangeify/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/ir/arena.h"
#include "engine/rangeify/rangeify.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

// The most that is alive at one time.
int64_t needed(const std::vector<Lifetime>& all) {
  int64_t most = 0;
  for (const Lifetime& at : all) {
    int64_t sum = 0;
    for (const Lifetime& o : all)
      if (o.first <= at.first && at.first <= o.last) sum += o.bytes;
    most = std::max(most, sum);
  }
  return most;
}

void expect_valid(const std::vector<Lifetime>& all, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), all.size());
  for (size_t i = 0; i < all.size(); i++) {
    EXPECT_EQ(plan.offsets[i] % 256, 0);
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_LE(plan.offsets[i] + all[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; j++) {
      const bool together = all[i].first <= all[j].last && all[j].first <= all[i].last;
      const bool shared = plan.offsets[i] < plan.offsets[j] + all[j].bytes &&
                          plan.offsets[j] < plan.offsets[i] + all[i].bytes;
      EXPECT_FALSE(together && shared) << i << " " << j;
    }
  }
}

TEST(MemoryPlan, Rows) {
  struct Row {
    const char* name;
    std::vector<Lifetime> buffers;
    int64_t bytes;
  };
  const Row rows[] = {
      {"nothing", {}, 0},
      {"one", {{100, 0, 3}}, 256},
      {"a chain needs two", {{256, 0, 1}, {256, 1, 2}, {256, 2, 3}, {256, 3, 4}}, 512},
      {"read and written by one kernel", {{256, 0, 2}, {256, 2, 3}}, 512},
      {"one after the other", {{256, 0, 1}, {256, 2, 3}}, 256},
      {"a hole in the middle", {{256, 0, 9}, {512, 0, 1}, {256, 0, 9}, {300, 2, 5}}, 1024},
      {"two small in one large", {{1024, 0, 1}, {512, 2, 3}, {512, 2, 3}}, 1024},
      {"holes that meet", {{256, 0, 1}, {256, 0, 1}, {512, 2, 3}}, 512},
      {"a hole at the end grows", {{256, 0, 9}, {256, 0, 1}, {512, 2, 3}}, 768},
  };
  for (const Row& r : rows) {
    SCOPED_TRACE(r.name);
    const MemoryPlan plan = plan_memory(r.buffers);
    expect_valid(r.buffers, plan);
    EXPECT_EQ(plan.bytes, r.bytes);
  }
}

TEST(MemoryPlan, RandomLifetimes) {
  std::mt19937 random(7);
  int64_t planned = 0, least = 0;
  for (int round = 0; round < 300; round++) {
    std::vector<Lifetime> all;
    const size_t kernels = 1 + random() % 60;
    for (size_t i = 0; i < random() % 80; i++) {
      const size_t first = random() % kernels;
      const int64_t blocks = 1 + static_cast<int64_t>(random() % (random() % 4 ? 4 : 64));
      all.push_back({blocks * 256, first, first + random() % 6});
    }
    const MemoryPlan plan = plan_memory(all);
    expect_valid(all, plan);
    EXPECT_GE(plan.bytes, needed(all));
    planned += plan.bytes, least += needed(all);
  }
  EXPECT_LT(static_cast<double>(planned), 1.25 * static_cast<double>(least));
}

TEST(MemoryPlan, AChainOfKernelsReusesItsTemporaries) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  ParamArg arg;
  const int64_t shape[] = {64, 64};
  UOp x = param(arg, DType::F32, shape);
  for (int i = 0; i < 10; i++) x = t.contiguous(t.softmax(x, {{-1}, false}));
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {x}));
  int64_t all = 0;
  size_t placed = 0;
  for (const BufferInfo& b : g.buffers) {
    EXPECT_EQ(b.offset >= 0, b.kind == BufferInfo::Kind::Temp);
    if (b.kind != BufferInfo::Kind::Temp) continue;
    all += b.elements * 4, placed++;
  }
  EXPECT_EQ(placed + 1, g.kernels.size());  // the last one writes the result
  EXPECT_LT(g.arena_bytes * 3, all);
}

}  // namespace
}  // namespace beamline
