// Division by constants as products: the same as division, for every type, bound and divisor that
// could make a difference, and without any division left.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "engine/interpret/scalar.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/magic_division.h"
#include "engine/rewrite/rewriter.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

using Whole = __int128;

constexpr Op divisions[] = {Op::FLOORDIV, Op::FLOORMOD, Op::CDIV, Op::CMOD};
constexpr DType types[] = {DType::I8,  DType::U8,  DType::I16, DType::U16,
                           DType::I32, DType::U32, DType::I64, DType::U64};

Whole lowest_of(DType t) { return dtype_min(t); }
Whole highest_of(DType t) {
  return t == DType::U64 ? Whole{std::numeric_limits<uint64_t>::max()} : Whole{dtype_max(t)};
}
// As a constant and as a value of the interpreter hold it.
int64_t held(Whole v) { return static_cast<int64_t>(static_cast<uint64_t>(v)); }

Whole divided(Op op, DType t, Whole a, Whole b) {
  const Whole q = a / b, r = a % b;
  const bool down = r != 0 && (r < 0) != (b < 0);
  const Whole v = op == Op::CDIV       ? q
                  : op == Op::CMOD     ? r
                  : op == Op::FLOORDIV ? q - down
                                       : r + (down ? b : 0);
  return v > highest_of(t) ? lowest_of(t) : v;  // only the lowest by -1
}

class MagicDivision : public ::testing::Test {
 protected:
  // Of a value between those bounds. The op itself where it is left alone.
  UOp lowered(Op op, DType t, Whole low, Whole high, Whole d) {
    arena.reset();
    x = variable(
        "x", held(low),
        std::min(held(high) < 0 && t == DType::U64 ? dtype_max(t) : held(high), dtype_max(t)), t);
    static const Matcher<> m{magic_division_rules()};
    return graph_rewrite(make(op, t, {x, iconst(held(d), t)}), m);
  }
  // True, or how it is wrong.
  ::testing::AssertionResult right(UOp u, Op op, DType t, Whole a, Whole d) {
    const auto got = evaluate(u, {{x, whole(a)}});
    const Whole want = divided(op, t, a, d);
    if (got && held(got->whole) == held(want)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << op_name(op) << " of " << dtype_name(t) << ' ' << static_cast<int64_t>(a) << " by "
           << static_cast<int64_t>(d) << " is " << static_cast<int64_t>(want) << ", not "
           << (got ? static_cast<int64_t>(got->whole) : 0) << "\n"
           << print_uops(u);
  }
  static bool divides(UOp u) {
    return std::ranges::any_of(toposort(u), [](UOp n) {
      return std::ranges::find(divisions, n.op()) != std::end(divisions);
    });
  }

  Arena arena;
  Arena::Scope scope{arena};
  UOp x;
};

TEST_F(MagicDivision, EveryByteByEveryByte) {
  for (const DType t : {DType::I8, DType::U8})
    for (const Op op : divisions)
      for (Whole d = lowest_of(t); d <= highest_of(t); d++) {
        if (d == 0) continue;
        const UOp u = lowered(op, t, lowest_of(t), highest_of(t), d);
        ASSERT_FALSE(divides(u)) << print_uops(u);
        for (Whole a = lowest_of(t); a <= highest_of(t); a++) ASSERT_TRUE(right(u, op, t, a, d));
      }
}

// Divisors around powers of two, primes and the ends of the type; dividends around the ends of
// their bounds and around multiples of the divisor, where a quotient changes.
TEST_F(MagicDivision, TheEdgesOfEveryType) {
  size_t compared = 0;
  for (const DType t : types) {
    const Whole low = lowest_of(t), high = highest_of(t);
    std::set<Whole> divisors;
    const auto offer = [&](Whole d) {
      for (const Whole v : {d, -d})
        if (v != 0 && v >= low && v <= high) divisors.insert(v);
    };
    for (int k = 0; k <= 64; k++)
      for (int near = -1; near <= 1; near++) offer((Whole{1} << k) + near);
    for (const Whole d : {3,   5,   6,    7,    10,   11,    13,    25,    28,      100,       125,
                          625, 641, 1000, 3600, 5000, 46341, 65521, 86400, 1000003, 2147483629})
      offer(d);
    offer(Whole{1000000007} * 998244353), offer(Whole{6700417} * 641), offer(high / 2),
        offer(high / 3), offer(low), offer(high - 1);
    std::vector<std::pair<Whole, Whole>> bounds{{low, high}, {0, high}, {low, 0}, {0, 0}};
    for (const Whole n : {Whole{1}, Whole{99}, Whole{40'000}, Whole{1} << 31, (Whole{1} << 32) - 1,
                          (Whole{1} << 40) + 12345}) {
      if (n > high) continue;
      bounds.push_back({0, n});
      if (-n >= low) bounds.push_back({-n, n / 2}), bounds.push_back({-n, -n / 3 - 1});
    }
    for (const Op op : divisions)
      for (const auto& [from, to] : bounds)
        for (const Whole d : divisors) {
          const UOp u = lowered(op, t, from, to, d);
          ASSERT_FALSE(divides(u)) << print_uops(u);
          std::set<Whole> dividends;
          const auto ask = [&](Whole a) {
            for (const Whole v : {a - 1, a, a + 1})
              if (v >= from && v <= to) dividends.insert(v);
          };
          ask(from), ask(to), ask(0), ask(d), ask(-d), ask(from / 2), ask(to / 2), ask(to / 3 * 2);
          ask(to / d * d), ask(from / d * d), ask(to / d / 2 * d), ask(to / 2 / d * d);
          for (const Whole a : dividends) ASSERT_TRUE(right(u, op, t, a, d));
          compared += dividends.size();
        }
  }
  std::printf("%zu divisions compared\n", compared);
  EXPECT_GT(compared, 500'000u);
}

TEST_F(MagicDivision, RandomDivisions) {
  testing::Expressions e(5);
  for (int i = 0; i < 60'000; i++) {
    const DType t = types[e.between(0, 7)];
    const Op op = divisions[e.between(0, 3)];
    const auto any = [&] {
      uint64_t bits = 0;
      for (int k = 0; k < 4; k++) bits = bits << 16 | static_cast<uint64_t>(e.between(0, 65535));
      const int64_t v = wrap_to(t, static_cast<int64_t>(bits) >> e.between(0, 63));
      return t == DType::U64 ? Whole{static_cast<uint64_t>(v)} : Whole{v};
    };
    Whole low = any(), high = any();
    if (low > high) std::swap(low, high);
    const Whole d = any(), a = low + (high - low) / 1024 * e.between(0, 1024);
    if (d == 0) continue;
    const UOp u = lowered(op, t, low, high, d);
    for (const Whole v : {low, a, high}) ASSERT_TRUE(right(u, op, t, v, d));
  }
}

// What bounds are for: an index below a few millions needs one product of 32 bits.
TEST_F(MagicDivision, BoundsKeepProductsNarrow) {
  struct Row {
    DType t;
    Whole low, high, d;
    size_t ops;  // ALU ops and casts
    DType widest;
  };
  const Row rows[] = {
      {DType::I32, 0, 4095, 7, 2, DType::I32},    // product, shift
      {DType::I32, 0, 65535, 10, 4, DType::U32},  // and two casts
      {DType::I32, 0, 1 << 20, 56, 4, DType::U64},
      {DType::I32, 0, 1 << 30, 64, 1, DType::I32},  // a shift
      {DType::I32, 0, 99, 100, 0, DType::I32},      // nothing
      {DType::I32, 0, 150, 100, 2, DType::I32},     // a comparison
      {DType::I32, dtype_min(DType::I32), dtype_max(DType::I32), 8, 1, DType::I32},
      {DType::I32, dtype_min(DType::I32), dtype_max(DType::I32), 7, 7, DType::U64},
      {DType::I64, 0, 1 << 30, 56, 2, DType::I64},
  };
  for (const Row& r : rows) {
    const UOp u = lowered(Op::FLOORDIV, r.t, r.low, r.high, r.d);
    size_t ops = 0;
    int widest = 0;
    for (UOp n : toposort(u)) {
      ops += ops::elementwise.has(n.op());
      widest = std::max(widest, dtype_bytes(n.dtype()));
    }
    EXPECT_EQ(ops, r.ops) << print_uops(u);
    EXPECT_EQ(widest, dtype_bytes(r.widest)) << print_uops(u);
  }
}

TEST_F(MagicDivision, WhatItLeaves) {
  EXPECT_EQ(lowered(Op::FLOORDIV, DType::I32, 0, 10, 0).op(), Op::FLOORDIV);
  EXPECT_EQ(lowered(Op::FLOORDIV, DType::WeakInt, 0, 10, 3).op(), Op::FLOORDIV);
  const UOp y = variable("y", 1, 5, DType::I32);
  static const Matcher<> m{magic_division_rules()};
  const UOp u = variable("x", 0, 9, DType::I32) / y;
  EXPECT_EQ(graph_rewrite(u, m), u);
}

}  // namespace
}  // namespace beamline
