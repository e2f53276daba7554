// Commands about the machine itself: `doctor` and `devices --probe`. No test here asserts a rate.
#include <gtest/gtest.h>

#include "sample_database.h"

namespace beamline::test {
namespace {

TEST(Doctor, JudgesTheMachine) {
  CliRunner cli;
  CliResult r = cli.run({"doctor", "--json", "--sessions", "3"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = r.json();
  EXPECT_EQ(j["schema"], 1);
  std::string checks;
  for (const auto& c : j["doctor"]) checks += c["check"].get<std::string>() + " ";
  EXPECT_EQ(checks, "governor boost smt quota huge_pages clock_source hypervisor load steal ");
  EXPECT_EQ(shape_of(j["timer"]), "{kind: text, overhead_ns: number}");
  EXPECT_EQ(shape_of(j["noise_floor"]),
            "{compute: {sessions: integer, ratio: number, ci_low: number, ci_high: number, "
            "visible_percent: number}, memory: {sessions: integer, ratio: number, ci_low: number, "
            "ci_high: number, visible_percent: number}}");
  EXPECT_GE(j["noise_floor"]["compute"]["visible_percent"], 2.0);  // the rule's effect
  EXPECT_EQ(j["summary"].get<std::string>().find("on this machine differences under "), 0U);
}

TEST(Doctor, EndsWithTheLine) {
  CliRunner cli;
  CliResult r = cli.run({"doctor", "--sessions", "3"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\non this machine differences under "), std::string::npos) << r.out;
  EXPECT_TRUE(r.out.ends_with(" % (memory) cannot be seen\n")) << r.out;
  EXPECT_EQ(cli.run({"doctor", "--sessions", "2"}).code, 2);
}

TEST(Probe, MeasuresAndStoresPeaks) {
  CliRunner cli;
  const std::string db = cli.path("probe.db");
  make_sample_database(cli, db);
  CliResult r = cli.run({"devices", "--probe", "--footprint", "1", "--db", db, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  auto d = r.json()["devices"][0];
  EXPECT_EQ(shape_of(d["probe"]),
            "{bandwidth: [{bytes: number, read_gbps: number, triad_gbps: number}], gflops: number, "
            "gflops_1: number, gflops_f64: number, measured_at: text, threads: integer}");
  EXPECT_EQ(d["probe"]["bandwidth"].size(), 4U);  // 16, 64, 256, 1024 KiB
  EXPECT_EQ(d["peak_gflops"], d["probe"]["gflops"]);
  EXPECT_GT(d["peak_gbps"].get<double>(), 0);
  // What is stored has its share of the bound from now on, and a report shows it.
  const auto best = cli.run({"best", "--db", db, "--json"}).json()["best"];
  ASSERT_EQ(best.size(), 2U);
  for (const auto& b : best) EXPECT_GT(b["bound_share"].get<double>(), 0);
  EXPECT_NE(cli.run({"report", "markdown", "-o", "-", "--db", db}).out.find(" % |"),
            std::string::npos);
  // A later run writes the device again and forgets nothing.
  ASSERT_EQ(cli.run({"tune", cli.path("sample.toml") + ":scale", "--db", db, "--retune", "--budget",
                     "3s", "--quiet"})
                .code,
            0);
  const auto facts = cli.run({"db", "query", "SELECT facts FROM devices", "--db", db, "--json"});
  EXPECT_NE(facts.out.find("triad_gbps"), std::string::npos);
  const auto tuned =
      cli.run({"best", "--db", db, "--json", "--workload", "scale"}).json()["best"][0];
  EXPECT_EQ(tuned["run_id"], 3);
  EXPECT_GT(tuned["bound_share"].get<double>(), 0);
}

TEST(Probe, MistakesAreNamed) {
  CliRunner cli;
  CliResult two = cli.run({"devices", "--probe", "--db", "a", "--db", "b"});
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.err.find("give --db once"), std::string::npos);
  EXPECT_EQ(cli.run({"devices", "--footprint", "1"}).code, 2);
  EXPECT_EQ(cli.run({"devices", "--probe", "--footprint", "0"}).code, 2);
  CliResult text = cli.run({"devices", "--probe", "--db",
                            cli.file("x.db",
                                     "no database, but text of some "
                                     "length......................................................."
                                     ".............................................")});
  EXPECT_EQ(text.code, 2);
  EXPECT_NE(text.err.find("x.db"), std::string::npos) << text.err;
}

}  // namespace
}  // namespace beamline::test
