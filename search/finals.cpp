#include "search/finals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "search/stats/robust.h"
#include "search/stats/verdict.h"

namespace beamline::search {
namespace {

constexpr double adopt_confidence = 0.995, adopt_low = 1.005, adopt_point = 1.01;
constexpr double thread_margin = 2;     // times the usual, for threads over a single one
constexpr double dropped_ratio = 1.03;  // after the first selection sessions
constexpr double tie_ratio = 1.01;
constexpr double control_point = 1.03, control_bound = 1.01;  // an A/A control beyond is void
constexpr int processes_select = 2, processes_confirm = 3;

using Samples = std::map<int, std::vector<stats::Sample>>;

class Finals {
 public:
  Finals(Field& field, const Roles& roles, const SearchSettings& settings, double end_s,
         SearchResult& result)
      : field_(field), roles_(roles), settings_(settings), end_s_(end_s), result_(result) {}

  void run(std::vector<int> finalists);

 private:
  std::vector<int> entrants(const std::vector<int>& finalists);
  void drop_unverified(std::vector<int>& who, int input_set);
  std::vector<int> select(std::vector<int> who);
  bool confirm(int leader);
  int decide(int leader, int single, const Samples& samples, double drift);
  int best_single(int leader);
  void publish(int winner, const Samples& samples);
  int sessions(const std::vector<int>& who, SessionBudget plan, Stage stage, Samples& into,
               std::vector<stats::Sample>* control = nullptr);
  void report(int who, Stage stage, const Samples& samples, int reference);
  bool adopted(int challenger, int keep, const Samples& samples, double drift) const;
  double sweep_ns(const std::vector<int>& who);
  double left_ns() { return std::max(0.0, end_s_ - field_.measurer.seconds()) * 1e9; }
  std::optional<double> time_of(int role, int winner, const Samples& samples);
  bool alive(int c) { return c >= 0 && field_[c].ok(); }

  Field& field_;
  Roles roles_;
  const SearchSettings& settings_;
  double end_s_;
  SearchResult& result_;
  Samples selection_;
  std::vector<int> ranked_;
};

// How far the same program seemed to differ from itself; 0 within what noise explains.
double control_drift(const std::vector<stats::Sample>& self,
                     const std::vector<stats::Sample>& control) {
  stats::Estimate e = stats::estimate(stats::session_log_ratios(self, control));
  bool far = std::abs(e.point) > std::log(control_point);
  bool sure = e.low(0.975) > std::log(control_bound) || e.high(0.975) < -std::log(control_bound);
  return far || sure ? std::abs(e.point) : 0;
}

double log_ratio(const Samples& samples, int reference, int candidate) {
  auto r = samples.find(reference), c = samples.find(candidate);
  if (r == samples.end() || c == samples.end()) return std::nan("");
  return stats::trimmed_mean(stats::session_log_ratios(r->second, c->second));
}

std::vector<int> Finals::entrants(const std::vector<int>& finalists) {
  std::vector<int> who;
  auto add = [&](int c) {
    if (alive(c) && std::ranges::find(who, c) == who.end()) who.push_back(c);
  };
  for (int c : finalists) {
    if (static_cast<int>(who.size()) == settings_.finalists) break;
    add(c);
  }
  double leader = who.empty() ? 0 : field_[who[0]].score;
  for (int c : {roles_.stored, roles_.heuristic, roles_.unoptimised})
    if (alive(c) && field_[c].score <= leader + std::log(settings_.unconfirmed_ratio)) add(c);
  return who;
}

void Finals::drop_unverified(std::vector<int>& who, int input_set) {
  std::vector<int> programs;
  for (int c : who) programs.push_back(field_[c].program);
  std::vector<Checked> checked = field_.measurer.check(programs, input_set);
  for (size_t i = 0; i < who.size(); ++i) {
    result_.output_hash = checked[i].output_hash;
    if (checked[i].outcome == Outcome::Ok) continue;
    field_.fail(who[i], checked[i].outcome, checked[i].error);
    report(who[i], Stage::Select, selection_, -1);
  }
  std::erase_if(who, [&](int c) { return !field_[c].ok(); });
}

double Finals::sweep_ns(const std::vector<int>& who) {
  double sum = 0;
  for (int c : who) sum += 2 * std::max(field_[c].best_ns, 20e3);  // warm call and timed batch
  return sum;
}

int Finals::sessions(const std::vector<int>& who, SessionBudget plan, Stage stage, Samples& into,
                     std::vector<stats::Sample>* control) {
  int processes = stage == Stage::Select ? processes_select : processes_confirm;
  int per_process = (plan.sessions + processes - 1) / processes;
  std::vector<int> entries = who;
  if (control) entries.push_back(who.back());
  int done = 0;
  for (; done < plan.sessions; ++done) {
    if (field_.observer.stop_requested()) break;
    if (done % per_process == 0) field_.measurer.new_pass();
    auto samples = field_.session(entries, plan.sweeps);
    for (size_t i = 0; i < entries.size(); ++i) {
      auto& list = control && i + 1 == entries.size() ? *control : into[entries[i]];
      for (size_t k = 0; k < samples[i].size(); ++k)
        list.push_back({field_.last_session(), static_cast<int64_t>(k), samples[i][k]});
    }
    field_.observer.on_progress({.phase = stage_name(stage),
                                 .done = static_cast<size_t>(done) + 1,
                                 .total = static_cast<size_t>(plan.sessions),
                                 .best_ns = field_[who[0]].best_ns,
                                 .best_opts = field_[who[0]].opts});
  }
  return done;
}

std::vector<int> Finals::select(std::vector<int> who) {
  // What even the shortest selection has no time for is left to its racing score.
  while (who.size() > 1 && 3 * sweep_ns(who) > 0.4 * left_ns()) who.pop_back();
  if (who.size() < 2) return who;
  SessionBudget fit =
      fit_sessions(0.4 * left_ns(), sweep_ns(who), 2 * settings_.select_sessions, settings_.sweeps);
  int first = (fit.sessions + 1) / 2;
  sessions(who, {first, fit.sweeps}, Stage::Select, selection_);
  auto rank = [&] {
    std::erase_if(who, [&](int c) {
      if (field_[c].ok()) return false;
      report(c, Stage::Select, selection_, -1);
      return true;
    });
    if (who.empty()) return;
    // Everyone against the one with most sessions; without common sessions the racing order stays.
    int reference = *std::ranges::max_element(
        who, {}, [&](int c) { return stats::session_minima(selection_[c]).size(); });
    std::map<int, double> score;
    for (int c : who) {
      double r = log_ratio(selection_, reference, c);
      score[c] = std::isfinite(r) ? r : std::numeric_limits<double>::infinity();
    }
    std::ranges::stable_sort(who, {}, [&](int c) { return score[c]; });
  };
  rank();
  if (who.size() > 1 && fit.sessions > first && !field_.observer.stop_requested()) {
    std::vector<int> close;
    for (int c : who) {
      auto ratios = stats::session_log_ratios(selection_[who[0]], selection_[c]);
      if (!(stats::median(ratios) > std::log(dropped_ratio))) close.push_back(c);
    }
    if (close.size() > 1)
      sessions(close, {fit.sessions - first, fit.sweeps}, Stage::Select, selection_);
    rank();
  }
  for (int c : who) report(c, Stage::Select, selection_, who[0]);
  return who;
}

void Finals::report(int who, Stage stage, const Samples& samples, int reference) {
  const Contestant& c = field_[who];
  Trial t{.opts = c.opts,
          .outcome = c.outcome,
          .stage = stage,
          .time_ns = {},
          .ratio_to_incumbent = {},
          .samples = {},
          .compile_ms = c.compile_ms,
          .code_hash = c.code_hash,
          .error = c.error};
  if (auto it = samples.find(who); c.ok() && it != samples.end() && !it->second.empty()) {
    t.samples = it->second;
    double ns = stats::median_session_minimum(it->second);
    if (std::isfinite(ns)) t.time_ns = ns;
    double ratio = reference < 0 ? std::nan("") : std::exp(log_ratio(samples, reference, who));
    if (std::isfinite(ratio)) t.ratio_to_incumbent = ratio;
  }
  field_.report(t);
}

bool Finals::adopted(int challenger, int keep, const Samples& samples, double drift) const {
  auto c = samples.find(challenger), k = samples.find(keep);
  if (c == samples.end() || k == samples.end()) return false;
  stats::Estimate gain = stats::estimate(stats::session_log_ratios(c->second, k->second));
  bool threads = field_[challenger].threads > 1 && field_[keep].threads == 1;
  double margin = threads ? thread_margin : 1;
  return gain.low(adopt_confidence) > margin * std::log(adopt_low) + drift &&
         gain.point > margin * std::log(adopt_point) + drift;
}

// The best contestant on one thread, where the leader uses more; else -1.
int Finals::best_single(int leader) {
  if (field_[leader].threads == 1) return -1;
  for (int c : ranked_)
    if (alive(c) && field_[c].threads == 1) return c;
  int best = -1;
  for (size_t i = 0; i < field_.all.size(); ++i) {
    const Contestant& c = field_.all[i];
    if (!c.ok() || c.weight == 0 || c.program < 0 || c.threads > 1) continue;
    if (best < 0 || c.score < field_[best].score) best = static_cast<int>(i);
  }
  return best;
}

int Finals::decide(int leader, int single, const Samples& samples, double drift) {
  int keep = -1;
  for (int c : {roles_.stored, roles_.heuristic, roles_.unoptimised})
    if (keep < 0 && alive(c) && samples.contains(c)) keep = c;
  if (keep < 0) keep = alive(single) && samples.contains(single) ? single : leader;
  for (int c : {roles_.heuristic, roles_.unoptimised, single})
    if (alive(c) && c != keep && adopted(c, keep, samples, drift)) keep = c;
  bool worth_threads = !alive(single) || !samples.contains(single) || single == keep ||
                       adopted(leader, single, samples, drift);
  if (leader != keep && worth_threads && adopted(leader, keep, samples, drift)) keep = leader;
  return keep;
}

std::optional<double> Finals::time_of(int role, int winner, const Samples& samples) {
  if (!alive(role)) return {};
  if (role == winner) return result_.best_ns;
  double r = log_ratio(samples, winner, role);
  if (!std::isfinite(r)) r = field_[role].score - field_[winner].score;
  return result_.best_ns * std::exp(r);
}

void Finals::publish(int winner, const Samples& samples) {
  const Contestant& w = field_[winner];
  result_.status = SearchStatus::Tuned;
  result_.opts = w.opts;
  result_.code_hash = w.code_hash;
  result_.source_hash = w.source_hash;
  result_.verified = true;
  result_.best_ns = stats::median_session_minimum(samples.at(winner));
  result_.heuristic_ns = time_of(roles_.heuristic, winner, samples);
  result_.unoptimized_ns = time_of(roles_.unoptimised, winner, samples);
  auto base = samples.find(roles_.heuristic);
  auto sessions_held = static_cast<int>(stats::session_minima(samples.at(winner)).size());
  if (winner == roles_.heuristic) {
    result_.gain = {.gain = 1, .ci_low = 1, .ci_high = 1, .sessions = sessions_held};
  } else if (base != samples.end() && alive(roles_.heuristic)) {
    result_.gain = stats::publish_gain(base->second, samples.at(winner));
  } else {
    double nan = std::nan("");
    double ratio = result_.heuristic_ns ? *result_.heuristic_ns / result_.best_ns : nan;
    result_.gain = {.gain = ratio, .ci_low = nan, .ci_high = nan, .sessions = sessions_held};
  }
  for (int c : ranked_) {
    if (c == winner || !alive(c)) continue;
    bool both = samples.contains(c) && samples.contains(winner);
    double r = log_ratio(both ? samples : selection_, winner, c);
    if (std::abs(r) <= std::log(tie_ratio)) result_.tie_opts.push_back(field_[c].opts);
  }
}

bool Finals::confirm(int leader) {
  std::vector<int> who{leader};
  double limit = field_[leader].score + std::log(settings_.unconfirmed_ratio);
  int single = best_single(leader);
  for (int c : {single, roles_.unoptimised, roles_.stored, roles_.heuristic})
    if (alive(c) && field_[c].score <= limit && std::ranges::find(who, c) == who.end())
      who.push_back(c);
  // Where the A/A control drifts the data is void and taken once more; if it drifts again, a gain
  // must exceed the drift.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Samples samples;
    std::vector<stats::Sample> control;
    double sweep = sweep_ns(who) + 2 * field_[who.back()].best_ns;
    double share = attempt == 0 ? 0.7 : 1.0;
    SessionBudget fit =
        fit_sessions(share * left_ns(), sweep, settings_.confirm_sessions, settings_.sweeps);
    int control_of = who.back();
    int done = sessions(who, fit, Stage::Confirm, samples, &control);
    if (done < fit.sessions) {
      result_.status = SearchStatus::Interrupted;
      return true;
    }
    bool undecided = who.size() > 1 && !adopted(leader, control_of, samples, 0) &&
                     log_ratio(samples, leader, control_of) > std::log(adopt_point);
    if (undecided && left_ns() > fit.sessions * fit.sweeps * sweep)
      sessions(who, fit, Stage::Confirm, samples, &control);

    double drift = alive(control_of) ? control_drift(samples[control_of], control) : 0;
    if (drift > 0 && attempt == 0 && left_ns() > 3 * sweep) continue;
    if (drift > 0)
      result_.note = fmt::format("the A/A control drifted by {:.1f} %", 100 * std::expm1(drift));
    for (int c : who) report(c, Stage::Confirm, samples, who.back());
    if (!alive(leader)) return false;
    int winner = decide(leader, single, samples, drift);
    std::vector<int> last{winner};
    result_.output_hash.clear();
    drop_unverified(last, 0);
    if (last.empty()) return false;
    publish(winner, samples);
    return true;
  }
  return true;
}

void Finals::run(std::vector<int> finalists) {
  std::vector<int> who = entrants(finalists);
  if (!who.empty()) drop_unverified(who, 1);
  ranked_ = select(who);
  while (!ranked_.empty()) {
    if (field_.observer.stop_requested()) {
      result_.status = SearchStatus::Interrupted;
      return;
    }
    if (confirm(ranked_.front())) return;
    std::erase_if(ranked_, [&](int c) { return !alive(c); });
  }
  result_.status = SearchStatus::Failed;
  result_.error = "no schedule of this kernel is right";
}

}  // namespace

SessionBudget fit_sessions(double budget_ns, double sweep_ns, int sessions, int sweeps) {
  double total = budget_ns / std::max(sweep_ns, 1.0);  // sweeps that fit, over all sessions
  if (total >= static_cast<double>(sessions) * sweeps) return {sessions, sweeps};
  if (total >= sessions) return {sessions, static_cast<int>(total / sessions)};
  return {std::max(std::min(3, sessions), static_cast<int>(total)), 1};
}

void run_finals(Field& field, const Roles& roles, const std::vector<int>& finalists,
                const SearchSettings& settings, double end_s, SearchResult& result) {
  Finals(field, roles, settings, end_s, result).run(finalists);
}

}  // namespace beamline::search
