// Beam, random and exhaustive search on a space of four knobs whose best point is known, and what a
// resumed search does with what is known already.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fake_measurer.h"
#include "search/guided_search.h"

namespace beamline::search {
namespace {

// A schedule turns some of the knobs, in the order of their numbers. A knob alone costs; the right
// amounts of all three together are fastest, as with register tiles.
class KnobSpace final : public ScheduleSpace {
 public:
  struct Knob {
    std::string name;
    std::vector<int> amounts;
  };
  std::vector<Knob> knobs{{"UPCAST:0:", {2, 4, 6, 8, 12}},
                          {"UPCAST:1:", {4, 8, 16, 32, 48}},
                          {"UNROLL:0:", {2, 4, 8}},
                          {"THREAD:0:", {2}}};
  std::string best_guess = "UPCAST:0:4;UPCAST:1:8";
  std::vector<std::string> other_guesses;
  double thread_gain = 1;

  using Point = std::vector<int>;  // amounts; 0 = not turned

  Point point(const std::string& opts) const {
    Point p(knobs.size());
    for (size_t k = 0; k < knobs.size(); ++k) {
      size_t at = opts.find(knobs[k].name);
      if (at != std::string::npos) p[k] = std::stoi(opts.substr(at + knobs[k].name.size()));
    }
    return p;
  }
  std::string text(const Point& p) const {
    std::string opts;
    for (size_t k = 0; k < knobs.size(); ++k)
      if (p[k] != 0) opts += (opts.empty() ? "" : ";") + knobs[k].name + std::to_string(p[k]);
    return opts;
  }
  double ns(const std::string& opts) const {
    Point p = point(opts);
    auto off = [](int amount, double best) { return std::abs(std::log2((amount + 1) / best)); };
    double t = 1e5 * (1 + 0.35 * off(p[0], 7) + 0.3 * off(p[1], 33) + 0.05 * off(p[2], 5));
    if (p[0] != 0 && p[1] == 0) t *= 1.4;
    return p[3] != 0 ? t / thread_gain : t;
  }
  std::string heuristic() const override { return best_guess; }
  std::vector<std::string> starts() const override { return other_guesses; }
  std::vector<std::string> extensions(const std::string& opts) const override {
    return neighbours(opts, true);
  }
  std::vector<std::string> variations(const std::string& opts) const override {
    return neighbours(opts, false);
  }
  std::vector<std::string> all() const {
    std::vector<std::string> texts{""};
    for (size_t i = 0; i < texts.size(); ++i)
      for (const std::string& t : neighbours(texts[i], true))
        if (std::ranges::find(texts, t) == texts.end()) texts.push_back(t);
    return texts;
  }

 private:
  std::vector<std::string> neighbours(const std::string& opts, bool longer) const {
    std::vector<std::string> texts;
    Point p = point(opts);
    for (size_t k = 0; k < knobs.size(); ++k) {
      if ((p[k] == 0) != longer) continue;
      std::vector<int> amounts = knobs[k].amounts;
      if (!longer) amounts.push_back(0);
      for (int a : amounts) {
        Point q = p;
        q[k] = a;
        if (q != p) texts.push_back(text(q));
      }
    }
    return texts;
  }
};

class BeamSearchTest : public ::testing::Test {
 protected:
  BeamSearchTest() {
    task.space = &space;
    task.seed = 7;
    task.budget_s = 60;
  }
  void fill(FakeMeasurer& m) const {
    for (const std::string& opts : space.all()) m.ns[opts] = space.ns(opts);
  }
  SearchResult run(std::string_view strategy, int beam = 4) {
    fill(measurer);
    return make_strategy(strategy, beam)->run(task, measurer, recorder);
  }
  double best_of_all() const {
    double best = 1e18;
    for (const std::string& opts : space.all()) best = std::min(best, space.ns(opts));
    return best;
  }
  static std::multiset<std::string> searched(const Recorder& r) {
    std::multiset<std::string> opts;
    for (const Trial& t : r.trials)
      if (t.stage == Stage::Search) opts.insert(t.opts);
    return opts;
  }

  KnobSpace space;
  FakeMeasurer measurer;
  Recorder recorder;
  SearchTask task;
};

TEST_F(BeamSearchTest, FindsTheBestOfAllWithoutTryingAll) {
  SearchResult r = run("beam");
  EXPECT_EQ(r.status, SearchStatus::Tuned);
  EXPECT_DOUBLE_EQ(space.ns(r.opts), best_of_all()) << r.opts;
  EXPECT_EQ(space.point(r.opts)[3], 0) << "threads that gain nothing";
  EXPECT_LT(measurer.opts_of.size(), space.all().size() * 3 / 4);
}

// Other starts come before anybody's neighbours, each once; those that are slow are no harm.
TEST_F(BeamSearchTest, OtherStartsComeFirst) {
  const std::string far = "UPCAST:0:6;UPCAST:1:32;UNROLL:0:4", slow = "UPCAST:0:12;UNROLL:0:8";
  space.other_guesses = {far, slow, space.best_guess, "", far};
  fill(measurer);
  const SearchResult r = make_strategy("beam")->run(task, measurer, recorder);
  EXPECT_EQ(r.status, SearchStatus::Tuned);
  ASSERT_GE(measurer.opts_of.size(), 4U);
  EXPECT_EQ((std::set<std::string>(measurer.opts_of.begin(), measurer.opts_of.begin() + 2)),
            (std::set<std::string>{"", space.best_guess}));
  EXPECT_EQ(measurer.opts_of[2], far);
  EXPECT_EQ(measurer.opts_of[3], slow);
  EXPECT_EQ(std::ranges::count(measurer.opts_of, far), 1);
}

// Nobody looks for neighbours of what takes ten times as long as the leader.
TEST_F(BeamSearchTest, TheHopelesslySlowHasNoNeighbours) {
  fill(measurer);
  measurer.ns[""] = 12 * space.ns(space.best_guess);
  EXPECT_EQ(make_strategy("beam")->run(task, measurer, recorder).status, SearchStatus::Tuned);
  // While only the seeds are known: what is one knob from the guess, not from nothing.
  ASSERT_GT(measurer.opts_of.size(), 8U);
  for (size_t k = 2; k < 8; k++) {
    const std::string& opts = measurer.opts_of[k];
    EXPECT_TRUE(opts.find(';') != std::string::npos || opts == "UPCAST:0:4" || opts == "UPCAST:1:8")
        << opts;
  }
}

TEST_F(BeamSearchTest, TheFirstLevelAloneFindsLess) {
  EXPECT_GT(space.ns(run("heuristic").opts), 1.2 * best_of_all());
}

TEST_F(BeamSearchTest, ANarrowBeamIsEnoughWhereTheWayIsSmooth) {
  EXPECT_LE(space.ns(run("beam", 1).opts), 1.05 * best_of_all());
}

TEST_F(BeamSearchTest, NothingIsCompiledTwice) {
  for (const char* strategy : {"beam", "random", "exhaustive"}) {
    FakeMeasurer m;
    fill(m);
    Recorder seen;
    make_strategy(strategy)->run(task, m, seen);
    std::set<std::string> distinct(m.opts_of.begin(), m.opts_of.end());
    EXPECT_EQ(distinct.size(), m.opts_of.size()) << strategy;
  }
}

TEST_F(BeamSearchTest, NoisyAndStillNearTheBestAndNeverWorseThanTheHeuristic) {
  int near = 0;
  constexpr int runs = 40;
  for (uint64_t seed = 0; seed < runs; ++seed) {
    FakeMeasurer m(seed + 500);
    fill(m);
    m.noise = 0.03;
    task.seed = seed;
    Recorder seen;
    SearchResult r = make_strategy("beam")->run(task, m, seen);
    ASSERT_EQ(r.status, SearchStatus::Tuned);
    EXPECT_LE(space.ns(r.opts), space.ns(space.best_guess)) << seed;
    near += space.ns(r.opts) <= 1.05 * best_of_all();
  }
  EXPECT_GE(near, runs * 9 / 10);
}

TEST_F(BeamSearchTest, ExhaustiveTriesAll) {
  run("exhaustive");
  EXPECT_EQ(measurer.opts_of.size(), space.all().size());
}

TEST_F(BeamSearchTest, RandomTriesManyUntilNothingIsNew) {
  SearchResult r = run("random");
  EXPECT_GT(measurer.opts_of.size(), space.all().size() / 2);
  EXPECT_LE(space.ns(r.opts), 1.1 * best_of_all());
}

TEST_F(BeamSearchTest, BudgetOfTrialsHoldsForAll) {
  task.budget_trials = 20;
  for (const char* strategy : {"heuristic", "beam", "random", "exhaustive"}) {
    FakeMeasurer m;
    fill(m);
    Recorder seen;
    EXPECT_EQ(make_strategy(strategy)->run(task, m, seen).status, SearchStatus::Tuned);
    EXPECT_LE(m.opts_of.size(), 20U) << strategy;
  }
}

TEST_F(BeamSearchTest, StopsWhenTheLeaderGetsNoBetter) {
  space.knobs = {{"UPCAST:0:", {}}};
  for (int i = 2; i < 400; ++i) space.knobs[0].amounts.push_back(i);
  space.best_guess = "";
  for (int i = 2; i < 400; ++i) measurer.ns["UPCAST:0:" + std::to_string(i)] = 1.2e5;
  measurer.ns[""] = 1e5;
  SearchResult r = make_strategy("beam")->run(task, measurer, recorder);
  EXPECT_EQ(r.opts, "");
  EXPECT_LT(measurer.opts_of.size(), 150U);
}

// Threads must beat the best schedule on one thread by twice the usual margin (1 %).
TEST_F(BeamSearchTest, ThreadsMustBeWorthIt) {
  for (auto [gain, adopted] : {std::pair{1.015, false}, {1.03, true}, {1.9, true}}) {
    space.thread_gain = gain;
    FakeMeasurer m;
    fill(m);
    Recorder seen;
    SearchResult r = make_strategy("beam")->run(task, m, seen);
    EXPECT_EQ(space.point(r.opts)[3] != 0, adopted) << gain << " " << r.opts;
    KnobSpace::Point p = space.point(r.opts);
    p[3] = 0;
    EXPECT_LE(space.ns(space.text(p)), 1.02 * best_of_all() * gain) << r.opts;
  }
}

// The heuristic needs two threads to be where one thread can be: no gain that threads made.
TEST_F(BeamSearchTest, ThreadsAreComparedWithTheBestOnOneThreadNotWithTheHeuristic) {
  space.thread_gain = 1.012;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeMeasurer m(seed);
    fill(m);
    task.seed = seed;
    Recorder seen;
    EXPECT_EQ(space.point(make_strategy("beam")->run(task, m, seen).opts)[3], 0) << seed;
  }
}

TEST_F(BeamSearchTest, ResumedSearchRepeatsNothingAndEndsAsWell) {
  measurer.check_fault["UPCAST:0:2"] = Outcome::WrongResult;
  measurer.compile_fault["UNROLL:0:8"] = Outcome::CompileError;
  for (int after : {1, 2, 3, 5, 8, 12}) {
    FakeMeasurer first;
    fill(first);
    first.check_fault = measurer.check_fault;
    first.compile_fault = measurer.compile_fault;
    Recorder before;
    before.stop_after = after;
    EXPECT_EQ(make_strategy("beam")->run(task, first, before).status, SearchStatus::Interrupted);

    SearchTask resumed = task;
    std::set<std::string> known;
    for (const Trial& t : before.trials)
      if (t.stage == Stage::Search && known.insert(t.opts).second)
        resumed.known.push_back({t.opts, t.outcome, t.time_ns, t.code_hash});
    FakeMeasurer second(99);
    for (const auto& [opts, ns] : first.ns) second.ns[opts] = 2 * ns;  // a slower minute
    second.check_fault = measurer.check_fault;
    second.compile_fault = measurer.compile_fault;
    Recorder later;
    SearchResult r = make_strategy("beam")->run(resumed, second, later);
    EXPECT_EQ(r.status, SearchStatus::Tuned);
    EXPECT_LE(space.ns(r.opts), 1.02 * best_of_all()) << after << " " << r.opts;
    for (const std::string& opts : searched(later)) EXPECT_FALSE(known.contains(opts)) << opts;
    EXPECT_FALSE(second.timed.contains("UPCAST:0:2"));
    int counted = 0;
    for (int c : r.counts) counted += c;
    std::set<std::string> distinct = known;
    for (const std::string& opts : searched(later)) distinct.insert(opts);
    EXPECT_EQ(counted, static_cast<int>(distinct.size())) << after;
  }
}

TEST_F(BeamSearchTest, AllKnownAndNothingLeft) {
  run("exhaustive");
  SearchTask again = task;
  for (const Trial& t : recorder.trials)
    if (t.stage == Stage::Search)
      again.known.push_back({t.opts, t.outcome, t.time_ns, t.code_hash});
  FakeMeasurer m;
  fill(m);
  Recorder later;
  SearchResult r = make_strategy("exhaustive")->run(again, m, later);
  EXPECT_EQ(r.status, SearchStatus::Tuned);
  EXPECT_DOUBLE_EQ(space.ns(r.opts), best_of_all());
  EXPECT_TRUE(searched(later).empty());
  EXPECT_LT(m.opts_of.size(), 20U);  // the roles, and the best of the known ones
}

TEST_F(BeamSearchTest, AResumedSearchWhoseTrialsAreSpentStillEnds) {
  run("beam");
  SearchTask again = task;
  for (const Trial& t : recorder.trials)
    if (t.stage == Stage::Search)
      again.known.push_back({t.opts, t.outcome, t.time_ns, t.code_hash});
  again.budget_trials = 10;
  FakeMeasurer m;
  fill(m);
  Recorder later;
  SearchResult r = make_strategy("beam")->run(again, m, later);
  EXPECT_EQ(r.status, SearchStatus::Tuned) << r.error;
  EXPECT_DOUBLE_EQ(space.ns(r.opts), best_of_all());
}

TEST_F(BeamSearchTest, TrialsOfTheRaceAreToldBeforeTheRaceEnds) {
  recorder.stop_after = 6;
  SearchResult r = run("beam");
  EXPECT_EQ(r.status, SearchStatus::Interrupted);
  std::multiset<std::string> told = searched(recorder);
  for (const std::string& opts : measurer.timed) EXPECT_GE(told.count(opts), 1U) << opts;
}

TEST(Strategies, NamesAndRanks) {
  EXPECT_LT(strategy_rank("heuristic"), strategy_rank("random"));
  EXPECT_LT(strategy_rank("random"), strategy_rank("beam"));
  EXPECT_LT(strategy_rank("beam"), strategy_rank("exhaustive"));
  EXPECT_EQ(strategy_rank("greedy"), -1);
  EXPECT_EQ(make_strategy("greedy"), nullptr);
  for (const char* name : {"heuristic", "random", "beam", "exhaustive"})
    EXPECT_EQ(make_strategy(name)->name(), name);
}

}  // namespace
}  // namespace beamline::search
