#include "db/query.h"

#include <gmock/gmock.h>

#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

struct Query : testing::Test {
  Store store{":memory:"};
  int64_t run = fill(store);
  const Database& db = store.database();
  std::string refusal(std::string_view sql) {
    const auto got = query(db, sql);
    return std::holds_alternative<std::string>(got) ? std::get<std::string>(got) : "accepted";
  }
};

TEST_F(Query, GivesColumnsAndTypedRows) {
  const auto got = query(db, "SELECT 1 AS a, 2.5 AS b, 'x' AS c, NULL AS d, x'00ff' AS e;  -- end");
  ASSERT_TRUE(std::holds_alternative<Table>(got)) << std::get<std::string>(got);
  const Table& t = std::get<Table>(got);
  EXPECT_THAT(t.columns, ElementsAre("a", "b", "c", "d", "e"));
  ASSERT_EQ(t.rows.size(), 1u);
  EXPECT_EQ(t.rows[0], (std::vector<Cell>{int64_t{1}, 2.5, std::string("x"), std::monostate(),
                                          Blob{std::string("\0\xff", 2)}}));
}

TEST_F(Query, RunsWhatOnlyReads) {
  for (const char* sql :
       {"SELECT * FROM best_opts", "VALUES (1), (2)", "PRAGMA table_info(trials)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) "
        "SELECT sum(i) FROM n",
        "EXPLAIN QUERY PLAN SELECT * FROM trials", "PRAGMA user_version",
        "SELECT json_extract(facts, '$.pus') FROM devices", ";SELECT 1;;", "/* a */ SELECT 1 /* b"})
    EXPECT_TRUE(std::holds_alternative<Table>(query(db, sql))) << sql << ": " << refusal(sql);
}

TEST_F(Query, RefusesWhatWritesAndChangesNothing) {
  TempDir dir;
  const std::string attach = "ATTACH '" + (dir / "new.db") + "' AS x";
  const std::string into = "VACUUM INTO '" + (dir / "new.db") + "'";
  for (const std::string& sql :
       {std::string("DELETE FROM t_kernel"), std::string("INSERT INTO t_key_alias VALUES (1,2,3)"),
        std::string("DELETE FROM kernels RETURNING *"), std::string("CREATE TEMP TABLE t (a)"),
        std::string("WITH a AS (SELECT 1) UPDATE t_run SET label = 'x'"), std::string("BEGIN"),
        std::string("BEGIN IMMEDIATE"), std::string("SAVEPOINT s"), std::string("REINDEX"),
        std::string("PRAGMA user_version=7"), std::string("PRAGMA journal_mode=OFF"),
        std::string("PRAGMA query_only=OFF"), std::string("PRAGMA writable_schema=ON"),
        std::string("PRAGMA wal_checkpoint"), std::string("PRAGMA foreign_keys=OFF"),
        std::string("SELECT load_extension('x')"), attach, into})
    EXPECT_THAT(refusal(sql), HasSubstr("a query only reads")) << sql;
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_FALSE(db.in_transaction());
  EXPECT_EQ(number(db, "SELECT count(*) FROM kernels"), 2);
  EXPECT_EQ(number(db, "PRAGMA foreign_keys"), 1);
  store.upsert_kernel(kernel("k3"));  // the connection can write again
}

TEST_F(Query, TakesOneStatement) {
  EXPECT_EQ(refusal(""), "expected one SQL statement");
  EXPECT_EQ(refusal(" -- nothing"), "expected one SQL statement");
  EXPECT_EQ(refusal("SELECT 1; SELECT 2"), "expected one SQL statement, found more");
  EXPECT_EQ(refusal("SELECT 1; DELETE FROM t_kernel"), "expected one SQL statement, found more");
  EXPECT_EQ(refusal("SELECT 1; nonsense"), "expected one SQL statement, found more");
  EXPECT_EQ(refusal(std::string_view("SELECT 1\0; x", 12)), "the statement contains a zero byte");
  EXPECT_EQ(refusal("SELECT ?"), "the statement has a parameter without a value");
}

TEST_F(Query, TellsWhereAStatementIsWrong) {
  EXPECT_EQ(refusal("SELECT a FROM"), "incomplete input");
  EXPECT_EQ(refusal("SELECT foo FROM runs"), "no such column: foo (at character 8)");
  EXPECT_EQ(refusal("SELECT abs(-9223372036854775807 - 1)"), "integer overflow");
}

TEST_F(Query, WorksOnAReader) {
  TempDir dir;
  {
    Store s(dir / "a.db");
    fill(s);
  }
  const Store reader(dir / "a.db", Access::ReadOnly);
  const auto got = query(reader.database(), "SELECT count(*) FROM kernels");
  EXPECT_EQ(std::get<Table>(got).rows[0][0], Cell(int64_t{2}));
}

TEST_F(Query, InfoCountsTheRowsOfEveryView) {
  TempDir dir;
  Store s(dir / "a.db");
  s.insert_trial(trial(fill(s)));
  const Info i = info(s.database());
  EXPECT_EQ(i.path, dir / "a.db");
  EXPECT_EQ(i.schema_version, schema_version());
  EXPECT_GE(i.bytes, static_cast<int64_t>(std::filesystem::file_size(dir / "a.db")));
  std::vector<std::string> names;
  for (const auto& [view, rows] : i.rows) {
    names.push_back(view);
    const bool filled = view == "devices" || view == "runs" || view == "trials";
    const bool twice = view == "kernels" || view == "trial_samples";
    EXPECT_EQ(rows, twice ? 2 : filled ? 1 : 0) << view;
  }
  EXPECT_EQ(names, view_names());
}

// Each line breaks one thing, by force, and is found as exactly that.
struct Break {
  const char* sql;
  const char* check;
  const char* where;
  const char* message;
};
const Break breaks[] = {
    {"DELETE FROM t_kernel WHERE kernel_key = 'k2'", "foreign key", "file",
     "t_trial row 1 refers to a missing row of t_kernel"},
    {"DELETE FROM t_kernel WHERE kernel_key = 'k1'", "best", "best_opts",
     "k1 on cpu: its kernel is missing"},
    {"UPDATE t_best SET verified = 0", "best", "best_opts",
     "k1 on cpu: its result was not verified"},
    {"UPDATE t_best SET sessions = 0", "best", "best_opts",
     "k1 on cpu: no session stands behind its time"},
    {"UPDATE t_best SET best_ns = -1", "best", "best_opts", "k1 on cpu: its time is no time"},
    {"UPDATE t_best SET kernel_key = 'k2'", "best", "trials",
     "k2 on cpu: no trial of run 1 was ok"},
    {"UPDATE t_best SET tie_opts = '['", "row", "best_opts",
     "kernel_key='k1' device_id='cpu' mode='warm': tie_opts is no JSON"},
    {"UPDATE t_best SET gflops = 9e999", "row", "best_opts",
     "kernel_key='k1' device_id='cpu' mode='warm': gflops is infinite"},
    {"UPDATE t_kernel SET flops = 'many' WHERE kernel_key = 'k1'", "row", "kernels",
     "kernel_key='k1': flops holds text"},
    {"UPDATE t_device SET facts = x'00'", "row", "devices", "device_id='cpu': facts holds blob"},
    {"DROP VIEW verdicts", "view", "verdicts", "it is missing"},
    {"DROP TABLE t_artifact", "view", "artifacts", "no such table: main.t_artifact"},
};

TEST(Check, FindsEachThingThatIsBroken) {
  for (const Break& b : breaks) {
    Store store(":memory:");
    const int64_t run = fill(store);
    TrialRow failed = trial(run, "k2");
    failed.status = "crashed";
    store.insert_trial(failed);
    ASSERT_EQ(store.store_best(best(run, "A", 100)), std::nullopt);
    ASSERT_THAT(check(store.database()), IsEmpty());
    store.database().execute("PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON");
    store.database().execute(b.sql);
    store.database().execute("PRAGMA ignore_check_constraints=OFF");
    EXPECT_THAT(check(store.database()),
                Contains(AllOf(Field(&Finding::check, b.check), Field(&Finding::where, b.where),
                               Field(&Finding::message, b.message))))
        << b.sql;
  }
}

TEST(Check, TellsAtMostTwentyOfAKind) {
  Store store(":memory:");
  const int64_t run = fill(store);
  for (int i = 0; i < 30; i++) store.insert_trial(trial(run));
  store.database().execute("UPDATE t_trial SET error = x'00'");
  const auto findings = check(store.database());
  ASSERT_EQ(findings.size(), 21u);
  EXPECT_EQ(findings.back().message, "and 10 more");
}

}  // namespace
}  // namespace beamline::db
