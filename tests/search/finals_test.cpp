#include "search/finals.h"

#include <gtest/gtest.h>

#include "fake_measurer.h"

namespace beamline::search {
namespace {

TEST(FitSessions, SweepsGoFirstThenSessions) {
  auto fit = [](double budget) { return fit_sessions(budget, 1, 20, 10); };
  EXPECT_EQ(fit(1000).sessions, 20);
  EXPECT_EQ(fit(1000).sweeps, 10);
  EXPECT_EQ(fit(100).sessions, 20);
  EXPECT_EQ(fit(100).sweeps, 5);
  EXPECT_EQ(fit(12).sessions, 12);
  EXPECT_EQ(fit(12).sweeps, 1);
  EXPECT_EQ(fit(0).sessions, 3);
  EXPECT_EQ(fit(0).sweeps, 1);
}

class FinalsTest : public ::testing::Test {
 protected:
  void enter(const std::vector<std::string>& names) {
    std::vector<Candidate> candidates;
    for (const std::string& n : names) candidates.push_back({n, {}});
    auto compiled = measurer.compile(candidates);
    for (const Compiled& c : compiled)
      field.all.push_back({.opts = c.opts,
                           .program = c.program,
                           .code_hash = c.code_hash,
                           .source_hash = c.source_hash,
                           .error = {},
                           .weight = 2,
                           .best_ns = measurer.time_of(c.opts),
                           .samples = {}});
  }
  FakeMeasurer measurer;
  Recorder recorder;
  Field field{measurer, recorder, 3};
  SearchSettings settings;
};

TEST_F(FinalsTest, DriftingControlVoidsSmallGainsButNotLargeOnes) {
  measurer.control_drift = 0.06;
  measurer.ns = {{"h", 1e5}, {"small", 0.97e5}, {"large", 0.5e5}};
  enter({"h", "small"});
  Roles roles{.heuristic = 0, .unoptimised = -1, .stored = -1};
  SearchResult r;
  run_finals(field, roles, {1, 0}, settings, measurer.now + 10, r);
  EXPECT_EQ(r.opts, "h");
  EXPECT_NE(r.note.find("A/A control drifted by 6.0 %"), std::string::npos);

  field.all.clear();
  enter({"h", "large"});
  SearchResult clear;
  run_finals(field, roles, {1, 0}, settings, measurer.now + 10, clear);
  EXPECT_EQ(clear.opts, "large");
}

TEST_F(FinalsTest, ConfirmationUsesSeveralProcesses) {
  measurer.ns = {{"h", 1e5}, {"x", 0.9e5}};
  enter({"h", "x"});
  SearchResult r;
  run_finals(field, {.heuristic = 0, .unoptimised = -1, .stored = -1}, {1, 0}, settings,
             measurer.now + 10, r);
  EXPECT_GE(measurer.passes, 5);         // two of the selection, three of the confirmation
  EXPECT_EQ(measurer.sessions, 5 + 20);  // h is 10 % behind: no further selection sessions
}

TEST_F(FinalsTest, TheOnlyContestantIsConfirmedAgainstItself) {
  measurer.ns = {{"h", 1e5}};
  enter({"h"});
  SearchResult r;
  run_finals(field, {.heuristic = 0, .unoptimised = 0, .stored = -1}, {0}, settings,
             measurer.now + 10, r);
  EXPECT_EQ(r.status, SearchStatus::Tuned);
  EXPECT_DOUBLE_EQ(r.best_ns, 1e5);
  EXPECT_EQ(r.gain.gain, 1);
}

TEST_F(FinalsTest, NobodyLeftFails) {
  SearchResult r;
  run_finals(field, {}, {}, settings, measurer.now + 10, r);
  EXPECT_EQ(r.status, SearchStatus::Failed);
  EXPECT_FALSE(r.error.empty());
}

}  // namespace
}  // namespace beamline::search
