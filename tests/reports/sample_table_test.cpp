#include "reports/sample_table.h"

#include <gtest/gtest.h>

#include <cmath>

namespace beamline::reports {
namespace {

SampleTable read(const std::string& text, const SampleColumns& columns) {
  auto r = read_samples_csv(text, columns);
  if (auto* e = std::get_if<std::string>(&r)) {
    ADD_FAILURE() << *e;
    return {};
  }
  return std::get<SampleTable>(r);
}

TEST(SamplesCsv, FastestOfEachSessionByNumber) {
  // Sessions come in any order; notes, blanks, quotes and a column that is not asked for are fine.
  const SampleTable t = read(
      "\xEF\xBB\xBF# recorded somewhere\r\nkernel,session,sweep,a,b,other\r\n"
      "mm,2,0,100,200,1\n mm ,2,1,90,400,1\n\n\"mm\",-1,0,10,10,1\n\"x, \"\"y\"\"\",0,0,8,4,1\n",
      {"a", "b", {}});
  ASSERT_EQ(t.groups.size(), 2U);
  EXPECT_EQ(t.groups[0].name, "mm");
  ASSERT_EQ(t.groups[0].log_ratios.size(), 2U);
  EXPECT_DOUBLE_EQ(t.groups[0].log_ratios[0], 0);  // session -1
  EXPECT_DOUBLE_EQ(t.groups[0].log_ratios[1], std::log(200) - std::log(90));
  EXPECT_EQ(t.groups[1].name, "x, \"y\"");
}

TEST(SamplesCsv, GroupsByWhatIsAskedFor) {
  const std::string text = "k,n,session,a,b\nm,1,0,1,1\nm,2,0,1,1\ns,1,0,1,1\n";
  EXPECT_EQ(read(text, {"a", "b", {}}).groups.size(), 2U);  // n is a number
  EXPECT_EQ(read(text, {"a", "b", {"n"}}).groups.size(), 2U);
  const auto both = read(text, {"a", "b", {"k", "n"}});
  ASSERT_EQ(both.groups.size(), 3U);
  EXPECT_EQ(both.groups[1].name, "m, 2");
  EXPECT_EQ(read("session,a,b\n0,1,1\n", {"a", "b", {}}).groups[0].name, "");
}

TEST(SamplesCsv, WhatWasNotMeasuredIsNoTime) {
  const auto g =
      read("session,a,b\n0,5,\n0,5,10\n1,nan,3\n2,0,3\n3,inf,3\n4,7,-1\n", {"a", "b", {}})
          .groups[0];
  ASSERT_EQ(g.log_ratios.size(), 5U);
  EXPECT_DOUBLE_EQ(g.log_ratios[0], std::log(2));
  for (size_t i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(g.log_ratios[i])) << i;
}

struct BadCsv {
  const char* text;
  SampleColumns columns;
  const char* message;
};
class SamplesCsvMistake : public ::testing::TestWithParam<BadCsv> {};
TEST_P(SamplesCsvMistake, IsNamed) {
  auto r = read_samples_csv(GetParam().text, GetParam().columns);
  ASSERT_TRUE(std::holds_alternative<std::string>(r));
  EXPECT_EQ(std::get<std::string>(r), GetParam().message);
}
// clang-format off
INSTANTIATE_TEST_SUITE_P(All, SamplesCsvMistake, ::testing::Values(
    BadCsv{"", {"a", "b", {}}, "there is no header"},
    BadCsv{"# only a comment\n", {"a", "b", {}}, "there is no header"},
    BadCsv{"session,a,b\n", {"a", "b", {}}, "there is no row below the header"},
    BadCsv{"a,b\n1,2\n", {"a", "b", {}}, "session: there is no column 'session'; columns are a, b"},
    BadCsv{"session,a,b\n0,1,2\n", {"a", "c", {}}, "--new: there is no column 'c'; columns are session, a, b"},
    BadCsv{"session,a,b\n0,1,2\n", {"x", "b", {}}, "--ref: there is no column 'x'; columns are session, a, b"},
    BadCsv{"session,a,b\n0,1,2\n", {"a", "b", {"k"}}, "--by: there is no column 'k'; columns are session, a, b"},
    BadCsv{"session,a,b\n0,1,2\n", {"a", "a", {}}, "--ref and --new are both 'a'"},
    BadCsv{"# c\nsession,a,b\n0,1,2\n\n1,1\n", {"a", "b", {}}, "line 5: 2 fields, the header has 3"},
    BadCsv{"session,a,b\n0,1,fast\n", {"a", "b", {}}, "line 2, column 'b': 'fast' is not a number of nanoseconds"},
    BadCsv{"session,a,b\n0.5,1,2\n", {"a", "b", {}}, "line 2, column 'session': '0.5' is not an integer"},
    BadCsv{"session,sweep,a,b\n0,x,1,2\n", {"a", "b", {}}, "line 2, column 'sweep': 'x' is not an integer"},
    BadCsv{"session,a,a\n0,1,2\n", {"a", "b", {}}, "line 1: column 'a' occurs twice"},
    BadCsv{"session,a,\n0,1,2\n", {"a", "b", {}}, "line 1: column 3 has no name"},
    BadCsv{"session,a,b\n\"0,1,2\n", {"a", "b", {}}, "line 2: a quote is not closed"}));
// clang-format on

std::string benchmark(const std::string& name, double time, const std::string& unit = "ns",
                      const char* more = "") {
  return R"({"name": ")" + name + R"(/repeats:2", "run_name": ")" + name +
         R"(", "run_type": "iteration", "real_time": )" + std::to_string(time) +
         R"(, "cpu_time": 1, "time_unit": ")" + unit + "\"" + more + "}";
}
std::string document(std::initializer_list<std::string> list) {
  std::string text;
  for (const auto& b : list) text += (text.empty() ? "" : ",") + b;
  return R"({"context": {}, "benchmarks": [)" + text + "]}";
}

TEST(BenchmarkJson, RepetitionsAreSessions) {
  const std::string a =
      document({benchmark("mm", 100), benchmark("mm", 200), benchmark("gone", 1)});
  const std::string b =
      document({benchmark("mm", 0.2, "us"), benchmark("mm", 0.2, "us"),
                R"({"run_name": "mm", "run_type": "aggregate", "real_time": 5})",
                benchmark("mm", 7, "ns", R"(, "error_occurred": true)"), benchmark("new", 1)});
  auto r = read_benchmark_json(a, b, "real_time");
  ASSERT_TRUE(std::holds_alternative<SampleTable>(r)) << std::get<std::string>(r);
  const SampleTable& t = std::get<SampleTable>(r);
  ASSERT_EQ(t.groups.size(), 1U);
  EXPECT_EQ(t.groups[0].name, "mm");
  ASSERT_EQ(t.groups[0].log_ratios.size(), 2U);
  EXPECT_NEAR(t.groups[0].log_ratios[0], std::log(2), 1e-12);
  EXPECT_NEAR(t.groups[0].log_ratios[1], 0, 1e-12);
  EXPECT_EQ(t.notes, (std::vector<std::string>{
                         "'mm' has 2 repetitions in the first file, 3 in the second",
                         "'gone' is in the first file only", "'new' is in the second file only"}));
}

TEST(BenchmarkJson, MistakesAreNamed) {
  const std::string good = document({benchmark("mm", 1)});
  auto message = [&](const std::string& a, const std::string& b, const char* time = "real_time") {
    auto r = read_benchmark_json(a, b, time);
    return std::holds_alternative<std::string>(r) ? std::get<std::string>(r) : "accepted";
  };
  EXPECT_EQ(message("{", good), "the first file is not JSON");
  EXPECT_EQ(message(good, "[]"),
            "the second file has no list 'benchmarks': it is no document of Google Benchmark");
  EXPECT_EQ(message(good, good, "wall"), "the first file: benchmark 'mm' has no number 'wall'");
  EXPECT_EQ(message(good, document({benchmark("mm", 1, "h")})),
            "the second file: benchmark 'mm' has the unit 'h'");
  EXPECT_EQ(message(good, document({benchmark("x", 1)})), "the files have no benchmark in common");
  EXPECT_EQ(message(good, R"({"benchmarks": [1]})"),
            "the second file: an entry of 'benchmarks' is no object");
  EXPECT_EQ(message(good, R"({"benchmarks": [{"real_time": 1}]})"),
            "the second file: a benchmark has no name");
}

}  // namespace
}  // namespace beamline::reports
