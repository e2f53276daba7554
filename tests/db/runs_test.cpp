#include "db/runs.h"

#include <gtest/gtest.h>

#include "db/query.h"
#include "fixture.h"

namespace beamline::db {
namespace {

std::string found(const Store& store, std::string_view text) {
  auto run = find_run(store.database(), text);
  if (const auto* why = std::get_if<std::string>(&run)) return *why;
  return std::to_string(std::get<RunInfo>(run).run_id);
}

TEST(Runs, AreFoundByNumberPlaceAndLabel) {
  TempDir dir;
  Store store(dir / "b.db");
  EXPECT_EQ(found(store, "last"), "there is no run 'last': the database has fewer");
  fill(store);
  for (const char* label : {"a", "b", "a", ""})
    store.finish_run(store.begin_run({.label = label, .command = "tune", .device_id = "cpu"}),
                     "finished");
  const std::pair<const char*, const char*> cases[] = {
      {"1", "1"},
      {"last", "5"},
      {"last-0", "5"},
      {"last-4", "1"},
      {"a", "4"},
      {"b", "3"},
      {"night", "1"},
      {"last-5", "there is no run 'last-5': the database has fewer"},
      {"9", "there is no run 9"},
      {"99999999999999999999",
       "there is no run '99999999999999999999' (expected a number, last, last-N or a label)"},
      {"", "there is no run '' (expected a number, last, last-N or a label)"},
      {"last-x", "there is no run 'last-x' (expected a number, last, last-N or a label)"},
      {"it's", "there is no run 'it's' (expected a number, last, last-N or a label)"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(found(store, text), expected) << text;
  auto run = std::get<RunInfo>(find_run(store.database(), "night"));
  EXPECT_EQ(run.status, "running");
  EXPECT_EQ(run.seed, 7);
  EXPECT_EQ(run.device_id, "cpu");
  EXPECT_EQ(run.budget, "60s");
  EXPECT_EQ(run.ended_at, "");
}

TEST(Trials, AReplacedTrialKeepsItsPlace) {
  TempDir dir;
  Store store(dir / "b.db");
  const int64_t run = fill(store);
  const int64_t first = store.insert_trial(trial(run));
  store.insert_trial(trial(run));
  TrialRow later = trial(run);
  later.status = "crashed", later.error = "signal 11", later.time_ns = {};
  later.samples = {{3, 0, 7}};
  later.n_samples = 1;
  store.replace_trial(first, later);
  auto rows = store.trials_of(run);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].trial_id, first);
  EXPECT_EQ(rows[0].status, "crashed");
  EXPECT_EQ(rows[0].error, "signal 11");
  EXPECT_FALSE(rows[0].time_ns);
  ASSERT_EQ(store.samples_of(first).size(), 1U);
  EXPECT_EQ(store.samples_of(first)[0].session, 3);
  EXPECT_EQ(rows[1].status, "ok");
  EXPECT_EQ(store.samples_of(rows[1].trial_id).size(), 2U);
  EXPECT_EQ(fault_of([&] { store.replace_trial(99, later); }), Fault::Missing);
  EXPECT_TRUE(check(store.database()).empty());
}

}  // namespace
}  // namespace beamline::db
