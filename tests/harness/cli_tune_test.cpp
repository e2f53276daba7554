// `tune` from end to end on this machine's processor: what it prints, stores and survives. No test
// here asserts a time.
#include <gtest/gtest.h>

#include <csignal>
#include <random>

#include "cli_runner.h"

namespace beamline::test {
namespace {

const char* const two_kernels = R"([[workload]]
name    = "scale"
inputs  = { x = "f32[1000]" }
compute = "return x * 2 + 1"

[[workload]]
name    = "product"
params  = { M = 33, N = 17, K = 29 }
inputs  = { a = "f32[M, K]", b = "f32[K, N]" }
compute = "return a @ b"
)";

class Tune : public ::testing::Test {
 protected:
  CliResult tune(std::vector<std::string> more = {}, const std::string& what = {}) {
    std::vector<std::string> arguments{
        "tune", what.empty() ? workload : what, "--db", db, "--budget", "4s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cli.run(arguments);
  }
  nlohmann::ordered_json query(const std::string& sql) {
    CliResult r = cli.run({"db", "query", sql, "--db", db, "--json"});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.code == 0 ? r.json()["rows"] : nlohmann::ordered_json();
  }

  CliRunner cli;
  std::string workload = cli.file("two.toml", two_kernels);
  std::string db = cli.path("tuned.db");
};

TEST_F(Tune, StoresVerifiedWinnersAndServesThem) {
  CliResult r = tune({"--json", "--label", "first", "--seed", "3"});
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = r.json();
  EXPECT_EQ(shape_of(j),
            "{schema: integer, run: integer, device: {id: text, name: text}, kernels: [{key: text, "
            "name: text, "
            "workloads: [text], status: text, opts: text, best_ns: number, heuristic_ns: number, "
            "unoptimized_ns: "
            "number, gflops: number, gbps: number, bound_share: null, verified: bool, trials: {ok: "
            "integer, rejected: "
            "integer, compile_error: integer, launch_error: integer, timeout: integer, crashed: "
            "integer, wrong_result: "
            "integer, mistrusted: integer}}], wall_s: number}");
  ASSERT_EQ(j["kernels"].size(), 2U);
  for (const auto& k : j["kernels"]) {
    EXPECT_EQ(k["status"], "tuned");
    EXPECT_EQ(k["verified"], true);
    EXPECT_GE(k["trials"]["ok"].get<int>(), 1);
    EXPECT_EQ(k["trials"]["wrong_result"], 0);
    EXPECT_EQ(k["trials"]["crashed"], 0);
  }

  // The database agrees with what was printed, and is sound.
  auto best = cli.run({"best", "--db", db, "--json"}).json()["best"];
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(shape_of(best[0]["tie_opts"]).substr(0, 1), "[");
  for (const auto& k : j["kernels"]) {
    auto row = query("SELECT opts, best_ns, verified, run_id FROM best_opts WHERE kernel_key = '" +
                     k["key"].get<std::string>() + "'");
    ASSERT_EQ(row.size(), 1U);
    EXPECT_EQ(row[0][0], k["opts"]);
    EXPECT_DOUBLE_EQ(row[0][1].get<double>(), k["best_ns"].get<double>());
    EXPECT_EQ(row[0][3], j["run"]);
  }
  CliResult check = cli.run({"db", "check", "--db", db});
  EXPECT_EQ(check.code, 0) << check.out;
  EXPECT_EQ(query("SELECT label, status, seed FROM runs").dump(), R"([["first","finished",3]])");
  EXPECT_GE(query("SELECT count(*) FROM trials WHERE stage = 'confirm' AND status = 'ok'")[0][0]
                .get<int>(),
            2);
  EXPECT_GE(query("SELECT count(*) FROM trial_samples")[0][0].get<int>(), 10);

  // The second time nothing is searched.
  CliResult again = tune({"--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again.json()["kernels"][i]["status"], "cached");
    EXPECT_EQ(again.json()["kernels"][i]["best_ns"], j["kernels"][i]["best_ns"]);
    EXPECT_EQ(again.json()["kernels"][i]["trials"]["ok"], 0);
  }
  EXPECT_EQ(tune({"--json", "--retune"}, workload + ":scale").json()["kernels"][0]["status"],
            "tuned");
  EXPECT_EQ(cli.run({"best", "--db", db, "--json", "--workload", "product"}).json()["best"].size(),
            1U);
  EXPECT_EQ(cli.run({"best", "--db", db, "--json", "--device", "cpu", "--kernel", "nosuch"})
                .json()["best"]
                .size(),
            0U);
}

TEST_F(Tune, PrintsATable) {
  CliResult r = tune({}, workload + ":scale");
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* word :
       {"kernel", "GFLOP/s", "GB/s", "vs heuristic", "vs unoptimised", "e_1000", "tuned"})
    EXPECT_NE(r.out.find(word), std::string::npos) << word;
  EXPECT_NE(r.err.find("[1/1] e_1000: tuned"), std::string::npos) << r.err;
  CliResult quiet = tune({"--quiet"}, workload + ":scale");
  EXPECT_EQ(quiet.err, "");
  EXPECT_NE(quiet.out.find("cached"), std::string::npos);
}

TEST_F(Tune, PlantedFaultsEndAsTrialsAndTheRunGoesOn) {
  CliResult r = tune({"--json", "--plant", "wrong", "--plant", "crash", "--plant", "hang"},
                     workload + ":scale");
  ASSERT_EQ(r.code, 0) << r.err;
  auto k = r.json()["kernels"][0];
  EXPECT_EQ(k["status"], "tuned");
  EXPECT_EQ(k["trials"]["wrong_result"], 1);
  EXPECT_EQ(k["trials"]["crashed"], 1);
  EXPECT_GE(k["trials"]["timeout"].get<int>(), 1);
  EXPECT_EQ(
      query("SELECT opts, status, time_ns FROM trials WHERE opts LIKE 'plant:%' ORDER BY opts")
          .dump(),
      R"([["plant:crash","crashed",null],["plant:hang","timeout",null],["plant:wrong","wrong_result",null]])");
  EXPECT_EQ(cli.run({"db", "check", "--db", db}).code, 0);
}

TEST_F(Tune, DryRunChangesNothing) {
  CliResult r = tune({"--dry-run", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, dry_run: bool, device: {id: text, name: text}, kernels: [{key: "
            "text, name: text, "
            "workloads: [text], status: text, reason: text}], budget_s: number}");
  EXPECT_FALSE(std::filesystem::exists(db));
}

TEST_F(Tune, InterruptKeepsTheWork) {
  // The first kernel is done when its line appears; the second is in hand.
  CliResult r = cli.run_and_signal(
      {"tune", workload, "--db", db, "--budget", "60s", "--json", "--label", "cut"},
      "[1/2] e_1000: tuned", SIGINT);
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.json()["kernels"].size(), 1U);
  EXPECT_EQ(query("SELECT status FROM runs").dump(), R"([["interrupted"]])");
  EXPECT_EQ(cli.run({"best", "--db", db, "--json"}).json()["best"].size(), 1U);
  EXPECT_EQ(cli.run({"db", "check", "--db", db}).code, 0);
}

// Every trial that was finished stays and is not tried again, whenever the run is killed.
TEST_F(Tune, KilledAtAnyMomentItGoesOnWithoutRepeating) {
  std::mt19937 random(20'261'130);
  const std::string repeated =
      "SELECT run_id, kernel_key, stage, opts FROM trials GROUP BY 1, 2, 3, 4 HAVING count(*) > 1";
  const std::string all = "SELECT trial_id, kernel_key, stage, opts FROM trials ORDER BY 1";
  nlohmann::ordered_json before = nlohmann::ordered_json::array();
  auto next = [&]() -> std::vector<std::string> {
    std::vector<std::string> arguments{"tune", workload, "--db", db, "--budget", "60trials"};
    if (!std::filesystem::exists(db)) return arguments;
    auto status = query("SELECT status FROM runs ORDER BY run_id DESC LIMIT 1");
    if (status.empty()) return arguments;
    if (status[0][0] == "finished")
      arguments.emplace_back("--retune");
    else
      arguments.insert(arguments.end(), {"--resume", "last"});
    return arguments;
  };
  int resumed = 0;
  for (int kills = 0, tries = 0; kills < 20 && tries < 60; ++tries) {
    std::vector<std::string> arguments = next();
    resumed += arguments.back() == "last";
    // Early ones hit the start, late ones the finals.
    std::chrono::milliseconds after(5 + random() % (tries % 3 == 0 ? 100U : 1500U));
    CliResult r = cli.run_and_signal(arguments, after, SIGKILL);
    ASSERT_TRUE(r.code == 0 || r.code == 128 + SIGKILL) << r.code << r.err;
    kills += r.code != 0;
    if (!std::filesystem::exists(db)) continue;
    CliResult check = cli.run({"db", "check", "--db", db});
    ASSERT_EQ(check.code, 0) << check.out << check.err;
    ASSERT_EQ(query(repeated).dump(), "[]");
    auto now = query(all);
    ASSERT_GE(now.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(now[i], before[i]);
    before = now;
  }
  EXPECT_GE(resumed, 5);
  EXPECT_FALSE(before.empty());
  while (query("SELECT status FROM runs ORDER BY run_id DESC LIMIT 1")[0][0] != "finished")
    ASSERT_EQ(cli.run(next()).code, 0);
  EXPECT_EQ(query(repeated).dump(), "[]");
  EXPECT_EQ(query("SELECT count(*) FROM best_opts WHERE verified = 1")[0][0], 2);
}

TEST_F(Tune, ResumeRefusesWhatCannotGoOn) {
  EXPECT_EQ(tune({}, workload + ":scale").code, 0);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--resume", "1"}, "run 1 is finished"},
      {{"--resume", "7"}, "there is no run 7"},
      {{"--resume", "night"},
       "there is no run 'night' (expected a number, last, last-N or a label)"},
      {{"--strategy", "greedy"}, "'greedy' is none of heuristic, random, beam, exhaustive"},
      {{"--strategy", "random", "--beam", "3"}, "the strategy 'random' has none"},
      {{"--beam", "0"}, "--beam"},
      {{"--threads", "0"}, "--threads"},
  };
  for (const auto& [more, message] : cases) {
    CliResult r = tune(more, workload + ":scale");
    EXPECT_EQ(r.code, 2) << message;
    EXPECT_NE(r.err.find(message), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
}

TEST_F(Tune, AWeakerSearchDoesNotServeAStrongerOne) {
  auto status = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"tune", workload + ":scale", "--db", db, "--json", "--budget", "20trials"});
    CliResult r = cli.run(more);
    EXPECT_EQ(r.code, 0) << r.err;
    return r.json()["kernels"][0]["status"].get<std::string>();
  };
  EXPECT_EQ(status({"--strategy", "heuristic"}), "tuned");
  EXPECT_EQ(status({"--strategy", "heuristic"}), "cached");
  EXPECT_EQ(status({"--beam", "2"}), "tuned");
  EXPECT_EQ(status({"--strategy", "heuristic"}), "cached");
  EXPECT_EQ(status({"--beam", "2"}), "cached");
  EXPECT_EQ(status({}), "tuned");  // beam 4
  EXPECT_EQ(status({"--strategy", "random"}), "cached");
  EXPECT_EQ(query("SELECT DISTINCT strategy, beam FROM t_best").dump(), R"([["beam",4]])");
}

TEST_F(Tune, ThreadsArePartOfTheDevice) {
  ASSERT_EQ(tune({"--threads", "1"}, workload + ":scale").code, 0);
  EXPECT_EQ(query("SELECT count(*) FROM trials WHERE opts LIKE '%THREAD%'")[0][0], 0);
}

TEST_F(Tune, ThroughCAndClang) {
  CliResult r = tune({"--device", "cpu:c", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = r.json();
  EXPECT_TRUE(j["device"]["id"].get<std::string>().starts_with("cpu_c-"));
  for (const auto& k : j["kernels"]) {
    EXPECT_EQ(k["status"], "tuned");
    EXPECT_EQ(k["trials"]["wrong_result"], 0);
    EXPECT_EQ(k["trials"]["compile_error"], 0);
  }
  EXPECT_TRUE(
      query("SELECT DISTINCT toolchain FROM best_opts")[0][0].get<std::string>().starts_with(
          "clang 19"));
  // Another device: the rows of one do not serve the other.
  EXPECT_EQ(tune({"--json"}).json()["kernels"][0]["status"], "tuned");
  EXPECT_EQ(query("SELECT count(*) FROM best_opts")[0][0], 4);
}

TEST_F(Tune, ChainOfKernelsIsTunedWithRealIntermediates) {
  std::string chain = cli.file("chain.toml", R"toml([[workload]]
name    = "softmax"
inputs  = { x = "f32[24, 40]" }
compute = "return softmax(x) @ ones([40, 8])"
)toml");
  CliResult r = tune({"--json"}, chain);
  ASSERT_EQ(r.code, 0) << r.err;
  const auto document = r.json();
  EXPECT_EQ(document["kernels"].size(), 2U);
  for (const auto& k : document["kernels"]) EXPECT_EQ(k["status"], "tuned") << r.err;
}

TEST_F(Tune, DatabaseThatIsNoneIsRefused) {
  CliResult r = cli.run({"tune", workload, "--db", workload});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("two.toml"), std::string::npos) << r.err;
}

TEST_F(Tune, UnionOfDatabases) {
  ASSERT_EQ(tune({}, workload + ":scale").code, 0);
  std::string other = cli.path("other.db");
  ASSERT_EQ(cli.run({"tune", workload + ":product*", "--db", other, "--budget", "4s"}).code, 0);
  EXPECT_EQ(cli.run({"best", "--db", db, "--db", other, "--json"}).json()["best"].size(), 2U);
  EXPECT_EQ(
      cli.run({"db", "query", "SELECT count(*) FROM kernels", "--db", db, "--db", other, "--json"})
          .json()["rows"][0][0],
      2);
}

}  // namespace
}  // namespace beamline::test
