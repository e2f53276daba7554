#include "db/schema.h"

#include <gmock/gmock.h>

#include "db/query.h"
#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::HasSubstr;
using testing::IsEmpty;

// The users' contract: views, columns, their order and types.
struct View {
  const char* name;
  std::vector<std::string> columns;
};
// clang-format off
const std::vector<View> contract = {
    {"best_opts",
     {"kernel_key TEXT", "kernel_name TEXT", "device_id TEXT", "device_name TEXT", "mode TEXT",
      "opts TEXT", "local_size TEXT", "best_ns REAL", "heuristic_ns REAL", "unoptimized_ns REAL",
      "gain REAL", "ci_low REAL", "ci_high REAL", "sessions INTEGER", "tie_opts TEXT",
      "gflops REAL", "gbps REAL", "bound_share REAL", "verified INTEGER", "numerics TEXT",
      "output_hash TEXT", "pinned INTEGER", "stale INTEGER", "stale_reason TEXT",
      "code_hash TEXT", "source_hash TEXT", "run_id INTEGER", "engine_version TEXT",
      "action_set TEXT", "toolchain TEXT", "environment_id TEXT", "tuned_at TEXT"}},
    {"trials",
     {"trial_id INTEGER", "run_id INTEGER", "kernel_key TEXT", "device_id TEXT", "mode TEXT",
      "opts TEXT", "status TEXT", "stage TEXT", "time_ns REAL", "ratio_to_incumbent REAL",
      "n_samples INTEGER", "compile_ms REAL", "code_hash TEXT", "error TEXT",
      "created_at TEXT"}},
    {"trial_samples", {"trial_id INTEGER", "session INTEGER", "sweep INTEGER", "ns REAL"}},
    {"kernels",
     {"kernel_key TEXT", "name TEXT", "ast TEXT", "flops INTEGER", "bytes INTEGER", "shape TEXT",
      "dtypes TEXT", "key_version TEXT", "orphaned INTEGER"}},
    {"kernel_uses",
     {"kernel_key TEXT", "workload_id TEXT", "ordinal INTEGER", "count INTEGER"}},
    {"workloads",
     {"workload_id TEXT", "file TEXT", "name TEXT", "params TEXT", "weight REAL",
      "repeat INTEGER", "content_hash TEXT"}},
    {"devices",
     {"device_id TEXT", "name TEXT", "backend TEXT", "arch TEXT", "facts TEXT",
      "peak_gflops REAL", "peak_gbps REAL", "first_seen TEXT", "last_seen TEXT"}},
    {"runs",
     {"run_id INTEGER", "label TEXT", "command TEXT", "device_id TEXT", "started_at TEXT",
      "ended_at TEXT", "status TEXT", "seed INTEGER", "budget TEXT", "engine_version TEXT",
      "toolchain TEXT", "host TEXT"}},
    {"verdicts",
     {"run_id INTEGER", "baseline_run_id INTEGER", "kernel_key TEXT", "device_id TEXT",
      "verdict TEXT", "cause TEXT", "ratio REAL", "ci_low REAL", "ci_high REAL",
      "sessions INTEGER", "note TEXT"}},
    {"quarantine",
     {"code_hash TEXT", "device_id TEXT", "reason TEXT", "count INTEGER", "last_seen TEXT"}},
    {"key_alias", {"old_key TEXT", "new_key TEXT", "engine_version TEXT"}},
    {"artifacts",
     {"hash TEXT", "kind TEXT", "target TEXT", "abi_version TEXT", "toolchain TEXT",
      "bytes INTEGER"}},
};
// clang-format on

TEST(Schema, TheViewsAreTheContract) {
  Store store(":memory:");
  std::vector<std::string> names;
  for (const View& view : contract) {
    names.push_back(view.name);
    std::vector<std::string> got;
    Statement s(store.database(), std::string("PRAGMA table_info(") + view.name + ")");
    while (s.step()) got.push_back(s.text(1) + " " + s.text(2));
    EXPECT_EQ(got, view.columns) << view.name;
  }
  EXPECT_EQ(view_names(), names);
  Statement views(store.database(), "SELECT count(*) FROM sqlite_master WHERE type = 'view'");
  ASSERT_TRUE(views.step());
  EXPECT_EQ(views.integer(0), static_cast<int64_t>(names.size()));
}

// Every column is filled and comes out of the view with the storage class that the contract says.
TEST(Schema, TheValuesInTheViewsHaveTheTypesOfTheContract) {
  Store store(":memory:");
  const Database& db = store.database();
  const int64_t run = fill(store);
  store.upsert_device({"cpu", "Test CPU", "cpu", "x86-64", "{}", 100, 20});
  store.upsert_workload({"w1", "a.toml", "gemm/M=8", R"({"M": 8})", "abc", 1, 1});
  store.upsert_kernel_use("k1", "w1", 0, 3);
  TrialRow t = trial(run);
  t.ratio_to_incumbent = 1, t.compile_ms = 3, t.code_hash = "c", t.error = "none";
  store.insert_trial(t);
  BestRow b = best(run, "UPCAST:0:4", 100);
  b.heuristic_ns = b.unoptimized_ns = b.gain = b.ci_low = b.ci_high = 1;
  b.gflops = b.gbps = b.bound_share = 1;
  b.local_size = b.output_hash = b.stale_reason = b.code_hash = b.source_hash = "x";
  b.action_set = "x";
  ASSERT_EQ(store.store_best(b), std::nullopt);
  store.finish_run(run, "finished");
  store.quarantine("c", "cpu", "crashed");
  store.add_key_alias("k0", "k1", "1");
  db.execute("INSERT INTO t_verdict VALUES (1, 1, 'k1', 'cpu', 'SAME', 'c', 1, 1, 1, 20, 'n')");
  db.execute("INSERT INTO t_artifact VALUES ('h', 'source', 'x86-64', '1', 'llvm 19', 1, 'x')");
  for (const View& view : contract) {
    Statement s(db, std::string("SELECT * FROM ") + view.name);
    ASSERT_TRUE(s.step()) << view.name;
    for (int c = 0; c < s.columns(); c++) {
      const Statement::Type type = s.type(c);
      const char* name = type == Statement::Type::Integer ? " INTEGER"
                         : type == Statement::Type::Real  ? " REAL"
                         : type == Statement::Type::Text  ? " TEXT"
                                                          : " neither";
      EXPECT_EQ(s.column_name(c) + name, view.columns[static_cast<size_t>(c)]) << view.name;
    }
  }
  EXPECT_THAT(check(db), IsEmpty());
  EXPECT_THAT(text(db, "SELECT tuned_at FROM best_opts"),
              testing::MatchesRegex("2[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z"));
}

TEST(Schema, TheFileTellsWhoseItIs) {
  TempDir dir;
  Store store(dir / "a.db");
  EXPECT_EQ(number(store.database(), "PRAGMA application_id"), application_id);
  EXPECT_EQ(number(store.database(), "PRAGMA user_version"), schema_version());
}

TEST(Schema, ANewerDatabaseIsRefused) {
  TempDir dir;
  { Store(dir / "a.db").database().execute("PRAGMA user_version=99"); }
  for (const Access access : {Access::ReadOnly, Access::ReadWrite}) {
    try {
      Store store(dir / "a.db", access);
      FAIL();
    } catch (const DbError& e) {
      EXPECT_EQ(e.fault(), Fault::Newer);
      EXPECT_THAT(e.what(), HasSubstr("schema version 99"));
    }
  }
}

// Steps as a later version might add them: one of them rebuilds a table that others refer to.
struct Steps {
  std::vector<Migration> list{migrations().begin(), migrations().end()};
  Steps& add(const char* sql) {
    list.push_back({list.back().version + 1, sql});
    return *this;
  }
};
constexpr const char* rebuild_kernels = R"sql(
  DROP VIEW kernels; DROP VIEW best_opts;
  CREATE TABLE next (kernel_key TEXT PRIMARY KEY NOT NULL, name TEXT, extra TEXT);
  INSERT INTO next SELECT kernel_key, name, 'new' FROM t_kernel;
  DROP TABLE t_kernel;
  ALTER TABLE next RENAME TO t_kernel;
  CREATE VIEW kernels AS SELECT * FROM t_kernel;)sql";

TEST(Migrate, AnOlderDatabaseKeepsItsRows) {
  TempDir dir;
  {
    Store store(dir / "a.db");
    store.insert_trial(trial(fill(store)));
  }
  Steps steps;
  steps.add("ALTER TABLE t_run ADD COLUMN mood TEXT DEFAULT 'good'").add(rebuild_kernels);
  Database db(dir / "a.db", Access::ReadWrite);
  migrate(db, steps.list);
  EXPECT_EQ(number(db, "PRAGMA user_version"), schema_version() + 2);
  EXPECT_EQ(text(db, "SELECT mood FROM t_run"), "good");
  EXPECT_EQ(number(db, "SELECT count(*) FROM kernels WHERE extra = 'new'"), 2);
  EXPECT_EQ(number(db, "SELECT count(*) FROM trials JOIN t_kernel USING (kernel_key)"), 1);
  EXPECT_EQ(number(db, "PRAGMA foreign_keys"), 1);
  EXPECT_EQ(fault_of([&] { Store old_program(dir / "a.db"); }), Fault::Newer);
}

TEST(Migrate, TwiceIsOnce) {
  Database db(":memory:", Access::ReadWrite);
  Steps steps;
  steps.add("CREATE TABLE t_once (a); INSERT INTO t_once VALUES (1)");
  migrate(db, steps.list);
  migrate(db, steps.list);
  EXPECT_EQ(number(db, "SELECT count(*) FROM t_once"), 1);
}

TEST(Migrate, AFailingStepLeavesTheVersionBeforeIt) {
  Database db(":memory:", Access::ReadWrite);
  Steps steps;
  steps.add("CREATE TABLE t_good (a)").add("CREATE TABLE t_bad (a); SELECT a FROM nowhere");
  EXPECT_THROW(migrate(db, steps.list), DbError);
  EXPECT_EQ(number(db, "PRAGMA user_version"), schema_version() + 1);
  EXPECT_EQ(number(db, "SELECT count(*) FROM sqlite_master WHERE name = 't_bad'"), 0);
  EXPECT_EQ(number(db, "SELECT count(*) FROM sqlite_master WHERE name = 't_good'"), 1);
  EXPECT_EQ(number(db, "PRAGMA foreign_keys"), 1);
}

TEST(Migrate, AStepThatLosesReferencedRowsIsRefused) {
  TempDir dir;
  {
    Store store(dir / "a.db");
    store.insert_trial(trial(fill(store)));
  }
  Steps steps;
  steps.add("DELETE FROM t_kernel");
  Database db(dir / "a.db", Access::ReadWrite);
  EXPECT_EQ(fault_of([&] { migrate(db, steps.list); }), Fault::Constraint);
  EXPECT_EQ(number(db, "SELECT count(*) FROM kernels"), 2);
}

TEST(Migrate, AReaderOfAnOlderDatabaseIsToldSo) {
  TempDir dir;
  { Store(dir / "a.db").database().execute("PRAGMA user_version=0"); }
  EXPECT_EQ(fault_of([&] { Store(dir / "a.db", Access::ReadOnly); }), Fault::Older);
}

}  // namespace
}  // namespace beamline::db
