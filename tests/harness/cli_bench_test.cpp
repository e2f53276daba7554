// `bench`: Google Benchmark's document and flags. No test here asserts a time.
#include <gtest/gtest.h>

#include "sample_database.h"

namespace beamline::test {
namespace {

const std::vector<std::string> quick = {"--", "--benchmark_repetitions=2",
                                        "--benchmark_min_time=0.0001"};

class Bench : public ::testing::Test {
 protected:
  CliResult bench(std::vector<std::string> arguments, const std::vector<std::string>& flags = {}) {
    arguments.insert(arguments.begin(), "bench");
    arguments.insert(arguments.end(), {"--db", db});
    arguments.insert(arguments.end(), quick.begin(), quick.end());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return cli.run(arguments);
  }
  CliRunner cli;
  std::string db = cli.path("sample.db");
};

TEST_F(Bench, OneDocumentForAllKernels) {
  make_sample_database(cli, db);
  const std::string file = cli.path("sample.toml"), out = cli.path("out.json");
  CliResult r = bench({file, "--json"}, {"--benchmark_out=" + out});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = r.json();
  EXPECT_EQ(j["context"]["device_id"],
            cli.run({"devices", "--json"}).json()["devices"][0]["device_id"]);
  std::map<std::string, int> repetitions;
  std::set<int> families;
  for (const auto& b : j["benchmarks"])
    if (b["run_type"] == "iteration") {
      ++repetitions[b["run_name"]];
      families.insert(b["family_index"].get<int>());
      EXPECT_GT(b["real_time"].get<double>(), 0);
      EXPECT_GT(b["FLOP/s"].get<double>(), 0);
    }
  // Two kernels have a stored best, the third has none.
  EXPECT_EQ(repetitions.size(), 8U) << r.out;
  EXPECT_EQ(families.size(), 8U);
  for (const auto& [name, n] : repetitions) EXPECT_EQ(n, 2) << name;
  EXPECT_EQ(nlohmann::json::parse(read_file(out))["benchmarks"].size(), j["benchmarks"].size());
  // What it writes, `verdict` reads.
  EXPECT_EQ(cli.run({"verdict", out, out, "--json"}).json()["groups"].size(), 8U);
}

TEST_F(Bench, FlagsAreGoogleBenchmarks) {
  const std::string file = cli.file("sample.toml", sample_workload);
  CliResult text = bench({file + ":scale"}, {"--benchmark_filter=heuristic"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("/heuristic/manual_time"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("/unoptimised"), std::string::npos);
  CliResult json = bench({file, "--kernel", "0"}, {"--benchmark_format=json"});
  EXPECT_EQ(json.json()["benchmarks"].empty(), false);
}

TEST_F(Bench, MistakesAreNamed) {
  const std::string file = cli.file("sample.toml", sample_workload);
  struct Case {
    std::vector<std::string> arguments, flags;
    const char* message;
  };
  for (const Case& c :
       std::vector<Case>{{{file},
                          {"--benchmark_nosuch=1"},
                          "Google Benchmark does not know '--benchmark_nosuch=1'"},
                         {{file}, {"--benchmark_out=/nonexistent/x.json"}, "/nonexistent/x.json"},
                         {{file}, {"--benchmark_out_format=csv"}, "'csv' is not json"},
                         {{file}, {"--benchmark_format=csv"}, "'csv' is not console or json"},
                         {{file, "--json"}, {"--benchmark_format=console"}, "exclude each other"},
                         {{file, "--kernel", "7"}, {}, "no kernel is called '7'"},
                         {{file, "--device", "cuda:0"}, {}, "'cuda:0' is not available"},
                         {{"/nonexistent.toml"}, {}, "/nonexistent.toml"},
                         {{}, {}, "WORKLOAD... is missing"}}) {
    CliResult r = bench(c.arguments, c.flags);
    EXPECT_EQ(r.code, 2) << c.message;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(c.message), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace beamline::test
