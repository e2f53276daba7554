// The arena: one node for equal structure, a frozen base under scratch layers, reset, long chains.
#include "engine/ir/arena.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>

#include "engine/ir/print.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

TEST(Arena, EqualStructureIsOneNode) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp a = variable("a", 0, 7), b = variable("b", 0, 7);
  EXPECT_TRUE(a + b == b + a);
  EXPECT_TRUE((a + b) * iconst(2) == iconst(2) * (b + a));
  EXPECT_FALSE(a / b == b / a);
  EXPECT_FALSE(a == variable("a", 0, 8));
  const size_t before = arena.size();
  EXPECT_TRUE((a + b) * iconst(2) == (a + b) * iconst(2));
  EXPECT_EQ(arena.size(), before);
}

TEST(Arena, ConstantsOfDifferentMeaningStayApart) {
  Arena arena;
  Arena::Scope scope(arena);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const UOp values[] = {iconst(1),
                        iconst(1, DType::I32),
                        bool_const(true),
                        fconst(1, DType::F32),
                        fconst(1, DType::F64),
                        fconst(0.0, DType::F32),
                        fconst(-0.0, DType::F32),
                        fconst(nan, DType::F32),
                        iconst(0),
                        invalid()};
  for (size_t i = 0; i < std::size(values); i++)
    for (size_t j = 0; j < std::size(values); j++)
      EXPECT_EQ(values[i] == values[j], i == j) << i << " " << j;
  EXPECT_TRUE(fconst(nan, DType::F32) == fconst(-nan, DType::F32));
  EXPECT_TRUE(fconst(std::nan("7"), DType::F64) == fconst(nan, DType::F64));
  EXPECT_TRUE(fconst(0.1, DType::F32) == fconst(0.1f, DType::F32));
}

TEST(Arena, OrderOfOperandsIsTotal) {
  Arena arena;
  Arena::Scope scope(arena);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const UOp a = variable("a", 0, 7);
  const UOp nodes[] = {a,
                       a + iconst(1),
                       a * iconst(2),
                       iconst(3),
                       fconst(nan, DType::F32),
                       fconst(1, DType::F32),
                       fconst(-0.0, DType::F32),
                       fconst(0.0, DType::F32),
                       range(4, 0, AxisType::LOOP)};
  for (UOp x : nodes)
    for (UOp y : nodes) {
      const int xy = compare_structure(x, y), yx = compare_structure(y, x);
      EXPECT_EQ(xy == 0, x == y);
      EXPECT_EQ(xy > 0, yx < 0);
      EXPECT_TRUE(!x.is_const() || y.is_const() || xy > 0) << "constants come last";
    }
}

TEST(Arena, ScratchSeesItsBase) {
  Arena base;
  UOp in_base;
  {
    Arena::Scope scope(base);
    in_base = variable("a", 0, 7) + iconst(1);
  }
  base.freeze();
  Arena scratch(&base);
  Arena::Scope scope(scratch);
  EXPECT_TRUE(variable("a", 0, 7) + iconst(1) == in_base);
  EXPECT_EQ(scratch.size(), 0u);
  const UOp more = in_base * iconst(3);
  EXPECT_EQ(scratch.size(), 2u);  // the constant and the product
  EXPECT_GE(more.id(), base.size());
}

TEST(Arena, ResetForgetsAndReuses) {
  Arena base;
  {
    Arena::Scope scope(base);
    variable("a", 0, 7);
  }
  base.freeze();
  Arena scratch(&base);
  Arena::Scope scope(scratch);
  std::string first;
  size_t bytes = 0;
  for (int round = 0; round < 3; round++) {
    UOp u = variable("a", 0, 7);
    for (int i = 0; i < 5000; i++) u = (u * iconst(i + 2)) % iconst(1000003);
    const std::string text = print_uops(u);
    if (round == 0) first = text, bytes = scratch.bytes();
    EXPECT_EQ(text, first);
    EXPECT_EQ(scratch.bytes(), bytes);
    EXPECT_EQ(u.id(), base.size() + scratch.size() - 1);
    scratch.reset();
    EXPECT_EQ(scratch.size(), 0u);
  }
}

TEST(Arena, ThreadsOverOneBaseAgree) {
  Arena base;
  std::vector<UOp> leaves;
  {
    Arena::Scope scope(base);
    for (int i = 0; i < 20; i++) leaves.push_back(range(8 + i, i, AxisType::LOOP));
  }
  base.freeze();
  std::array<std::string, 4> text;
  std::array<uint32_t, 4> id{};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < text.size(); t++)
    threads.emplace_back([&, t] {
      Arena scratch(&base);
      Arena::Scope scope(scratch);
      UOp u = leaves[0];
      for (int i = 0; i < 300; i++)
        u = (u * iconst(3) + leaves[static_cast<size_t>(i) % 20]) % iconst(97 + i);
      u = simplify(u);
      text[t] = print_uops(u), id[t] = u.id();
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 1; t < text.size(); t++) {
    EXPECT_EQ(text[t], text[0]);
    EXPECT_EQ(id[t], id[0]);
  }
}

using ArenaDeathTest = ::testing::Test;
TEST(ArenaDeathTest, FrozenMeansReadOnly) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp one = iconst(1);
  arena.freeze();
  EXPECT_TRUE(iconst(1) == one);
  EXPECT_DEATH(iconst(2), "!frozen_");
}
TEST(ArenaDeathTest, IllFormedNodesAreBugs) {
  Arena arena;
  Arena::Scope scope(arena);
  const int64_t two[] = {2}, three[] = {3};
  const UOp a = param({}, DType::F32, two), b = param({}, DType::F32, three);
  EXPECT_DEATH(a + b, "do not broadcast");
}

// Every walk is iterative: a chain this long would overflow any recursion.
TEST(LongChain, OverflowsNoStack) {
  constexpr int length = 1'000'000;
  Arena arena;
  Arena::Scope scope(arena);
  UOp u = where(bool_const(true), variable("x", 0, 0, DType::F32), fconst(2, DType::F32));
  for (int i = 0; i < length; i++) u = alu(i % 2 ? Op::EXP2 : Op::SQRT, {u});
  EXPECT_EQ(toposort(u).size(), size_t{length} + 4);
  const UOp s = simplify(u);
  EXPECT_EQ(toposort(s).size(), size_t{length} + 1);  // rebuilt from the bottom to the top
  const std::string text = print_uops(s);
  EXPECT_EQ(static_cast<int>(std::count(text.begin(), text.end(), '\n')), length + 2);
  const auto back = parse_uops(text);
  ASSERT_TRUE(std::holds_alternative<UOp>(back));
  EXPECT_TRUE(std::get<UOp>(back) == s);
  EXPECT_EQ(kernel_key(s).size(), 64u);
  const UOp again =
      substitute(s, {{variable("x", 0, 0, DType::F32), variable("y", 0, 0, DType::F32)}});
  EXPECT_NE(compare_structure(s, again), 0);
}

// Both operands of every sum are deep and differ only far below: ordering them must not walk there.
TEST(LongChain, DeepOperandsAreOrderedInConstantTime) {
  constexpr int length = 1'000'000;
  const auto build = [](int64_t first) {
    UOp a = variable("x", 0, 0, DType::F32), b = fconst(static_cast<double>(first), DType::F32);
    for (int i = 0; i < length; i++) {
      const UOp next = alu(i % 3 == 0 ? Op::MUL : Op::ADD, {a, b});
      a = b, b = next;
    }
    return b;
  };
  Arena arena;
  Arena::Scope scope(arena);
  const UOp u = build(2), v = build(3);
  EXPECT_NE(compare_structure(u, v), 0);
  EXPECT_EQ(compare_structure(u, v) > 0, compare_structure(v, u) < 0);
  Arena other;
  Arena::Scope inner(other);
  for (int i = 0; i < 1000; i++) fconst(i, DType::F32);
  EXPECT_EQ(kernel_key(build(2)), kernel_key(u));
}

TEST(LongChain, AMillionTermsAndStepsOfIndexMath) {
  constexpr int length = 1'000'000;
  Arena arena;
  Arena::Scope scope(arena);
  UOp sum = variable("n", 0, 9), mixed = variable("x", 0, 7);
  for (int i = 0; i < length; i++) {
    sum = sum + variable("v" + std::to_string(i), 0, 7);
    if (i < length / 5) mixed = (mixed + iconst(1 + i % 5)) % iconst(1000 + i % 7);
  }
  EXPECT_EQ(simplify(sum).op(), Op::ADD);
  const UOp m = simplify(mixed);
  EXPECT_LE(m.vmax(), 1006);
}

TEST(LongChain, SumsAndIndexMathStayLinear) {
  Arena arena;
  Arena::Scope scope(arena);
  UOp sum = iconst(0), mixed = variable("x", 0, 7);
  for (int i = 0; i < 20'000; i++) {
    sum = sum + variable("v" + std::to_string(i), 0, 7);
    mixed = (mixed + iconst(i)) % iconst(1000 + i % 7);
  }
  EXPECT_EQ(simplify(sum).op(), Op::ADD);
  EXPECT_TRUE(simplify(simplify(mixed)) == simplify(mixed));
}

}  // namespace
}  // namespace beamline
