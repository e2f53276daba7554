// Commands that take care of a database: pin, unpin, accept, db backup, prune, merge, migrate and
// explain-key.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/version.h"
#include "sample_database.h"

namespace beamline::test {
namespace {

class Care : public ::testing::Test {
 protected:
  void SetUp() override { make_sample_database(cli, db); }
  CliResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--db", db, "--json"});
    return cli.run(arguments);
  }
  nlohmann::ordered_json query(const std::string& sql, const std::string& file = {}) {
    CliResult r = cli.run({"db", "query", sql, "--db", file.empty() ? db : file, "--json"});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.json()["rows"];
  }
  bool sound(const std::string& file) { return cli.run({"db", "check", "--db", file}).code == 0; }
  std::string key_of(const std::string& workload) {
    return query("SELECT kernel_key FROM kernel_uses WHERE workload_id LIKE '" + workload +
                 "@%'")[0][0];
  }
  std::string dump(const std::string& file) {
    std::string all;
    for (const char* view :
         {"runs", "trials", "trial_samples", "kernels", "best_opts", "verdicts", "devices"})
      all += query(std::string("SELECT * FROM ") + view, file).dump() + "\n";
    return all;
  }

  CliRunner cli;
  std::string db = cli.path("sample.db");
};

TEST_F(Care, PinKeepsAndUnpinFrees) {
  const std::string key = key_of("scale");
  CliResult r = run({"pin", key.substr(0, 20)});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["pin"][0]["pinned"], 1);
  EXPECT_EQ(r.json()["pin"][0]["kernel_key"], key);
  EXPECT_EQ(query("SELECT count(*) FROM best_opts WHERE pinned = 1").dump(), "[[1]]");
  EXPECT_EQ(run({"pin", key, "--device", "cpu"}).code, 0);  // again is fine
  EXPECT_EQ(cli.run({"best", "--db", db}).out.find("pinned") != std::string::npos, true);
  r = run({"unpin", key});
  EXPECT_EQ(r.json()["unpin"][0]["pinned"], 0);
}

// The sample's engine is an old one. What it found may be no schedule any more.
TEST_F(Care, RowsOfAnotherEngineAreStaleAndRunWhereTheyCan) {
  EXPECT_NE(cli.run({"best", "--db", db}).out.find("stale: another engine"), std::string::npos);
  const auto chosen = [&] {
    const CliResult r = run({"run", cli.path("sample.toml") + ":scale"});
    EXPECT_EQ(r.code, 0) << r.err;
    const auto kernel = r.json()["run"][0];
    return kernel["from"].get<std::string>() + " " + kernel["opts"].get<std::string>() + r.err;
  };
  EXPECT_EQ(chosen(), "stored UPCAST:0:4");
  for (const char* opts : {"WARP:0:4", "UPCAST:0", "UPCAST:7:4", "PACK:1:0;UPCAST:0:4"}) {
    db::Store(db).database().execute(fmt::format("UPDATE t_best SET opts = '{}'", opts));
    const std::string now = chosen();
    EXPECT_EQ(now.substr(0, 9), "heuristic") << opts;
    EXPECT_NE(now.find(opts), std::string::npos) << now;
  }
  db::Store(db).database().execute(
      fmt::format("UPDATE t_best SET opts = '', engine_version = '{}'", engine_version));
  EXPECT_EQ(chosen(), "stored ");
  EXPECT_EQ(cli.run({"best", "--db", db}).out.find("stale"), std::string::npos);
}

TEST_F(Care, AcceptIsAVerdictWithANote) {
  const std::string key = key_of("rows");
  CliResult r = run({"accept", key, "--run", "first", "--note", "new allocator 'x'"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, accept: [{run_id: integer, baseline_run_id: null, kernel_key: text, "
            "device_id: text, "
            "verdict: text, cause: null, ratio: null, ci_low: null, ci_high: null, sessions: null, "
            "note: text}]}");
  EXPECT_EQ(r.json()["accept"][0]["note"], "new allocator 'x'");
  EXPECT_EQ(run({"accept", key, "--run", "1", "--note", "better words"}).json()["accept"].size(),
            1U);
  EXPECT_EQ(query("SELECT verdict, note FROM verdicts").dump(), R"([["ACCEPTED","better words"]])");
  EXPECT_TRUE(sound(db));
}

TEST_F(Care, BackupIsTheSameDatabase) {
  const std::string copy = cli.path("copy.db");
  CliResult r = run({"db", "backup", copy});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, backup: {path: text, bytes: integer, sound: bool}}");
  EXPECT_EQ(dump(copy), dump(db));
  EXPECT_EQ(run({"db", "backup", copy}).code, 2);  // it exists
  EXPECT_EQ(run({"db", "backup", "/nonexistent/x.db"}).code, 2);
}

TEST_F(Care, PruneKeepsWhatBestsStandOn) {
  CliResult would = run({"db", "prune", "--keep", "0", "--dry-run"});
  ASSERT_EQ(would.code, 0) << would.err;
  const std::string before = dump(db);
  EXPECT_EQ(would.json()["prune"]["runs"], 2);
  EXPECT_EQ(dump(db), before);
  CliResult r = run({"db", "prune", "--keep", "1"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, prune: {dry_run: bool, keep: integer, runs: integer, trials: "
            "integer, samples: "
            "integer, artifacts: integer, bytes_before: integer, bytes_after: integer}}");
  EXPECT_EQ(r.json()["prune"]["runs"], 1);
  // Of run 1 only the confirmation of what it tuned last is left: the best of 'rows'.
  EXPECT_EQ(query("SELECT DISTINCT stage FROM trials WHERE run_id = 1").dump(), R"([["confirm"]])");
  EXPECT_EQ(query("SELECT count(*) FROM trials WHERE run_id = 1").dump(), "[[2]]");
  EXPECT_EQ(query("SELECT count(*) FROM trials WHERE run_id = 2").dump(), "[[46]]");
  EXPECT_EQ(query("SELECT count(*) FROM runs").dump(), "[[2]]");
  EXPECT_TRUE(sound(db));
  EXPECT_EQ(run({"db", "prune", "--keep", "1"}).json()["prune"]["trials"], 0);
}

TEST_F(Care, MergeTakesAllOnceAndOnlyOnce) {
  const std::string other = cli.path("other.db");
  make_sample_database(cli, other);
  // The same kernels were tuned elsewhere, one of them better.
  {
    db::Store store(other);
    for (db::BestRow b : store.all_best()) {
      if (b.kernel_key != key_of("scale")) continue;
      b.opts = "UPCAST:0:8";
      b.best_ns = 500;
      ASSERT_FALSE(store.store_best(b, b.run_id));
    }
    store.database().execute(
        "UPDATE t_run SET host = 'elsewhere'; UPDATE t_best SET tuned_at = '2000-01-01T00:00:00Z'");
  }
  const std::string there = dump(other);
  CliResult r = run({"db", "merge", other});
  ASSERT_EQ(r.code, 0) << r.err;
  auto m = r.json()["merge"][0];
  EXPECT_EQ(m["runs"], 2);
  EXPECT_EQ(m["known_runs"], 0);
  EXPECT_EQ(m["kernels"], 0);
  EXPECT_EQ(m["best_taken"], 1);
  EXPECT_EQ(m["best_kept"], 1);
  EXPECT_EQ(dump(other), there);  // only read
  EXPECT_EQ(query("SELECT count(*) FROM runs").dump(), "[[4]]");
  EXPECT_EQ(query("SELECT opts, run_id FROM best_opts WHERE best_ns = 500").dump(),
            R"([["UPCAST:0:8",4]])");
  // Samples have found their trials under their new numbers.
  EXPECT_EQ(query("SELECT count(DISTINCT trial_id) FROM trial_samples WHERE trial_id IN (SELECT "
                  "trial_id FROM trials "
                  "WHERE run_id > 2 AND stage = 'confirm')")
                .dump(),
            "[[6]]");
  EXPECT_TRUE(sound(db));
  const std::string once = dump(db);
  m = run({"db", "merge", other}).json()["merge"][0];
  EXPECT_EQ(m["runs"], 0);
  EXPECT_EQ(m["known_runs"], 2);
  EXPECT_EQ(m["trials"], 0);
  EXPECT_EQ(dump(db), once);
  EXPECT_EQ(run({"db", "merge", db}).code, 2);
  EXPECT_EQ(run({"db", "merge", cli.path("nosuch.db")}).code, 2);
}

TEST_F(Care, MergeLeavesAPinnedBest) {
  const std::string other = cli.path("other.db");
  make_sample_database(cli, other);
  {
    db::Store store(other);
    store.database().execute(
        "UPDATE t_run SET host = 'elsewhere'; UPDATE t_best SET best_ns = 1, opts = ''");
  }
  ASSERT_EQ(run({"pin", key_of("scale")}).code, 0);
  EXPECT_EQ(run({"db", "merge", other}).json()["merge"][0]["best_kept"], 1);
  EXPECT_EQ(query("SELECT opts FROM best_opts WHERE pinned = 1").dump(), R"([["UPCAST:0:4"]])");
}

TEST_F(Care, MigrateRenamesAndLosesNothing) {
  CliResult same = run({"db", "migrate"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(same.json()["migrate"]["kernels"], 3);
  EXPECT_EQ(same.json()["migrate"]["renamed"].size(), 0U);
  // As an engine would have left it that gave this kernel another key.
  const std::string key = key_of("scale"), old_key(64, '0');
  {
    db::Store store(db);
    store.database().execute("PRAGMA foreign_keys=OFF");
    for (const char* table : {"t_kernel", "t_kernel_use", "t_trial", "t_best"})
      store.database().execute("UPDATE " + std::string(table) + " SET kernel_key = '" + old_key +
                               "' WHERE kernel_key = '" + key + "'");
    store.upsert_kernel({.kernel_key = std::string(64, '1'),
                         .name = "garbled",
                         .ast = "%0=NOSUCH()",
                         .shape_json = "[1]",
                         .dtypes = "f32"});
  }
  CliResult dry = run({"db", "migrate", "--dry-run"});
  EXPECT_EQ(dry.json()["migrate"]["renamed"].size(), 1U);
  EXPECT_EQ(query("SELECT count(*) FROM key_alias").dump(), "[[0]]");
  CliResult r = run({"db", "migrate"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["migrate"]["renamed"][0]["old_key"], old_key);
  EXPECT_EQ(r.json()["migrate"]["renamed"][0]["new_key"], key);
  EXPECT_EQ(r.json()["migrate"]["unreadable"].dump(), "[\"" + std::string(64, '1') + "\"]");
  db::Store store(db, db::Access::ReadOnly);
  auto best = store.lookup_best(key, query("SELECT device_id FROM devices")[0][0]);
  ASSERT_TRUE(best);  // found under the new key
  EXPECT_EQ(best->opts, "UPCAST:0:4");
  EXPECT_EQ(run({"db", "migrate"}).json()["migrate"]["renamed"].size(), 0U);
  CliResult why = run({"db", "explain-key", old_key.substr(0, 12), key.substr(0, 12)});
  ASSERT_EQ(why.code, 0) << why.err;
  EXPECT_EQ(why.json()["explain_key"]["alias"], true);
  EXPECT_EQ(why.json()["explain_key"]["a"]["today_key"], key);
  EXPECT_TRUE(sound(db));
}

TEST_F(Care, ExplainKeyNamesWhatDiffers) {
  const std::string a = key_of("scale"), b = key_of("broken");
  CliResult r = run({"db", "explain-key", a, b});
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = r.json()["explain_key"];
  EXPECT_EQ(shape_of(j),
            "{a: {kernel_key: text, name: text, shape: [integer], dtypes: text, newest_key: text, "
            "today_key: text}, b: "
            "{kernel_key: text, name: text, shape: [integer], dtypes: text, newest_key: text, "
            "today_key: text}, "
            "verdict: text, alias: bool, differences: [{what: text, a: text, b: text}]}");
  EXPECT_EQ(j["verdict"], "different kernels");
  EXPECT_EQ(j["differences"][0]["what"], "shape");
  bool nodes = false;
  for (const auto& d : j["differences"])
    nodes |= d["what"].get<std::string>().starts_with("nodes ");
  EXPECT_TRUE(nodes) << j.dump(2);
  EXPECT_EQ(run({"db", "explain-key", a, a}).json()["explain_key"]["verdict"], "the same kernel");
  CliResult text = cli.run({"db", "explain-key", a, b, "--db", db});
  EXPECT_NE(text.out.find("different kernels"), std::string::npos);
}

TEST_F(Care, MistakesAreNamed) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  const std::string broken = key_of("broken");
  for (const Case& c : std::vector<Case>{
           {{"pin"}, "KEY is missing"},
           {{"pin", "nosuch"}, "no kernel is called 'nosuch'"},
           {{"pin", ""}, "no kernel is called ''"},
           {{"pin", broken}, "has no stored best"},
           {{"unpin", key_of("scale"), "--device", "gpu"}, "has no stored best on device 'gpu'"},
           {{"accept", broken}, "--run is missing"},
           {{"accept", broken, "--run", "1"}, "--note is missing"},
           {{"accept", broken, "--run", "9", "--note", "x"}, "there is no run 9"},
           {{"accept", key_of("rows"), "--run", "2", "--note", "x"}, "run 2 has nothing of kernel"},
           {{"db", "prune", "--keep", "-1"}, "--keep: '-1'"},
           {{"db", "backup"}, "PATH is missing"},
           {{"db", "explain-key", "a"}, "A B is missing"},
           {{"db", "explain-key", "zz", "yy"}, "no kernel has a key that starts with 'zz'"},
           {{"db", "explain-key", "", broken}, "no kernel has a key that starts with ''"},
           {{"db", "merge", "x", "--db", "y"}, "give --db once"},
           {{"db", "migrate", "--db", "y"}, "give --db once"}}) {
    CliResult r = run(c.arguments);
    EXPECT_EQ(r.code, 2) << c.message;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(c.message), std::string::npos) << c.message << ": " << r.err;
  }
  const std::string absent = cli.path("absent.db");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"pin", "x"},
                                             {"db", "prune"},
                                             {"db", "merge", db},
                                             {"db", "migrate"},
                                             {"db", "backup", cli.path("b.db")}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--db", absent});
    EXPECT_EQ(cli.run(arguments).code, 2) << command[0];
    EXPECT_FALSE(std::filesystem::exists(absent)) << command[0];
  }
}

}  // namespace
}  // namespace beamline::test
