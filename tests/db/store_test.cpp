#include "db/store.h"

#include <gmock/gmock.h>

#include "db/query.h"
#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Store, ADeviceIsUpdatedAndKeepsItsPeaks) {
  Store store(":memory:");
  const Database& db = store.database();
  store.upsert_device({"cpu", "CPU", "cpu", "zen4", "{}", 100.0, 20.0});
  db.execute("UPDATE t_device SET first_seen = '2020-01-01T00:00:00Z', last_seen = first_seen");
  store.upsert_device({"cpu", "CPU 2", "cpu", "zen4", "{}", {}, {}});
  EXPECT_EQ(text(db, "SELECT name || peak_gflops || first_seen FROM devices"),
            "CPU 2100.02020-01-01T00:00:00Z");
  EXPECT_GT(text(db, "SELECT last_seen FROM devices"), "2020-01-01T00:00:00Z");
}

TEST(Store, WorkloadsKernelsAndUsesAreUpserted) {
  Store store(":memory:");
  const Database& db = store.database();
  for (const int64_t n : {1, 2}) {
    store.upsert_workload({"w", "f.toml", "gemm/M=8", R"({"M": 8})", "hash", 0.5, n});
    KernelRow k = kernel("k");
    k.flops = int64_t{1} << 60, k.name = n == 1 ? "old" : "new";
    store.upsert_kernel(k);
    store.upsert_kernel_use("k", "w", 0, n);
    db.execute("UPDATE t_kernel SET orphaned = 1");
  }
  store.upsert_kernel(kernel("k"));
  EXPECT_EQ(text(db, "SELECT name || ' ' || orphaned FROM kernels"), "r_8_4 0");
  EXPECT_EQ(number(db, "SELECT repeat FROM workloads"), 2);
  EXPECT_EQ(number(db, "SELECT count FROM kernel_uses"), 2);
}

TEST(Store, RowsThatReferToNothingAreRefused) {
  TempDir dir;
  const int64_t run = [&] {
    Store creator(dir / "a.db");
    return fill(creator);
  }();
  Store store(dir / "a.db");
  EXPECT_EQ(fault_of([&] { store.insert_trial(trial(run, "no kernel")); }), Fault::Constraint);
  EXPECT_EQ(fault_of([&] { store.insert_trial(trial(run + 1)); }), Fault::Constraint);
  EXPECT_EQ(fault_of([&] { store.upsert_kernel_use("k1", "no workload", 0, 1); }),
            Fault::Constraint);
  EXPECT_EQ(fault_of([&] { store.finish_run(run + 1, "finished"); }), Fault::Missing);
}

TEST(Trials, ComeBackWithEveryField) {
  Store store(":memory:");
  const int64_t run = fill(store);
  TrialRow t = trial(run, "k2");
  t.mode = "cold", t.opts = "", t.stage = "confirm", t.code_hash = "c0de", t.error = "why";
  t.ratio_to_incumbent = 0.9, t.compile_ms = 12.5;
  const int64_t id = store.insert_trial(t);
  TrialRow failed = trial(run);
  failed.status = "timeout", failed.time_ns = std::nullopt, failed.samples = {};
  store.insert_trial(failed);

  const std::vector<TrialRow> got = store.trials_of(run);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].trial_id, id);
  EXPECT_EQ(got[0].run_id, run);
  EXPECT_EQ(got[0].kernel_key, "k2");
  EXPECT_EQ(got[0].device_id, "cpu");
  EXPECT_EQ(got[0].mode, "cold");
  EXPECT_EQ(got[0].opts, "");
  EXPECT_EQ(got[0].status, "ok");
  EXPECT_EQ(got[0].stage, "confirm");
  EXPECT_EQ(got[0].time_ns, 120.5);
  EXPECT_EQ(got[0].ratio_to_incumbent, 0.9);
  EXPECT_EQ(got[0].n_samples, 2);
  EXPECT_EQ(got[0].compile_ms, 12.5);
  EXPECT_EQ(got[0].code_hash, "c0de");
  EXPECT_EQ(got[0].error, "why");
  EXPECT_FALSE(got[0].created_at.empty());
  EXPECT_EQ(got[1].status, "timeout");
  EXPECT_EQ(got[1].time_ns, std::nullopt);
  EXPECT_EQ(got[1].code_hash, "");
  EXPECT_THAT(store.trials_of(run + 1), IsEmpty());

  const std::vector<Sample> samples = store.samples_of(id);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].sweep, 1);
  EXPECT_EQ(samples[1].ns, 121);
}

TEST(Trials, ATimeThatIsNoneIsRefusedWhole) {
  Store store(":memory:");
  const int64_t run = fill(store);
  TrialRow t = trial(run);
  for (const double ns : {0.0, -1.0}) {
    t.time_ns = ns;
    EXPECT_EQ(fault_of([&] { store.insert_trial(t); }), Fault::Constraint);
  }
  t = trial(run);
  t.samples[1].ns = 0;
  EXPECT_EQ(fault_of([&] { store.insert_trial(t); }), Fault::Constraint);
  t = trial(run);
  t.status = "great";
  EXPECT_EQ(fault_of([&] { store.insert_trial(t); }), Fault::Constraint);
  EXPECT_THAT(store.trials_of(run), IsEmpty());
  EXPECT_EQ(number(store.database(), "SELECT count(*) FROM trial_samples"), 0);
}

TEST(Trials, AnUnreadableOneIsSkippedAndTold) {
  Store store(":memory:");
  const int64_t run = fill(store);
  const int64_t bad = store.insert_trial(trial(run));
  const int64_t good = store.insert_trial(trial(run));
  Statement s(store.database(), "UPDATE t_trial SET time_ns = 'fast' WHERE trial_id = ?");
  s.bind(1, bad).run();
  std::vector<std::string> skipped;
  const auto got = store.trials_of(run, &skipped);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].trial_id, good);
  EXPECT_THAT(skipped, ElementsAre("trial 1: time_ns is unreadable"));
  EXPECT_THAT(check(store.database()),
              ElementsAre(testing::Field(&Finding::message,
                                         "trial_id=1 device_id='cpu' "
                                         "mode='warm': time_ns holds text")));
}

TEST(Runs, HaveASmallNumberAndAStatus) {
  Store store(":memory:");
  const Database& db = store.database();
  EXPECT_EQ(fill(store), 1);
  EXPECT_EQ(store.begin_run({.command = "bench", .device_id = "cpu"}), 2);
  EXPECT_EQ(text(db, "SELECT group_concat(status) FROM runs"), "running,running");
  store.finish_run(1, "interrupted");
  EXPECT_EQ(text(db, "SELECT status FROM runs WHERE ended_at IS NOT NULL"), "interrupted");
  EXPECT_EQ(text(db,
                 "SELECT label || command || seed || budget || engine_version || toolchain "
                 "FROM runs WHERE run_id = 1"),
            "nighttune760s1llvm 19");
  EXPECT_EQ(fault_of([&] { store.finish_run(2, "excellent"); }), Fault::Constraint);
}

TEST(Runs, AHeldRunIsNotDeadAndCannotBeResumed) {
  TempDir dir;
  Store holder(dir / "a.db");
  const int64_t run = fill(holder);
  Store other(dir / "a.db");
  EXPECT_EQ(holder.mark_dead_runs(), 0);
  EXPECT_EQ(other.mark_dead_runs(), 0);
  EXPECT_THAT(*other.resume_run(run), HasSubstr("run 1 is held by process"));
  EXPECT_THAT(*holder.resume_run(run), HasSubstr("held by"));
  holder.finish_run(run, "finished");
  EXPECT_EQ(other.resume_run(run), "run 1 is finished");
  EXPECT_EQ(other.resume_run(9), "there is no run 9");
}

TEST(Runs, ARunWhoseHolderIsGoneIsInterruptedSinceItsLastTrial) {
  TempDir dir;
  {
    Store store(dir / "a.db");
    store.insert_trial(trial(fill(store)));
    store.database().execute("UPDATE t_trial SET created_at = '2020-01-02T03:04:05Z'");
  }
  Store store(dir / "a.db");
  EXPECT_EQ(store.mark_dead_runs(), 1);
  EXPECT_EQ(store.mark_dead_runs(), 0);
  EXPECT_EQ(text(store.database(), "SELECT status || ended_at FROM runs"),
            "interrupted2020-01-02T03:04:05Z");
  EXPECT_EQ(store.resume_run(1), std::nullopt);
  EXPECT_EQ(text(store.database(), "SELECT status FROM runs WHERE ended_at IS NULL"), "running");
  EXPECT_EQ(Store(dir / "a.db").mark_dead_runs(), 0);
}

TEST(Quarantine, CountsAndRemembersTheLastReason) {
  Store store(":memory:");
  EXPECT_EQ(store.quarantined("c", "cpu"), std::nullopt);
  store.quarantine("c", "cpu", "timeout");
  store.quarantine("c", "cpu", "crashed");
  EXPECT_EQ(store.quarantined("c", "cpu"), "crashed");
  EXPECT_EQ(store.quarantined("c", "gpu"), std::nullopt);
  EXPECT_EQ(number(store.database(), "SELECT count FROM quarantine"), 2);
}

}  // namespace
}  // namespace beamline::db
