// Several processes on one file, and processes that are killed.
#include <gmock/gmock.h>
#include <signal.h>

#include <random>

#include "db/query.h"
#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::IsEmpty;

TEST(Processes, ThreeWritersOfANewFileLoseNothing) {
  constexpr int writers = 3;
  for (const bool wal : {true, false}) {
    const int trials = wal ? 60 : 12;  // a rollback journal waits for the disk
    TempDir dir;
    std::vector<pid_t> pids;
    for (int w = 0; w < writers; w++) {
      pids.push_back(start([&] {  // they create, migrate and fill it at the same moment
        Store store(dir / "a.db", Access::ReadWrite, {.wal = wal});
        const int64_t run = fill(store);
        for (int i = 0; i < trials; i++) {
          store.insert_trial(trial(run));
          store.quarantine("c0de", "cpu", "crashed");
          store.store_best(best(run, "W" + std::to_string(w), 100 + (w + i) % 7));
        }
        store.finish_run(run, "finished");
        return 0;
      }));
    }
    for (const pid_t pid : pids) EXPECT_EQ(wait_for(pid), 0);
    Store store(dir / "a.db");
    const Database& db = store.database();
    EXPECT_EQ(number(db, "SELECT count(*) FROM trials"), writers * trials);
    EXPECT_EQ(number(db, "SELECT count(*) FROM trial_samples"), 2 * writers * trials);
    EXPECT_EQ(number(db, "SELECT count FROM quarantine"), writers * trials);
    EXPECT_EQ(number(db, "SELECT count(*) FROM runs WHERE status = 'finished'"), writers);
    EXPECT_EQ(number(db, "SELECT count(*) FROM best_opts"), 1);
    EXPECT_THAT(check(db), IsEmpty());
  }
}

TEST(Processes, ARaceForOneKeyEndsWithTheBetterRow) {
  for (int round = 0; round < 10; round++) {
    TempDir dir;
    int64_t runs[2];
    {
      Store store(dir / "a.db");
      runs[0] = fill(store);
      runs[1] = store.begin_run({.command = "tune", .device_id = "cpu"});
    }
    std::vector<pid_t> pids;
    for (const int w : {0, 1}) {
      pids.push_back(start([&] {
        Store store(dir / "a.db");
        store.store_best(best(runs[w], w == 0 ? "A" : "B", w == 0 ? 100 : 90));
        return 0;
      }));
    }
    for (const pid_t pid : pids) ASSERT_EQ(wait_for(pid), 0);
    EXPECT_EQ(Store(dir / "a.db").lookup_best("k1", "cpu")->opts, "B");
  }
}

// Whatever the writer reported as done is in the file; nothing is there by half.
TEST(Processes, AWriterKilledAtAnyMomentLosesNothing) {
  std::mt19937 random(20260131);
  for (const bool wal : {true, false}) {
    TempDir dir;
    const std::string path = dir / "a.db";
    int64_t done_before = 0;
    for (int round = 0; round < (wal ? 20 : 8); round++) {
      int report[2];
      ASSERT_EQ(pipe(report), 0);
      const pid_t pid = start([&] {
        close(report[0]);
        Store store(path, Access::ReadWrite, {.wal = wal});
        const int64_t run = fill(store);
        for (int64_t i = 0;; i++) {
          int64_t id = store.insert_trial(trial(run));
          store.store_best(best(run, "A" + std::to_string(i), 100, 20), run);
          store.quarantine("c0de", "cpu", "crashed");
          if (write(report[1], &id, sizeof id) != sizeof id) return 1;
        }
      });
      close(report[1]);
      // Some rounds die while the database is opened, some in the middle of the work.
      int64_t last = 0, id = 0;
      const int reports = round % 4 == 0 ? 0 : static_cast<int>(random() % 12);
      for (int i = 0; i < reports && read(report[0], &id, sizeof id) == sizeof id; i++) last = id;
      usleep(static_cast<useconds_t>(random() % 4000));
      ASSERT_EQ(kill(pid, SIGKILL), 0);
      while (read(report[0], &id, sizeof id) == sizeof id) last = id;
      close(report[0]);
      ASSERT_EQ(wait_for(pid), 128 + SIGKILL);

      Store store(path);
      const Database& db = store.database();
      for (const Finding& f : check(db)) ADD_FAILURE() << f.check << " " << f.where << f.message;
      const int64_t done = number(db, "SELECT coalesce(max(trial_id), 0) FROM trials");
      EXPECT_GE(done, std::max(last, done_before));
      EXPECT_EQ(number(db, "SELECT count(*) FROM trials"), done);
      EXPECT_EQ(number(db, "SELECT count(*) FROM trial_samples"), 2 * done);
      EXPECT_EQ(number(db, "SELECT coalesce(sum(n_samples), 0) FROM trials"), 2 * done);
      const int64_t running = number(db, "SELECT count(*) FROM runs WHERE status = 'running'");
      EXPECT_LE(running, 1);
      EXPECT_EQ(store.mark_dead_runs(), running);
      done_before = done;
    }
    EXPECT_GT(done_before, 8) << "the writers were killed before they wrote";
  }
}

TEST(Processes, ARunIsHeldByALivingProcessOnly) {
  TempDir dir;
  int begun[2];
  ASSERT_EQ(pipe(begun), 0);
  const pid_t pid = start([&] {
    Store store(dir / "a.db");
    fill(store);
    if (write(begun[1], "x", 1) != 1) return 1;
    for (;;) pause();
  });
  char x = 0;
  ASSERT_EQ(read(begun[0], &x, 1), 1);
  close(begun[0]), close(begun[1]);
  {
    Store store(dir / "a.db");
    EXPECT_EQ(store.mark_dead_runs(), 0);
    EXPECT_NE(store.resume_run(1), std::nullopt);
  }
  kill(pid, SIGKILL);
  // Not yet waited for: a zombie holds nothing.
  siginfo_t gone{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &gone, WEXITED | WNOWAIT), 0);
  {
    Store store(dir / "a.db");
    EXPECT_EQ(store.mark_dead_runs(), 1);
    EXPECT_EQ(text(store.database(), "SELECT status FROM runs"), "interrupted");
    EXPECT_EQ(store.resume_run(1), std::nullopt);
  }
  EXPECT_EQ(wait_for(pid), 128 + SIGKILL);
}

TEST(Processes, AReaderReadsWhileAWriterWrites) {
  TempDir dir;
  Store writer(dir / "a.db");
  const int64_t run = fill(writer);
  if (info(writer.database()).journal_mode != "wal") GTEST_SKIP() << "no write-ahead log here";
  Transaction t(writer.database());
  writer.insert_trial(trial(run));
  EXPECT_EQ(wait_for(start([&] {
              const Store reader(dir / "a.db", Access::ReadOnly, {.busy_ms = 1});
              return static_cast<int>(reader.trials_of(run).size());
            })),
            0);
  t.commit();
}

}  // namespace
}  // namespace beamline::db
