// `verdict` on files, from recorded noise to nonsense.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli_runner.h"

namespace beamline::test {
namespace {

const std::string noise = BEAMLINE_SOURCE_DIR "/tests/data/noise/other_core_busy.csv";

TEST(CliVerdict, RecordedNoiseAsTheGoldenTextSays) {
  CliRunner cli;
  CliResult r = cli.run({"verdict", noise, "--ref", "a", "--new", "plus10", "--json"});
  const std::string path = BEAMLINE_SOURCE_DIR "/tests/golden/verdict.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << r.out;
  EXPECT_EQ(r.out, read_file(path)) << r.err;
  EXPECT_EQ(r.code, 3);  // 10 % more work is SLOWER
  EXPECT_EQ(cli.run({"verdict", noise, "--ref", "a", "--new", "plus10", "--json"}).out, r.out);
}

TEST(CliVerdict, TheSameCodeIsNeverSlower) {
  CliRunner cli;
  CliResult r = cli.run({"verdict", noise, "--ref", "a", "--new", "b", "--by", "kernel"});
  EXPECT_EQ(r.code, 0) << r.out;
  EXPECT_EQ(r.out.find("SLOWER"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("SAME"), std::string::npos) << r.out;
}

TEST(CliVerdict, TheOrderOfRowsIsNothing) {
  CliRunner cli;
  std::string forward = "session,a,b\n", backward = forward;
  for (int s = 0; s < 25; ++s) {
    const std::string row = std::to_string(s) + ",100," + std::to_string(s < 5 ? 110 : 100) + "\n";
    forward += row;
    backward.insert(12, row);
  }
  CliResult r =
      cli.run({"verdict", cli.file("f.csv", forward), "--ref", "a", "--new", "b", "--json"});
  EXPECT_EQ(
      r.out,
      cli.run({"verdict", cli.file("b.csv", backward), "--ref", "a", "--new", "b", "--json"}).out);
  EXPECT_EQ(r.json()["groups"][0]["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(r.json()["groups"][0]["reason"], "SLOWER did not repeat on fresh sessions");
  EXPECT_EQ(r.json()["groups"][0]["group"], "");
}

TEST(CliVerdict, TwoDocumentsOfGoogleBenchmark) {
  CliRunner cli;
  auto document = [&](const char* name, double ns) {
    std::string list;
    for (int i = 0; i < 30; ++i)
      list += (i > 0 ? "," : "") +
              (R"({"name": "mm", "run_name": "mm", "run_type": "iteration", "time_unit": "ns",
        "cpu_time": 5, "real_time": )" +
               std::to_string(ns + i % 3)) +
              "}";
    return cli.file(name, R"({"benchmarks": [)" + list + "]}");
  };
  const std::string slow = document("slow.json", 200), fast = document("fast.json", 100);
  CliResult r = cli.run({"verdict", fast, slow, "--json"});
  EXPECT_EQ(r.code, 3) << r.err;
  EXPECT_EQ(r.json()["groups"][0]["group"], "mm");
  EXPECT_EQ(r.json()["groups"][0]["verdict"], "SLOWER");
  EXPECT_NE(r.err.find("one after the other"), std::string::npos);
  EXPECT_EQ(cli.run({"verdict", slow, fast}).code, 0);
  EXPECT_EQ(cli.run({"verdict", fast, slow, "--time", "cpu_time", "--json"})
                .json()["groups"][0]["verdict"],
            "SAME");
}

TEST(CliVerdict, MistakesAreNamed) {
  CliRunner cli;
  const std::string csv = cli.file("x.csv", "session,a,b\n0,1,2\n1,1,zwei\n");
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {{}, "FILE... is missing"},
           {{"/nonexistent.csv", "--ref", "a", "--new", "b"}, "/nonexistent.csv: No such file"},
           {{csv, "--new", "b"}, "--ref COL is missing"},
           {{csv, "--ref", "a"}, "--new COL is missing"},
           {{csv, "--ref", "a", "--new", "b"},
            "x.csv: line 3, column 'b': 'zwei' is not a number of nanoseconds"},
           {{csv, "--ref", "a", "--new", "c"}, "x.csv: --new: there is no column 'c'"},
           {{csv, "--ref", "a", "--new", "b", "--time", "cpu_time"},
            "--time is for files of Google Benchmark"},
           {{csv, csv}, "the first file is not JSON"},
           {{csv, csv, "--ref", "a"}, "--ref is for a CSV file"},
           {{csv, csv, csv}, "unexpected argument"},
           {{cli.path(""), "--ref", "a", "--new", "b"}, cli.path("")}}) {
    std::vector<std::string> arguments = {"verdict"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    CliResult r = cli.run(arguments);
    EXPECT_EQ(r.code, 2) << c.message;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(c.message), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace beamline::test
