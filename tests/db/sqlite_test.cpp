#include "db/sqlite.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::HasSubstr;

TEST(Sqlite, ValuesOfEachTypeComeBack) {
  Database db(":memory:", Access::ReadWrite);
  db.execute("CREATE TABLE t (a, b, c, d, e)");
  Statement in(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?)");
  in.bind(1, int64_t{1} << 62).bind(2, 0.1).bind(3, std::string("a\0b", 3)).bind_null(4);
  in.bind(5, std::optional<double>()).run();
  Statement out(db, "SELECT * FROM t");
  ASSERT_TRUE(out.step());
  EXPECT_EQ(out.integer(0), int64_t{1} << 62);
  EXPECT_EQ(out.real(1), 0.1);
  EXPECT_EQ(out.text(2), std::string("a\0b", 3));
  EXPECT_TRUE(out.is_null(3));
  EXPECT_EQ(out.optional_real(4), std::nullopt);
  EXPECT_EQ(out.optional_integer(0), int64_t{1} << 62);
  EXPECT_EQ(out.optional_text(3), std::nullopt);
  EXPECT_EQ(out.column_name(1), "b");
  EXPECT_EQ(out.columns(), 5);
  EXPECT_FALSE(out.step());
}

TEST(Sqlite, NumbersThatAreNoneBecomeNull) {
  Database db(":memory:", Access::ReadWrite);
  for (const double v :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Statement s(db, "SELECT ?");
    s.bind(1, v);
    ASSERT_TRUE(s.step());
    EXPECT_TRUE(s.is_null(0));
  }
}

TEST(Sqlite, AnEmptyTextIsNotNull) {
  Database db(":memory:", Access::ReadWrite);
  Statement s(db, "SELECT ?");
  s.bind(1, std::string_view());
  ASSERT_TRUE(s.step());
  EXPECT_EQ(s.type(0), Statement::Type::Text);
}

TEST(Sqlite, ARunStatementForgetsItsValues) {
  Database db(":memory:", Access::ReadWrite);
  db.execute("CREATE TABLE t (a)");
  Statement in(db, "INSERT INTO t VALUES (?)");
  in.bind(1, 1).run();
  in.run();
  EXPECT_EQ(number(db, "SELECT count(*) FROM t WHERE a IS NULL"), 1);
}

TEST(Sqlite, AnErrorNamesFileStatementAndCause) {
  Database db(":memory:", Access::ReadWrite);
  try {
    Statement s(db, "SELECT a FROM nowhere");
    FAIL();
  } catch (const DbError& e) {
    EXPECT_EQ(e.file(), ":memory:");
    EXPECT_EQ(e.statement(), "SELECT a FROM nowhere");
    EXPECT_THAT(e.message(), HasSubstr("no such table: nowhere"));
    EXPECT_STREQ(e.what(), "database :memory:: no such table: nowhere (SELECT a FROM nowhere)");
  }
}

TEST(Sqlite, ABrokenConstraintHasItsFault) {
  Database db(":memory:", Access::ReadWrite);
  db.execute("CREATE TABLE t (a CHECK (a > 0))");
  Statement s(db, "INSERT INTO t VALUES (0)");
  EXPECT_EQ(fault_of([&] { s.run(); }), Fault::Constraint);
}

TEST(Sqlite, ATransactionLastsOnlyIfCommitted) {
  Database db(":memory:", Access::ReadWrite);
  db.execute("CREATE TABLE t (a)");
  {
    Transaction t(db);
    db.execute("INSERT INTO t VALUES (1)");
  }
  EXPECT_EQ(number(db, "SELECT count(*) FROM t"), 0);
  Transaction outer(db);
  db.execute("INSERT INTO t VALUES (2)");
  {
    Transaction inner(db);
    db.execute("INSERT INTO t VALUES (3)");
  }
  {
    Transaction inner(db);
    db.execute("INSERT INTO t VALUES (4)");
    inner.commit();
  }
  outer.commit();
  EXPECT_EQ(number(db, "SELECT sum(a) FROM t"), 2 + 4);
  EXPECT_FALSE(db.in_transaction());
}

TEST(Sqlite, AWriterThatWaitsInVainIsToldSo) {
  TempDir dir;
  Store first(dir / "a.db");
  Store second(dir / "a.db", Access::ReadWrite, {.busy_ms = 1});
  Transaction t(first.database());
  EXPECT_EQ(fault_of([&] { second.quarantine("h", "cpu", "crashed"); }), Fault::Busy);
}

}  // namespace
}  // namespace beamline::db
