// How far the rules reach: expressions of the kinds that index math is made of, and the most
// operations that may be left of each. The value stays, and the bounds hold.
#include <gtest/gtest.h>

#include "harness/commands/simplify_expression.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

struct Row {
  std::string_view expr, vars;
  int most;
};
// clang-format off
constexpr Row rows[] = {
    {"(a*4 + b) // 4", "a=0..7,b=0..3", 0},
    {"(a*4 + b*4) // 2", "a=0..8,b=0..8", 2},
    {"(a*6 + b*6) // 16", "a=0..8,b=0..8", 3},
    {"(16 + a*6 + b*6) // 16", "a=0..8,b=0..8", 4},
    {"(a*5 + b*4) // 2", "a=0..8,b=0..8", 4},
    {"(a*4 + 3) // 4", "a=0..8", 0},
    {"(a*4 + 3) // 16", "a=0..8", 1},
    {"(a*100 + b*50) % 100", "a=0..3,b=0..7", 2},
    {"a % 12 % 4", "a=0..100", 1},
    {"a*4 % 12 % 4", "a=0..100", 0},
    {"a % 4 % 12", "a=0..100", 1},
    {"a // 10 // 9", "a=0..1000", 1},
    {"(a // 2 + 1) // 2", "a=0..1000", 2},
    {"(9 + 9*x + 9*y) % 10", "x=0..2,y=0..2", 2},
    {"(9*x) // 10 * 10 + (9*x) % 10", "x=0..100", 1},
    {"a // -2", "a=1..7", 1},
    {"-a // 2", "a=0..7", 2},
    {"(a*-1 + 7) // 8", "a=0..7", 0},
    {"(3 - a) // 4", "a=0..3", 0},
    {"a*4 < 13", "a=0..100", 1},
    {"a*-4 < -13", "a=0..100", 1},
    {"a*4 + b < 16", "a=0..100,b=0..3", 1},
    {"a*4 + b < 16", "a=0..100,b=0..4", 3},
    {"-a < -b", "a=0..10,b=0..10", 1},
    {"a + 5 < 10", "a=0..100", 1},
    {"a + 5 < b + 10", "a=0..100,b=0..100", 2},
    {"a // 4 < 5", "a=0..100", 1},
    {"a // -4 < -5", "a=0..100", 1},
    {"!(a < 5)", "a=0..10", 1},
    {"(a < 5) & (a < 9)", "a=0..20", 1},
    {"(a < 5) & (a > 9)", "a=0..20", 0},
    {"(a < 5) | (a >= 5)", "a=0..20", 0},
    {"a == a + 1", "a=0..20", 0},
    {"a*2 == b*2", "a=0..9,b=0..9", 1},
    {"a*2 + 2 == 6", "a=0..9", 1},
    {"max(a, 3)", "a=5..9", 0},
    {"min(a, 10)", "a=5..9", 0},
    {"max(max(a, 3), 5)", "a=0..9", 1},
    {"min(min(a, b), a)", "a=0..9,b=0..9", 1},
    {"max(a, b) - max(a, b)", "a=0..9,b=0..9", 0},
    {"where(a < 3, a, 3)", "a=0..9", 2},
    {"where(a < b, a, b)", "a=0..9,b=0..9", 2},
    {"where(p, a, b) + where(p, c, d)", "a=0..9,b=0..9,c=0..9,d=0..9,p=bool", 3},
    {"where(p, a, 0) + where(p, 0, b)", "a=0..9,b=0..9,p=bool", 1},
    {"where(p, 1, 0) * a", "a=0..9,p=bool", 2},
    {"where(p, a, a + 1) - a", "a=0..9,p=bool", 3},
    {"where(p, where(p, a, b), c)", "a=0..9,b=0..9,c=0..9,p=bool", 1},
    {"where(p, where(q, a, b), b)", "a=0..9,b=0..9,p=bool,q=bool", 2},
    {"p + q", "p=bool,q=bool", 1},
    {"p * q + p", "p=bool,q=bool", 0},
    {"(p & q) | (p & !q)", "p=bool,q=bool", 4},
    {"p == true", "p=bool", 0},
    {"p != true", "p=bool", 1},
    {"!(a < b)", "a=0..9,b=0..9", 1},
    {"a*3 + a*2 - a*5", "a=0..9", 0},
    {"(a + b)*3 - a*3", "a=0..9,b=0..9", 1},
    {"a*b + a*c", "a=0..9,b=0..9,c=0..9", 3},
    {"(a*8 + b) // 8 % 4", "a=0..3,b=0..7", 0},
    {"(a*32 + b*4 + c) // 4 % 8", "a=0..3,b=0..7,c=0..3", 0},
    {"(a*32 + b*4 + c) % 32 // 4", "a=0..3,b=0..7,c=0..3", 0},
    {"(a*32 + b*4 + c) % 4", "a=0..3,b=0..7,c=0..3", 0},
    {"(a*12 + b*3 + c) // 6", "a=0..9,b=0..3,c=0..2", 3},
    {"(a*12 + b*3 + c) % 6", "a=0..9,b=0..3,c=0..2", 4},
    {"(a % 4)*2 + (a // 4)*8", "a=0..100", 1},
    {"a // 4 * 4 + a % 4 + b", "a=0..100,b=0..9", 1},
    {"(a // 16 % 4)*16 + a % 16", "a=0..100", 1},
    {"(a // 4) % 4 * 4 + a // 16 * 16 + a % 4", "a=0..1000", 0},
    {"(a + 1) // 4 * 4 + (a + 1) % 4", "a=0..1000", 1},
    {"(a*n) // n", "a=0..9,n=1..9", 0},
    {"(a*n + b) // n", "a=0..9,n=5..9,b=0..4", 0},
    {"(a*n + b) % n", "a=0..9,n=5..9,b=0..4", 0},
    {"(a*n*m + b*m) // (n*m)", "a=0..9,n=2..9,m=2..9,b=0..1", 0},
    {"(a*n) % n", "a=0..9,n=1..9", 0},
    {"a // n // m", "a=0..100,n=1..9,m=1..9", 2},
    {"a // 8 // 4 // 2", "a=0..1000", 1},
    {"(a // 8) % 4 // 2", "a=0..1000", 2},
    {"a % 100", "a=0..50", 0},
    {"a % 100", "a=100..150", 1},
    {"(a + 100) % 100", "a=0..50", 0},
    {"(a*3 + b*6) % 3", "a=0..9,b=0..9", 0},
    {"(a*3 + b*6 + 2) % 3", "a=0..9,b=0..9", 0},
    {"(a*3 + b*6 + 2) // 3", "a=0..9,b=0..9", 2},
    {"(a*7 + b) // 7", "a=0..18014398509481984,b=0..6", 0},
    {"(a + 18014398509481984) // 2", "a=0..18014398509481984", 2},
    {"a*2 // 2", "a=0..18014398509481984", 0},
    {"a % 18014398509481984", "a=0..18014398509481983", 0},
    {"(a*3 + 1) // 3 * 3 + (a*3 + 1) % 3", "a=0..100", 2},
    {"(x + 0) // 4 + (x + 1) // 4 + (x + 2) // 4 + (x + 3) // 4", "x=0..100", 0},
    {"x // 2 + (x + 1) // 2", "x=0..100", 0},
    {"(x + 2561) // 4 + (x + 2562) // 4 + (x + 2560) // 4 + (x + 2559) // 4", "x=0..2559", 1},
    {"(a < 3) & (a + b < 5) & (a < 3)", "a=0..9,b=0..9", 4},
    {"(a < 3) & (a < 3)", "a=0..9", 1},
    {"where(a < 3, a // 3, 7)", "a=0..9", 2},
    {"where(a < 4, a % 4, 0)", "a=0..9", 2},
    {"where((a < 4) & (b < 2), a % 4 + b % 2, 0)", "a=0..9,b=0..9", 5},
    {"where(a >= 0, a, -a)", "a=0..9", 0},
    {"max(a*2, a*2 + 1)", "a=0..9", 2},
    {"max(a + 1, a + 3)", "a=0..9", 1},
    {"min(a, a + b)", "a=0..9,b=0..9", 0},
    {"max(a, a + b)", "a=0..9,b=0..9", 1},
    {"a - (a - b)", "a=0..9,b=0..9", 0},
    {"a*0 + b", "a=0..9,b=0..9", 0},
    {"(a ^ b) ^ b", "a=0..9,b=0..9", 0},
    {"a & 7", "a=0..7", 0},
    {"a & 8", "a=0..7", 0},
    {"(a | 0) & a", "a=0..7", 0},
    {"a & -1", "a=0..7", 0},
    {"(a*4) & 3", "a=0..7", 0},
    {"a % 8 & 7", "a=0..100", 1},
    {"(a // 4 * 4 + a % 4) // 8", "a=0..100", 1},
    {"(a*2 + b) // 2 * 2 + b", "a=0..9,b=0..1", 2},
    {"a*1024 % 2048 // 1024", "a=0..9", 1},
    {"a // 3 * 3 + a % 3 < 10", "a=0..100", 1},
    {"a % 3 < 3", "a=0..100", 0},
    {"a // 3 < a + 1", "a=0..100", 3},
    {"a // 3 <= a", "a=0..100", 2},
    {"2*a < 2*b + 1", "a=0..100,b=0..100", 2},
    {"4*a + 2*b < 6", "a=0..100,b=0..100", 4},
    {"4*a + 2*b + c < 6", "a=0..100,b=0..100,c=0..1", 4},
    {"a*b < a*b + 1", "a=0..9,b=0..9", 0},
    {"(a + b) % 4 == (b + a) % 4", "a=0..9,b=0..9", 0},
    {"(a*10 + b) // 10 == a", "a=0..9,b=0..9", 0},
    {"a % 2 != 0", "a=0..100", 2},
    {"(a*2) % 2 != 0", "a=0..100", 0},
    {"((a + 1)*4 + b) // 4", "a=0..9,b=0..3", 1},
    {"((a + 1)*4 - 1) // 4", "a=0..9", 0},
    {"(a*4 - 1) // 4", "a=0..9", 1},
    {"(a*4 - 1) % 4", "a=0..9", 0},
    {"(a*256 + b) % 65536 // 256", "a=0..255,b=0..255", 0},
    {"(a*256 + b) // 65536", "a=0..255,b=0..255", 0},
    {"(a // 7) * 7 + (a % 7)", "a=-50..50", 0},
    {"a // 3 // 5", "a=-50..50", 1},
    {"a % 6 % 3", "a=-50..50", 1},
    {"(a*6 + 4) // 3", "a=-50..50", 2},
    {"-(-a)", "a=0..9", 0},
    {"a - b - (a - b)", "a=0..9,b=0..9", 0},
    {"where(p, true, q)", "p=bool,q=bool", 1},
    {"where(p, q, false)", "p=bool,q=bool", 1},
    {"where(p, false, true)", "p=bool", 1},
    {"where(!p, a, b)", "a=0..9,b=0..9,p=bool", 1},
    {"p ^ true ^ true", "p=bool", 0},
    {"(p | q) & p", "p=bool,q=bool", 0},
    {"p & !p", "p=bool", 0},
    {"p | !p", "p=bool", 0},
    {"(a < 5) == true", "a=0..9", 1},
    {"(a < 5) != (a < 5)", "a=0..9", 0},
    {"where(a == 3, a, 3)", "a=0..9", 0},
    {"where(a == 3, a + 1, 4)", "a=0..9", 0},
    {"where(p, a, b) < where(p, c, d)", "p=bool,a=0..3,b=0..3,c=5..9,d=5..9", 0},
};
// clang-format on

TEST(Reach, NoMoreOperationsAreLeft) {
  testing::Expressions random(11);
  for (const Row& row : rows) {
    const auto vars = std::get<0>(parse_variables(row.vars));
    const auto result = simplify_text(vars, row.expr);
    ASSERT_TRUE(std::holds_alternative<SimplifyResult>(result)) << row.expr;
    const SimplifyResult& r = std::get<SimplifyResult>(result);
    EXPECT_LE(r.ops_after, row.most) << row.expr << " became " << r.simplified;

    Arena arena;
    const Arena::Scope scope(arena);
    const UOp before = std::get<ParsedExpression>(parse_expression(vars, row.expr)).root,
              after = std::get<ParsedExpression>(parse_expression(vars, r.simplified)).root;
    for (int i = 0; i < 300; i++) {
      const Assignment a = random.values(before);
      const auto want = evaluate(before, a);
      if (!want) continue;
      const auto got = evaluate(after, a);
      ASSERT_TRUE(got && got->whole == want->whole) << row.expr << " became " << r.simplified;
      ASSERT_LE(r.vmin, want->whole) << row.expr;
      ASSERT_GE(r.vmax, want->whole) << row.expr;
    }
  }
}

}  // namespace
}  // namespace beamline
