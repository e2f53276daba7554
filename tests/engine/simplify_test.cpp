// simplify() as a whole: a table of inputs and outputs, and its laws on random expressions.
#include <gtest/gtest.h>

#include "engine/ir/print.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

using testing::Expressions;

// The smallest sub-expression of u that `wrong` rejects, for a readable failure.
template <class F>
UOp smallest(UOp u, F wrong) {
  UOp best = u;
  size_t size = SIZE_MAX;
  for (UOp s : toposort(u)) {
    if (!s.has_shape() || s.op() == Op::CONST) continue;
    if (const size_t n = toposort(s).size(); n < size && wrong(s)) best = s, size = n;
  }
  return best;
}
std::string diagnosis(UOp u) { return print_uops(u) + "became\n" + print_uops(simplify(u)); }

bool within_bounds(UOp u, const ScalarValue& v) {
  if (v.kind != ScalarValue::Kind::Whole || !is_int(u.dtype())) return true;
  return (u.vmin() == INT64_MIN || v.whole >= u.vmin()) &&
         (u.vmax() == INT64_MAX || v.whole <= u.vmax());
}

class RandomExpressions : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomExpressions, KeepValueAndAreFixedPoints) {
  static constexpr DType types[] = {DType::WeakInt, DType::WeakInt, DType::WeakInt,
                                    DType::Bool,    DType::Bool,    DType::I32,
                                    DType::U8,      DType::F32,     DType::U64};
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(GetParam());
  size_t compared = 0;
  for (int i = 0; i < 1500; i++) {
    arena.reset();
    const UOp u = e.of(types[e.below(std::size(types))], 1 + static_cast<int>(e.below(8)));
    UOp s;
    try {
      s = simplify(u);
    } catch (const RewriteLoop& loop) {
      const auto loops = [](UOp x) {
        try {
          simplify(x);
        } catch (const RewriteLoop&) {
          return true;
        }
        return false;
      };
      FAIL() << loop.what() << "\n" << print_uops(smallest(u, loops));
    }
    const auto moves = [](UOp x) { return !(simplify(simplify(x)) == simplify(x)); };
    if (moves(u)) {
      const UOp x = smallest(u, moves);
      FAIL() << "not a fixed point\n"
             << diagnosis(x) << "then\n"
             << print_uops(simplify(simplify(x)));
    }
    ASSERT_EQ(dtype_name(u.dtype()), dtype_name(s.dtype()));
    for (int k = 0; k < 6; k++) {
      const Assignment a = e.values(u);
      const auto want = evaluate(u, a);
      for (UOp x : k == 0 ? toposort(u) : std::vector<UOp>{}) {
        const auto v = evaluate(x, a);
        ASSERT_TRUE(!v || within_bounds(x, *v)) << print_uops(x);
      }
      if (!want) continue;
      compared++;
      const auto got = evaluate(s, a);
      const auto differs = [&](UOp x) {
        const auto v = evaluate(x, a);
        const auto w = evaluate(simplify(x), a);
        return v && !(w && *v == *w);
      };
      if (!got || !(*got == *want)) {
        const UOp x = smallest(u, differs);
        FAIL() << diagnosis(x);
      }
      ASSERT_TRUE(within_bounds(s, *got)) << diagnosis(u);
    }
  }
  EXPECT_GT(compared, 4000u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomExpressions, ::testing::Range<uint64_t>(100, 110));

// One row: an expression, what it becomes, and its bounds. Interning makes the check an identity.
class SimplifyTable : public ::testing::Test {
 protected:
  void row(UOp input, UOp expected, int64_t vmin, int64_t vmax) {
    const UOp s = simplify(input);
    EXPECT_TRUE(s == expected) << print_uops(input) << "became\n"
                               << print_uops(s) << "not\n"
                               << print_uops(expected);
    EXPECT_TRUE(simplify(s) == s) << print_uops(s);
    EXPECT_EQ(s.vmin(), vmin) << print_uops(input);
    EXPECT_EQ(s.vmax(), vmax) << print_uops(input);
    Expressions e(3);
    for (int k = 0; k < 200; k++) {
      const Assignment values = e.values(input);
      const auto want = evaluate(input, values), got = evaluate(s, values);
      ASSERT_TRUE(!want || (got && *got == *want)) << print_uops(input);
    }
  }
  static UOp c(int64_t v) { return iconst(v); }

  Arena arena;
  Arena::Scope scope{arena};
  UOp a = variable("a", 0, 7), b = variable("b", -3, 3), n = variable("n", 1, 9),
      p = variable("p", 0, 1, DType::Bool);
  UOp i = range(512, 0, AxisType::LOOP), j = range(512, 1, AxisType::LOOP),
      u = range(4, 2, AxisType::UPCAST);
};

TEST_F(SimplifyTable, Sums) {
  row(a * c(4) + a * c(2), a * c(6), 0, 42);
  row(a + a, a * c(2), 0, 14);
  row(a - a, c(0), 0, 0);
  row((a + c(3)) + (b + c(4)), a + b + c(7), 4, 17);
  row(c(2) - (a - c(1)), a * c(-1) + c(3), -4, 3);
  row((a + n) + b, (b + a) + n, -2, 19);
  row(((i * c(4) + u) * c(512)) + (j + c(9)), simplify(i * c(2048) + u * c(512) + j) + c(9), 9,
      511 * 2048 + 3 * 512 + 511 + 9);
  row(a * n - n * a, c(0), 0, 0);
}
TEST_F(SimplifyTable, Quotients) {
  row((i * c(512) + j) / c(512), i, 0, 511);
  row((i * c(512) + j) % c(512), j, 0, 511);
  row((i * c(512) + j) / c(1024), i / c(2), 0, 255);
  row((i * c(512) + j) % c(1024), (i % c(2)) * c(512) + j, 0, 1023);
  row(a / c(8), c(0), 0, 0);
  row(b / c(8), b / c(8), -1, 0);
  row(u % c(8), u, 0, 3);
  row(i / c(4) / c(8), i / c(32), 0, 15);
  row((i % c(64)) / c(8), (i / c(8)) % c(8), 0, 7);
  row((i % c(64)) % c(8), i % c(8), 0, 7);
  row((i * c(6) + c(3)) / c(3), i * c(2) + c(1), 1, 1023);
  row((i * c(6) + c(13)) % c(4), (i % c(2)) * c(2) + c(1), 1, 3);
  row((a * c(-1) + c(7)) / c(8), c(0), 0, 0);
  row((i * c(-1) + c(511)) % c(512), i * c(-1) + c(511), 0, 511);
  row(i / c(-1), i * c(-1), -511, 0);
  row((i * n + n * c(3)) / n, i + c(3), 3, 514);
  row((i * n + a) % n, a % n, 0, 7);
  row((i / c(16)) * c(16) + i % c(16), i, 0, 511);
  row((i / c(64)) * c(64) + ((i / c(16)) % c(4)) * c(16) + i % c(16), i, 0, 511);
  row(((i + c(5)) / c(16)) * c(16) + (i + c(5)) % c(16), i + c(5), 5, 516);
  row((i / c(16)) * c(32) + (i % c(16)) * c(2), i * c(2), 0, 1022);
  row(range(n, 5, AxisType::LOOP) % n, range(n, 5, AxisType::LOOP), 0, 8);
}
TEST_F(SimplifyTable, Comparisons) {
  row(a < c(8), bool_const(true), 1, 1);
  row(c(7) < a, bool_const(false), 0, 0);
  row(a + c(3) < c(5), a < c(2), 0, 1);
  row(a * c(4) < c(9), a < c(3), 0, 1);
  row(a * c(-1) < c(-3), c(3) < a, 0, 1);
  row(i / c(4) < c(5), i < c(20), 0, 1);
  row(i * c(4) + u < c(20), i < c(5), 0, 1);
  row(logical_not(a < c(3)), c(2) < a, 0, 1);
  row(b - a < c(0), b < a, 0, 1);
  row(ne(a * c(2), c(5)), bool_const(true), 1, 1);
  row(ne(a + c(1), c(5)), ne(a, c(4)), 0, 1);
  row(logical_not(ne(a, b)), alu(Op::CMPEQ, {a, b}), 0, 1);
  row(ne(cast(p, DType::WeakInt), c(0)), p, 0, 1);
  row((i < c(9)) & (i < c(5)), i < c(5), 0, 1);
  row((i < c(9)) & (c(9) < i), bool_const(false), 0, 0);
}
TEST_F(SimplifyTable, Selections) {
  row(where(bool_const(true), a, b), a, 0, 7);
  row(where(p, a, a), a, 0, 7);
  row(where(logical_not(p), a, b), where(p, b, a), -3, 7);
  row(where(p, c(1), c(0)), cast(p, DType::WeakInt), 0, 1);
  row(where(p, a, c(0)) + where(p, c(0), b), where(p, a, b), -3, 7);
  row(where(a < b, b, a), maximum(a, b), 0, 7);
  row(maximum(a, c(9)), c(9), 9, 9);
  row(where(a < c(3), a / c(3), b), where(a < c(3), c(0), b), -3, 3);
  row(where(p, where(p, a, b), n), where(p, a, n), 0, 9);
}
TEST_F(SimplifyTable, WhatDoesNotFitStays) {
  const UOp big = c(INT64_MAX);
  row(a + big + big, simplify(a + big + big), INT64_MIN, INT64_MAX);
  EXPECT_EQ(simplify(a + big + big).op(), Op::ADD);
  row((a * c(INT64_MAX)) * c(2), simplify((a * c(INT64_MAX)) * c(2)), 0, INT64_MAX);
  row(c(INT64_MIN) / c(-1), c(INT64_MIN) / c(-1), INT64_MIN, INT64_MAX);
  row(a / c(0), a / c(0), INT64_MIN, INT64_MAX);
}
TEST_F(SimplifyTable, FloatsKeepTheirMeaning) {
  const UOp x = variable("x", 0, 0, DType::F32), zero = fconst(0, DType::F32),
            one = fconst(1, DType::F32);
  for (UOp kept : {x * zero, x + zero, alu(Op::FDIV, {x, x}), ne(x, x), (x + one) + one,
                   (x * fconst(3, DType::F32)) * fconst(5, DType::F32)})
    EXPECT_TRUE(simplify(kept) == kept) << print_uops(kept);
  EXPECT_TRUE(simplify(x * one) == x);
  EXPECT_TRUE(simplify(x + x) == x * fconst(2, DType::F32));
  EXPECT_TRUE(simplify(maximum(x, x)) == x);
  EXPECT_TRUE(simplify(x < x).is_const(0));
  EXPECT_TRUE(simplify(alu(Op::FDIV, {zero, zero})).fval() !=
              simplify(alu(Op::FDIV, {zero, zero})).fval());
}

}  // namespace
}  // namespace beamline
