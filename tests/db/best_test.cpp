// What may become a stored best, what replaces it, and what is served.
#include <gmock/gmock.h>

#include <limits>

#include "db/query.h"
#include "tests/db/fixture.h"

namespace beamline::db {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Best : testing::Test {
  Store store{":memory:"};
  int64_t run = fill(store), later = store.begin_run({.command = "tune", .device_id = "cpu"});
  std::string stored_opts() const { return store.lookup_best("k1", "cpu")->opts; }
};

TEST_F(Best, ComesBackWithEveryField) {
  BestRow b = best(run, "UPCAST:0:4;THREAD:0:2", 100.25);
  b.local_size = "8,4,1", b.tie_opts_json = R"(["UPCAST:0:8"])", b.heuristic_ns = 150;
  b.unoptimized_ns = 900, b.gain = 1.5, b.ci_low = 1.4, b.ci_high = 1.6, b.gflops = 12;
  b.gbps = 3, b.bound_share = 0.7, b.beam = 4, b.pinned = true, b.stale = true;
  b.output_hash = "o", b.stale_reason = "toolchain", b.code_hash = "c", b.source_hash = "s";
  b.action_set = "a", b.strategy = "beam", b.tuned_at = "2026-01-31T12:00:00Z";
  b.mode = "cold", b.numerics = "tf32";
  ASSERT_EQ(store.store_best(b), std::nullopt);
  const std::optional<BestRow> got = store.lookup_best("k1", "cpu", "cold", "tf32");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->kernel_key, "k1");
  EXPECT_EQ(got->device_id, "cpu");
  EXPECT_EQ(got->mode + got->numerics, "coldtf32");
  EXPECT_EQ(got->opts, b.opts);
  EXPECT_EQ(got->local_size, b.local_size);
  EXPECT_EQ(got->tie_opts_json, b.tie_opts_json);
  EXPECT_EQ(got->best_ns, 100.25);
  EXPECT_EQ(got->heuristic_ns, 150);
  EXPECT_EQ(got->unoptimized_ns, 900);
  EXPECT_EQ(got->gain, 1.5);
  EXPECT_EQ(got->ci_low, 1.4);
  EXPECT_EQ(got->ci_high, 1.6);
  EXPECT_EQ(got->gflops, 12);
  EXPECT_EQ(got->gbps, 3);
  EXPECT_EQ(got->bound_share, 0.7);
  EXPECT_EQ(got->sessions, 20);
  EXPECT_EQ(got->run_id, run);
  EXPECT_EQ(got->beam, 4);
  EXPECT_TRUE(got->verified && got->pinned && got->stale);
  EXPECT_EQ(got->output_hash + got->stale_reason + got->code_hash + got->source_hash,
            "otoolchaincs");
  EXPECT_EQ(got->engine_version + got->action_set + got->toolchain, "1allvm 19");
  EXPECT_EQ(got->environment_id + got->strategy + got->tuned_at, "e1beam2026-01-31T12:00:00Z");
}

TEST_F(Best, IsOnePerKernelDeviceModeAndNumerics) {
  store.upsert_device({"gpu", "GPU", "cuda", "sm_90", "{}", {}, {}});
  std::vector<BestRow> rows(5, best(run, "", 100));
  rows[1].kernel_key = "k2", rows[2].device_id = "gpu", rows[3].mode = "cold";
  rows[4].numerics = "tf32";
  for (size_t i = 0; i < rows.size(); i++) {
    rows[i].opts = "UPCAST:0:" + std::to_string(i);
    ASSERT_EQ(store.store_best(rows[i]), std::nullopt);
  }
  for (const BestRow& r : rows)
    EXPECT_EQ(store.lookup_best(r.kernel_key, r.device_id, r.mode, r.numerics)->opts, r.opts);
  EXPECT_THAT(store.all_best(), SizeIs(5));
  EXPECT_EQ(store.lookup_best("k2", "gpu"), std::nullopt);
}

TEST_F(Best, NeedsEvidence) {
  std::vector<BestRow> rows(6, best(run, "", 100));
  rows[0].verified = false, rows[1].sessions = 0, rows[2].best_ns = 0, rows[3].best_ns = -5;
  rows[4].best_ns = std::numeric_limits<double>::quiet_NaN();
  rows[5].best_ns = std::numeric_limits<double>::infinity();
  for (const BestRow& r : rows) EXPECT_NE(store.store_best(r), std::nullopt);
  EXPECT_THAT(store.all_best(), IsEmpty());
  BestRow orphan = best(run, "", 100);
  orphan.kernel_key = "unknown";
  EXPECT_EQ(fault_of([&] { store.store_best(orphan); }), Fault::Constraint);
}

// Rows that meet the same stored one: best(run, "UPCAST:0:4", 100, 20 sessions).
struct Meeting {
  const char* what;
  const char* opts;
  double ns;
  int64_t sessions;
  bool replaces;
};
// clang-format off
const Meeting meetings[] = {
    {"faster",                        "UPCAST:0:8", 90,  20, true},
    {"slower",                        "UPCAST:0:8", 110, 20, false},
    {"faster in too few sessions",    "UPCAST:0:8", 90,  3,  false},
    {"the same opts, timed again",    "UPCAST:0:4", 110, 20, true},
    {"as fast, with longer opts",     "UPCAST:0:16", 100, 20, false},
    {"as fast, with shorter opts",    "",           100, 20, true},
};
// clang-format on
TEST_F(Best, ARivalReplacesOnlyWhatIsWorseMeasured) {
  for (const Meeting& m : meetings) {
    store.database().execute("DELETE FROM t_best");
    ASSERT_EQ(store.store_best(best(run, "UPCAST:0:4", 100)), std::nullopt);
    const auto refusal = store.store_best(best(later, m.opts, m.ns, m.sessions));
    EXPECT_EQ(!refusal, m.replaces) << m.what;
    EXPECT_EQ(stored_opts(), m.replaces ? m.opts : "UPCAST:0:4") << m.what;
    EXPECT_EQ(store.lookup_best("k1", "cpu")->run_id, m.replaces ? later : run) << m.what;
  }
}

TEST_F(Best, TheOrderInWhichRivalsComeDecidesNothing) {
  const int64_t third = store.begin_run({.command = "tune", .device_id = "cpu"});
  const std::vector<BestRow> rows = {best(run, "A", 100, 20), best(later, "B", 95, 3),
                                     best(third, "C", 98, 10)};
  for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{
           {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    store.database().execute("DELETE FROM t_best");
    for (const size_t i : order) store.store_best(rows[i]);
    EXPECT_EQ(stored_opts(), "C");
  }
}

TEST_F(Best, AMeasuredVictoryReplacesAFasterNumberOfOldDays) {
  ASSERT_EQ(store.store_best(best(run, "A", 100)), std::nullopt);
  EXPECT_THAT(*store.store_best(best(later, "B", 110), later), HasSubstr("better measured"));
  EXPECT_EQ(store.store_best(best(later, "B", 110), run), std::nullopt);
  EXPECT_EQ(stored_opts(), "B");
  EXPECT_EQ(store.store_best(best(later, "C", 120)), std::nullopt) << "a run revises itself";
}

TEST_F(Best, TimesOfAnotherEnvironmentAndStaleRowsProtectNothing) {
  for (auto change :
       {+[](BestRow& b) { b.engine_version = "0"; }, +[](BestRow& b) { b.toolchain = "llvm 18"; },
        +[](BestRow& b) { b.environment_id = "e0"; }, +[](BestRow& b) { b.stale = true; }}) {
    store.database().execute("DELETE FROM t_best");
    BestRow old = best(run, "A", 100);
    change(old);
    ASSERT_EQ(store.store_best(old), std::nullopt);
    EXPECT_EQ(store.store_best(best(later, "B", 110)), std::nullopt);
    EXPECT_EQ(stored_opts(), "B");
  }
}

TEST_F(Best, APinnedRowStays) {
  BestRow b = best(run, "A", 100);
  b.pinned = true;
  ASSERT_EQ(store.store_best(b), std::nullopt);
  EXPECT_EQ(store.store_best(best(later, "B", 50), run), "the stored row is pinned");
  EXPECT_EQ(stored_opts(), "A");
}

TEST_F(Best, IsFoundUnderTheKeysBeforeAndAfter) {
  ASSERT_EQ(store.store_best(best(run, "A", 100)), std::nullopt);
  store.add_key_alias("k1", "k1a", "2");
  store.add_key_alias("k1a", "k1b", "3");
  store.add_key_alias("k0", "k1", "1");
  for (const char* key : {"k1", "k1a", "k1b", "k0"}) {
    const auto got = store.lookup_best(key, "cpu");
    ASSERT_TRUE(got) << key;
    EXPECT_EQ(got->kernel_key, "k1") << key;
  }
  EXPECT_EQ(store.lookup_best("k1b", "gpu"), std::nullopt);
  EXPECT_EQ(store.lookup_best("k9", "cpu"), std::nullopt);
}

TEST_F(Best, TheKeyItselfComesBeforeItsAliases) {
  ASSERT_EQ(store.store_best(best(run, "old", 100)), std::nullopt);
  BestRow b = best(run, "new", 120);
  b.kernel_key = "k2";
  ASSERT_EQ(store.store_best(b), std::nullopt);
  store.add_key_alias("k1", "k2", "2");
  EXPECT_EQ(store.lookup_best("k2", "cpu")->opts, "new");
  EXPECT_EQ(store.lookup_best("k1", "cpu")->opts, "old");
  store.add_key_alias("k0", "k2", "2");
  EXPECT_EQ(store.lookup_best("k0", "cpu")->opts, "new") << "one step is nearer than two";
}

TEST_F(Best, ACircleOfAliasesEnds) {
  store.add_key_alias("a", "b", "1");
  store.add_key_alias("b", "c", "2");
  store.add_key_alias("c", "a", "3");
  EXPECT_EQ(store.lookup_best("a", "cpu"), std::nullopt);
}

TEST_F(Best, AnUnreadableRowIsSkippedToldAndNeverServed) {
  ASSERT_EQ(store.store_best(best(run, "A", 100)), std::nullopt);
  BestRow b = best(run, "B", 100);
  b.kernel_key = "k2";
  ASSERT_EQ(store.store_best(b), std::nullopt);
  store.database().execute("UPDATE t_best SET best_ns = 'fast' WHERE kernel_key = 'k1'");
  std::vector<std::string> skipped;
  EXPECT_THAT(store.all_best(&skipped), ElementsAre(testing::Field(&BestRow::opts, "B")));
  EXPECT_THAT(skipped, ElementsAre("best of k1 on cpu: best_ns is unreadable"));
  EXPECT_EQ(store.lookup_best("k1", "cpu"), std::nullopt);
  EXPECT_EQ(store.lookup_best("k2", "cpu")->opts, "B");
  EXPECT_THAT(check(store.database()), SizeIs(1));
}

}  // namespace
}  // namespace beamline::db
