#include "search/field.h"

#include <algorithm>
#include <cmath>

namespace beamline::search {

std::string_view stage_name(Stage s) {
  switch (s) {
    case Stage::Search: return "search";
    case Stage::Select: return "select";
    case Stage::Confirm: break;
  }
  return "confirm";
}

double fastest(std::span<const double> ns) {
  double best = 0;
  for (double v : ns)
    if (std::isfinite(v) && v > 0 && (best == 0 || v < best)) best = v;
  return best;
}

Field::Field(Measurer& m, SearchObserver& o, uint64_t seed)
    : measurer(m), observer(o), random_(seed) {}

std::vector<std::vector<double>> Field::session(std::span<const int> who, int sweeps) {
  std::vector<std::vector<double>> samples(who.size());
  ++session_;
  for (;;) {
    SessionPlan plan{.programs = {}, .sweeps = sweeps, .seed = next_seed()};
    std::vector<size_t> places;
    for (size_t i = 0; i < who.size(); ++i) {
      const Contestant& c = (*this)[who[i]];
      if (!c.ok()) continue;
      plan.programs.push_back(c.program);
      places.push_back(i);
    }
    if (places.empty()) return samples;
    std::vector<Timed> timed = measurer.time(plan);
    bool again = false;
    for (size_t k = 0; k < places.size(); ++k) {
      if (timed[k].outcome == Outcome::Ok) continue;
      fail(who[places[k]], timed[k].outcome, timed[k].error);
      again = true;
    }
    if (again) continue;  // one contestant fewer: this ends
    for (size_t k = 0; k < places.size(); ++k) samples[places[k]] = std::move(timed[k].ns);
    return samples;
  }
}

void Field::fail(int who, Outcome outcome, std::string error) {
  Contestant& c = (*this)[who];
  c.outcome = outcome;
  c.error = std::move(error);
}

void Field::report(const Trial& trial) {
  if (trial.stage == Stage::Search) {
    if (recalled_.contains(trial.opts)) return;
    ++counts_[static_cast<size_t>(trial.outcome)];
  }
  observer.on_trial(trial);
}

void Field::recall(const KnownTrial& known) {
  if (recalled_.insert(known.opts).second) ++counts_[static_cast<size_t>(known.outcome)];
}

void Field::report_race(int who, int incumbent) {
  Contestant& c = (*this)[who];
  Trial t{.opts = c.opts,
          .outcome = c.outcome,
          .stage = Stage::Search,
          .time_ns = {},
          .ratio_to_incumbent = {},
          .samples = c.samples,
          .compile_ms = c.compile_ms,
          .code_hash = c.code_hash,
          .error = c.error};
  if (c.ok() && c.best_ns > 0) t.time_ns = c.best_ns;
  if (t.time_ns && incumbent >= 0)
    t.ratio_to_incumbent = std::exp(c.score - (*this)[incumbent].score);
  // Counted by what it ended as: one that failed after it was told as Ok changes its count.
  if (c.reported && !recalled_.contains(c.opts)) --counts_[static_cast<size_t>(c.told)];
  c.reported = true;
  c.told = c.outcome;
  report(t);
}

}  // namespace beamline::search
