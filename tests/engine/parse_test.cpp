// UOp text: what is printed reads back to the same node and the same bytes; what is damaged is
// refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/ir/print.h"
#include "engine/rules/rules.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

using testing::Expressions;

// A small matmul as rangeify leaves it, with every kind of argument the text knows.
UOp kernel() {
  const auto buffer_of = [](int64_t slot, int64_t n) {
    ParamArg a;
    a.slot = slot, a.name = "buf" + std::to_string(slot), a.constant = slot == 2;
    const int64_t shape[] = {n};
    return param(a, DType::F32, shape);
  };
  const UOp i = range(6, 0, AxisType::WEAK), j = range(4, 1, AxisType::WEAK),
            k = range(8, 2, AxisType::REDUCE);
  const auto at = [](UOp b, UOp index) { return make(Op::INDEX, DType::F32, {b, index}); };
  const UOp product =
      at(buffer_of(1, 48), i * iconst(8) + k) * at(buffer_of(2, 32), k * iconst(4) + j);
  const UOp ranges[] = {k};
  const UOp sum = reduce(Op::ADD, product, ranges, 0);
  const UOp gate = where(i < iconst(5), i * iconst(4) + j, invalid());
  const UOp store = make(Op::STORE, DType::Void,
                         {at(buffer_of(0, 24), gate), maximum(sum, fconst(-0.0, DType::F32))});
  const UOp end = make(Op::END, DType::Void, {store, i, j});
  return make(Op::SINK, DType::Void, std::initializer_list<UOp>{end}, 0,
              intern(KernelInfo{"r_6_4_8"}));
}

TEST(Text, KernelRoundTrips) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp k = kernel();
  const std::string text = print_uops(k);
  const auto back = parse_uops(text);
  ASSERT_TRUE(std::holds_alternative<UOp>(back)) << std::get<ParseError>(back).message;
  EXPECT_TRUE(std::get<UOp>(back) == k);
  Arena other;
  Arena::Scope inner(other);
  EXPECT_EQ(print_uops(std::get<UOp>(parse_uops(text))), text);
}

TEST(Text, RandomGraphsRoundTrip) {
  static constexpr DType types[] = {DType::WeakInt, DType::Bool, DType::F32,
                                    DType::U8,      DType::I64,  DType::F64};
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(7);
  for (int i = 0; i < 3000; i++) {
    arena.reset();
    const UOp u = e.of(types[e.below(std::size(types))], static_cast<int>(e.below(9)));
    const std::string text = print_uops(u);
    const auto back = parse_uops(text);
    ASSERT_TRUE(std::holds_alternative<UOp>(back)) << std::get<ParseError>(back).message << "\n"
                                                   << text;
    ASSERT_TRUE(std::get<UOp>(back) == u) << text;
    Arena other;
    Arena::Scope inner(other);
    ASSERT_EQ(print_uops(std::get<UOp>(parse_uops(text))), text);
  }
}

TEST(Text, NamesWithQuotesRoundTrip) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp u = variable("a\"b\\c\nd]=,(", 0, 7) + iconst(INT64_MIN);
  const auto back = parse_uops(print_uops(u));
  ASSERT_TRUE(std::holds_alternative<UOp>(back)) << std::get<ParseError>(back).message;
  EXPECT_TRUE(std::get<UOp>(back) == u);
}

TEST(Text, FloatsKeepTheirBits) {
  Arena arena;
  Arena::Scope scope(arena);
  for (double v : {0.0, -0.0, 1.0 / 3, 1e-310, 1.7976931348623157e308, double(INFINITY),
                   -double(INFINITY), double(NAN)})
    for (DType t : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::WeakFloat}) {
      const UOp c = fconst(v, t);
      EXPECT_TRUE(std::get<UOp>(parse_uops(print_uops(c))) == c) << v << " " << dtype_name(t);
    }
}

struct Bad {
  const char* text;
  int line, column;
  const char* message;
};
class BadText : public ::testing::TestWithParam<Bad> {};
TEST_P(BadText, SaysWhere) {
  Arena arena;
  Arena::Scope scope(arena);
  const auto r = parse_uops(GetParam().text);
  ASSERT_TRUE(std::holds_alternative<ParseError>(r)) << GetParam().text;
  const ParseError& e = std::get<ParseError>(r);
  EXPECT_EQ(e.message, GetParam().message);
  EXPECT_EQ(e.line, GetParam().line);
  EXPECT_EQ(e.column, GetParam().column);
}
// clang-format off
INSTANTIATE_TEST_SUITE_P(Rows, BadText, ::testing::Values(
    Bad{"", 0, 1, "expected the header 'uop 1'"},
    Bad{"uop 2\n", 1, 1, "expected the header 'uop 1'"},
    Bad{"uop 1\n", 1, 1, "no nodes"},
    Bad{"uop 1\n%1=CONST:weakint()[value=1]\n", 2, 3, "nodes are numbered in order; expected %0"},
    Bad{"uop 1\n%0=CONSTANT:weakint()[value=1]\n", 2, 12, "unknown op 'CONSTANT'"},
    Bad{"uop 1\n%0=CONST:int()[value=1]\n", 2, 13, "unknown dtype 'int'"},
    Bad{"uop 1\n%0=CONST:weakint()[value=x]\n", 2, 28, "'x' is not an integer"},
    Bad{"uop 1\n%0=CONST:weakint()[value=1]\n%1=NEG:weakint(%2)\n", 3, 18, "%2 is not defined yet"},
    Bad{"uop 1\n%0=CONST:weakint()[value=1] \n", 2, 28, "unexpected text after the node"}));
// clang-format on

// Damaged text of every kind is read or refused; nothing aborts.
TEST(Text, MutationsNeverCrash) {
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(11);
  std::vector<std::string> seeds{print_uops(kernel())};
  for (int i = 0; i < 20; i++)
    seeds.push_back(print_uops(e.of(i % 2 ? DType::WeakInt : DType::F32, 4)));
  const auto lines_of = [](const std::string& s) {
    return static_cast<uint64_t>(std::count(s.begin(), s.end(), '\n'));
  };
  const std::string_view bytes = "%=:()[],0123456789-\"xWHERECONSTi32 \n#\\.";
  int refused = 0, read = 0;
  for (int i = 0; i < 60'000; i++) {
    if (i % 64 == 0) arena.reset();
    std::string text = seeds[e.below(seeds.size())];
    for (uint64_t n = 1 + e.below(3); n > 0 && !text.empty(); n--) {
      const size_t at = e.below(text.size());
      switch (e.below(6)) {
        case 0: text[at] = bytes[e.below(bytes.size())]; break;
        case 1: text.erase(at, 1 + e.below(4)); break;
        case 2: text.insert(at, 1, bytes[e.below(bytes.size())]); break;
        case 3: {  // another number
          const size_t digit = text.find_first_of("0123456789", at);
          if (digit != std::string::npos) text.replace(digit, 1, std::to_string(e.below(30)));
          break;
        }
        case 4: {  // another op or type
          static constexpr std::string_view words[] = {
              "ADD",     "WHERE", "REDUCE", "RANGE",   "INDEX",   "STACK", "PERMUTE", "PARAM",
              "END",     "bool",  "f32",    "weakint", "invalid", "void",  "SHRINK",  "PAD",
              "EXPAND",  "STAGE", "CAST",   "LOAD",    "STORE",   "SINK",  "SPECIAL", "FLIP",
              "RESHAPE", "AFTER", "CMPLT",  "SHL",     "BITCAST"};
          const size_t from = text.find_first_of("=:", at);
          const size_t to = from == std::string::npos ? from : text.find_first_of(":(", from + 1);
          if (to != std::string::npos)
            text.replace(from + 1, to - from - 1, words[e.below(std::size(words))]);
          break;
        }
        default: {  // a line goes
          uint64_t line = e.below(lines_of(text) + 1);
          size_t from = 0;
          while (line-- > 0 && text.find('\n', from) != std::string::npos)
            from = text.find('\n', from) + 1;
          const size_t to = text.find('\n', from);
          text.erase(from, to == std::string::npos ? to : to - from + 1);
        }
      }
    }
    const auto r = parse_uops(text);
    if (const UOp* u = std::get_if<UOp>(&r)) {
      read++;
      ASSERT_TRUE(std::get<UOp>(parse_uops(print_uops(*u))) == *u) << text;
    } else {
      refused++;
    }
  }
  EXPECT_GT(refused, 20'000);
  EXPECT_GT(read, 500);
}

TEST(Key, DependsOnTheStructureOnly) {
  Arena arena;
  Arena::Scope scope(arena);
  const UOp k = kernel();
  std::string text = print_uops(k);
  const std::string key = kernel_key(k);
  const auto renamed = [&](std::string_view from, std::string_view to) {
    std::string t = text;
    for (size_t at = t.find(from); at != std::string::npos; at = t.find(from, at + to.size()))
      t.replace(at, from.size(), to);
    EXPECT_NE(t, text);
    const auto r = parse_uops(t);
    EXPECT_TRUE(std::holds_alternative<UOp>(r));
    return kernel_key(std::get<UOp>(r));
  };
  EXPECT_EQ(renamed("r_6_4_8", "another"), key);
  EXPECT_EQ(renamed("buf1", "weights"), key);
  EXPECT_NE(renamed("type=REDUCE", "type=UNROLL"), key);
  EXPECT_NE(renamed("slot=2", "slot=3"), key);
  EXPECT_NE(renamed("op=ADD", "op=MAX"), key);
  EXPECT_NE(renamed("value=8]", "value=9]"), key);
  EXPECT_NE(renamed("-0x0p+0", "0x0p+0"), key);
  // Not on the order of creation either.
  Arena other;
  Arena::Scope inner(other);
  for (int i = 0; i < 100; i++) iconst(1000 - i) + range(i + 2, 5, AxisType::LOOP);
  EXPECT_EQ(kernel_key(kernel()), key);
}

// Keys are stored in databases. A change here changes every key: it needs a new engine_version.
TEST(Key, GoldenValues) {
  Arena arena;
  Arena::Scope scope(arena);
  EXPECT_EQ(kernel_key(iconst(1)),
            "3c963a341d11325efc7b9c3af3e99743cb927dd67ac9c3e4b9f20f5bc3e0529f");
  EXPECT_EQ(kernel_key((range(4, 0, AxisType::LOOP) + variable("n", 0, 7)) * iconst(3)),
            "a0e62f71f4b178eb79671357b48a900f4c84536e6101fe8facb83202c287ad36");
  EXPECT_EQ(kernel_key(kernel()),
            "0b6f67f2ac8d03fb05977a8b3aa0f2a2bf7af88b55c7fc2b2f006280d8757400");
}

}  // namespace
}  // namespace beamline
