// A measurer without process or clock: a candidate's time is a function of its opts, its faults are
// planned, noise is drawn from a seed, and seconds pass only as calls take them.
#pragma once
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "search/measurer.h"
#include "search/space.h"
#include "search/strategy.h"

namespace beamline::search {

class FakeMeasurer final : public Measurer {
 public:
  explicit FakeMeasurer(uint64_t noise_seed = 1) : random_(noise_seed) {}

  // What the world is like.
  std::map<std::string, double> ns;  // by opts; others take `default_ns`
  double default_ns = 1e5;
  std::map<std::string, std::string> code;  // by opts; others have code of their own
  std::map<std::string, Outcome> compile_fault, check_fault, second_input_fault;
  std::map<std::string, int> crash_in_session;  // by opts: crashes in its n-th session from 1
  std::map<std::string, double> error_share;
  int references_broken = 0;  // checks that find everyone wrong
  double noise = 0;           // sd of the session level of each contestant
  double control_drift = 0;   // the second handle of a program reads slower
  double compile_s = 0.01;

  // What happened.
  int sessions = 0, passes = 0, recomputed = 0, checks = 0;
  std::vector<size_t> session_sizes;
  std::set<std::string> timed;
  double now = 100;
  std::vector<std::string> opts_of;

  std::vector<Compiled> compile(std::span<const Candidate> candidates) override {
    std::vector<Compiled> out;
    for (const Candidate& c : candidates) {
      now += compile_s;
      Compiled r{.error = {},
                 .opts = c.opts,
                 .code_hash = {},
                 .source_hash = "s" + c.opts,
                 .compile_ms = 10};
      if (auto it = compile_fault.find(c.opts); it != compile_fault.end()) {
        r.outcome = it->second;
        r.error = "refused by plan";
      } else {
        r.program = static_cast<int>(opts_of.size());
        opts_of.push_back(c.opts);
        auto hash = code.find(c.opts);
        r.code_hash = hash == code.end() ? "code of " + c.opts : hash->second;
        r.threads = c.opts.find("THREAD") == std::string::npos ? 1 : 2;
      }
      out.push_back(r);
    }
    return out;
  }

  std::vector<Checked> check(std::span<const int> programs, int input_set) override {
    std::vector<Checked> out;
    ++checks;
    for (int p : programs) {
      const std::string& opts = opts_of[static_cast<size_t>(p)];
      Checked r{.error = {}, .call_ns = time_of(opts), .output_hash = "out"};
      if (auto e = error_share.find(opts); e != error_share.end()) r.error_share = e->second;
      auto& faults = input_set == 0 ? check_fault : second_input_fault;
      if (auto it = faults.find(opts); it != faults.end()) r.outcome = it->second;
      if (references_broken > 0) r.outcome = Outcome::WrongResult;
      if (r.outcome != Outcome::Ok) r.error = "bad by plan";
      now += r.call_ns * 1e-9;
      out.push_back(r);
    }
    return out;
  }

  void recompute_reference() override {
    ++recomputed;
    --references_broken;
  }

  std::vector<Timed> time(const SessionPlan& plan) override {
    ++sessions;
    session_sizes.push_back(plan.programs.size());
    std::vector<Timed> out(plan.programs.size());
    std::normal_distribution<double> level(0, noise);
    std::uniform_real_distribution<double> delay(0, noise);
    std::set<int> seen;
    bool cut = false;
    for (size_t i = 0; i < plan.programs.size(); ++i) {
      const std::string& opts = opts_of[static_cast<size_t>(plan.programs[i])];
      timed.insert(opts);
      auto crash = crash_in_session.find(opts);
      if (!cut && crash != crash_in_session.end() && --crash->second == 0) {
        out[i].outcome = Outcome::Crashed;
        out[i].error = "signal 11";
        crash_in_session.erase(crash);
        cut = true;
        continue;
      }
      double base = time_of(opts) * (noise > 0 ? std::exp(level(random_)) : 1);
      if (!seen.insert(plan.programs[i]).second) base *= 1 + control_drift;
      for (int s = 0; s < plan.sweeps; ++s) {
        double sample = base * (1 + (noise > 0 ? delay(random_) : 0));
        if (!cut) out[i].ns.push_back(sample);
        now += 2e-9 * sample;
      }
    }
    return out;
  }

  void new_pass() override { ++passes; }
  double seconds() override { return now; }
  double time_of(const std::string& opts) const {
    auto it = ns.find(opts);
    return it == ns.end() ? default_ns : it->second;
  }

 private:
  std::mt19937_64 random_;
};

class FakeSpace final : public ScheduleSpace {
 public:
  std::string best_guess;
  std::vector<std::string> level;
  std::string heuristic() const override { return best_guess; }
  std::vector<std::string> extensions(const std::string& opts) const override {
    return opts.empty() ? level : std::vector<std::string>{};
  }
  std::vector<std::string> variations(const std::string&) const override { return {}; }
};

struct Recorder final : SearchObserver {
  std::vector<Trial> trials;
  std::vector<std::string> phases;
  int stop_after = -1;  // progress reports until the user interrupts
  void on_trial(const Trial& t) override { trials.push_back(t); }
  void on_progress(const Progress& p) override {
    phases.emplace_back(p.phase);
    if (stop_after > 0) --stop_after;
  }
  bool stop_requested() override { return stop_after == 0; }
  const Trial* find(const std::string& opts, Stage stage = Stage::Search) const {
    for (const Trial& t : trials)
      if (t.opts == opts && t.stage == stage) return &t;
    return nullptr;
  }
};

}  // namespace beamline::search
