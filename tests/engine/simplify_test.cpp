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

}  // namespace
}  // namespace beamline
