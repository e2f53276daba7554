// Where the file lies, what may be done there, and files that are not ours.
#include <gmock/gmock.h>

#include "db/query.h"
#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

// root may write everywhere: the child gives that up.
void become_nobody() {
  if (geteuid() == 0 && setuid(65534) != 0) _exit(98);
}
// The fault as an exit status of a child.
template <class F>
int status_of(F f) {
  try {
    f();
  } catch (const DbError& e) {
    return 10 + static_cast<int>(e.fault());
  }
  return 0;
}
int failed_with(Fault f) { return 10 + static_cast<int>(f); }

std::string filled(const std::string& path) {
  Store store(path);
  store.finish_run(fill(store), "finished");
  return path;
}

TEST(Places, AWriterCreatesMissingDirectoriesAReaderDoesNot) {
  TempDir dir;
  EXPECT_EQ(fault_of([&] { Store(dir / "x/y/a.db", Access::ReadOnly); }), Fault::Missing);
  EXPECT_FALSE(fs::exists(dir / "x"));
  Store store(dir / "x/y/a.db");
  EXPECT_EQ(fill(store), 1);
}

TEST(Places, TheDefaultPathFollowsTheEnvironment) {
  EXPECT_EQ(wait_for(start([] {
              setenv("HOME", "/home/u", 1);
              unsetenv("BEAMLINE_DB"), unsetenv("XDG_DATA_HOME");
              if (default_path() != "/home/u/.local/share/beamline/beamline.db") return 1;
              setenv("XDG_DATA_HOME", "/data", 1);
              if (default_path() != "/data/beamline/beamline.db") return 2;
              setenv("BEAMLINE_DB", "other.db", 1);
              return default_path() == "other.db" ? 0 : 3;
            })),
            0);
}

TEST(Places, NamesThatSqliteWouldReadAsUriArePlain) {
  TempDir dir;
  const fs::path before = fs::current_path();
  EXPECT_EQ(wait_for(start([&] {
              fs::current_path(dir.path());
              filled("file:a?mode=memory.db");
              return fs::exists(dir / "file:a?mode=memory.db") ? 0 : 1;
            })),
            0);
}

TEST(Places, ADirectoryIsNoDatabase) {
  TempDir dir;
  EXPECT_THROW(Store(dir.path()), DbError);
  EXPECT_THROW(Store(""), DbError);
}

TEST(Places, AReadOnlyFileIsReadAndNotWritten) {
  TempDir dir;
  const std::string path = filled(dir / "a.db");
  fs::permissions(path, fs::perms(0444));
  fs::permissions(dir.path(), fs::perms(0555));
  EXPECT_EQ(wait_for(start([&] {
              become_nobody();
              const Store store(path, Access::ReadOnly);
              if (number(store.database(), "SELECT count(*) FROM kernels") != 2) return 1;
              if (!check(store.database()).empty()) return 2;
              return status_of([&] { Store writer(path); });
            })),
            failed_with(Fault::ReadOnly));
}

TEST(Places, AReadOnlyDirectoryIsToldApart) {
  TempDir dir;
  const std::string path = filled(dir / "a.db");
  fs::permissions(path, fs::perms(0666));
  fs::permissions(dir.path(), fs::perms(0555));
  const auto as_nobody = [&](const std::string& file) {
    return wait_for(start([&] {
      become_nobody();
      return status_of([&] { Store writer(file); });
    }));
  };
  EXPECT_EQ(as_nobody(path), failed_with(Fault::ReadOnly));
  EXPECT_EQ(as_nobody(dir / "new.db"), failed_with(Fault::ReadOnly));
  EXPECT_EQ(as_nobody(dir / "sub/new.db"), failed_with(Fault::ReadOnly));
}

// What is only in the log must not be silently left out.
TEST(Places, ALogThatCannotBeReadIsToldSo) {
  TempDir dir;
  const std::string path = dir / "a.db";
  ASSERT_EQ(wait_for(start([&]() -> int {
              Store store(path);
              fill(store);
              _exit(7);  // as if killed: the log stays
            })),
            7);
  if (fs::file_size(path + "-wal") == 0) GTEST_SKIP() << "no write-ahead log in this place";
  fs::remove(path + "-shm");
  fs::permissions(path, fs::perms(0444));
  fs::permissions(dir.path(), fs::perms(0555));
  EXPECT_EQ(wait_for(start([&] {
              become_nobody();
              return status_of([&] { Store reader(path, Access::ReadOnly); });
            })),
            failed_with(Fault::ReadOnly));
}

// SQLite's dot-file layer shares no memory between processes, as some file systems do not.
TEST(Places, WithoutSharedMemoryTheJournalIsAnotherOne) {
  TempDir dir;
  const OpenOptions no_memory = {.busy_ms = 2000, .vfs = "unix-dotfile"};
  {
    Store store(dir / "a.db", Access::ReadWrite, no_memory);
    EXPECT_EQ(store.trials_of(fill(store)).size(), 0u);
    const Info i = info(store.database());
    EXPECT_EQ(i.journal_mode, "delete");
    EXPECT_THAT(i.notes, testing::ElementsAre(HasSubstr("rollback journal")));
  }
  filled(dir / "b.db");  // made elsewhere, with a log
  for (const char* name : {"a.db", "b.db"}) {
    Store store(dir / name, Access::ReadWrite, no_memory);
    EXPECT_EQ(info(store.database()).journal_mode, "delete");
    EXPECT_EQ(number(store.database(), "SELECT count(*) FROM kernels"), 2);
    Store second(dir / name, Access::ReadWrite, no_memory);  // the first keeps no lock
    second.quarantine("h", "cpu", "crashed");
    EXPECT_THAT(check(second.database()), IsEmpty());
  }
}

TEST(Places, TheJournalCanBeChosen) {
  TempDir dir;
  Store store(dir / "a.db", Access::ReadWrite, {.wal = false});
  EXPECT_EQ(info(store.database()).journal_mode, "delete");
  EXPECT_EQ(number(store.database(), "PRAGMA synchronous"), 2);
  EXPECT_THAT(store.database().notes(), IsEmpty());
}

TEST(Foreign, WhatIsNoDatabaseIsRefusedAndLeftAlone) {
  TempDir dir;
  const std::string text(5000, 'x');
  for (const std::string& bytes : {std::string("hello\n"), text, std::string(4096, '\0') + text}) {
    write_bytes(dir / "a.db", bytes);
    for (const Access access : {Access::ReadOnly, Access::ReadWrite})
      EXPECT_EQ(fault_of([&] { Store(dir / "a.db", access); }), Fault::NotADatabase);
    EXPECT_EQ(bytes_of(dir / "a.db"), bytes);
  }
}

TEST(Foreign, AnotherApplicationsDatabaseIsRefusedAndLeftAlone) {
  TempDir dir;
  const char* contents[] = {"CREATE TABLE t (a)", "PRAGMA application_id=77",
                            "PRAGMA user_version=5",
                            "PRAGMA user_version=1; CREATE TABLE t_best (a)"};
  for (const char* sql : contents) {
    const std::string path = dir / "other.db";
    fs::remove(path);
    Database(path, Access::ReadWrite).execute(sql);
    const std::string before = bytes_of(path);
    for (const Access access : {Access::ReadOnly, Access::ReadWrite})
      EXPECT_EQ(fault_of([&] { Store(path, access); }), Fault::OtherApplication) << sql;
    EXPECT_EQ(bytes_of(path), before) << sql;
  }
}

TEST(Foreign, AnEmptyFileIsANewDatabaseForAWriterOnly) {
  TempDir dir;
  write_bytes(dir / "a.db", "");
  EXPECT_EQ(fault_of([&] { Store(dir / "a.db", Access::ReadOnly); }), Fault::Older);
  Store store(dir / "a.db");
  EXPECT_EQ(fill(store), 1);
}

TEST(Damaged, ATruncatedFileIsNeverTakenForASoundOne) {
  TempDir dir;
  const std::string path = filled(dir / "a.db");
  const std::string whole = bytes_of(path);
  ASSERT_GT(whole.size(), 20u * 4096);
  for (const size_t size : {size_t{50}, size_t{100}, size_t{1000}, size_t{4096}, size_t{5000},
                            size_t{40960}, whole.size() - 5000, whole.size() - 4096}) {
    write_bytes(path, whole.substr(0, size));
    bool told = false;
    try {
      const Store store(path, Access::ReadOnly);
      told = !check(store.database()).empty();
    } catch (const DbError& e) {
      told = e.fault() == Fault::Damaged || e.fault() == Fault::NotADatabase;
    }
    EXPECT_TRUE(told) << size << " bytes";
  }
}

// One page of trials is overwritten: that is told, and everything else is served.
TEST(Damaged, APageOfGarbageCostsOnlyWhatItHeld) {
  TempDir dir;
  const std::string path = dir / "a.db";
  int64_t page = 0, run = 0;
  {
    Store store(path);
    run = fill(store);
    for (int i = 0; i < 300; i++) store.insert_trial(trial(run));
    ASSERT_EQ(store.store_best(best(run, "UPCAST:0:4", 100)), std::nullopt);
    store.finish_run(run, "finished");
    page = number(store.database(),
                  "SELECT max(pageno) FROM dbstat WHERE name = 't_trial' AND pagetype = 'leaf'");
    if (page < 2) GTEST_SKIP() << "this SQLite has no dbstat";
  }
  std::string bytes = bytes_of(path);
  bytes.replace(static_cast<size_t>(page - 1) * 4096, 4096, std::string(4096, '\xff'));
  write_bytes(path, bytes);
  const Store store(path, Access::ReadOnly);
  const std::vector<Finding> findings = check(store.database());
  EXPECT_THAT(findings, testing::Contains(testing::Field(&Finding::check, "integrity")));
  EXPECT_THAT(findings, testing::Contains(testing::Field(&Finding::where, "trials")));
  EXPECT_THAT(findings,
              testing::Not(testing::Contains(testing::Field(&Finding::where, "trial_samples"))));
  EXPECT_EQ(store.lookup_best("k1", "cpu")->opts, "UPCAST:0:4");
  EXPECT_EQ(store.all_best().size(), 1u);
  EXPECT_EQ(info(store.database()).rows[0], (std::pair<std::string, int64_t>("best_opts", 1)));
}

}  // namespace
}  // namespace beamline::db
