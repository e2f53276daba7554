#include "search/race.h"

#include <algorithm>
#include <cmath>

namespace beamline::search {
namespace {

constexpr double kill_first = 2.0;         // wrong kills at 2 samples: 0.6 % under ambient load
constexpr double kill_later = 1.5;         // from 5 samples on
constexpr double close_ratio = 1.05;       // of the leader: never cut
constexpr double far_ratio = 1.25;         // of the leader after rung 0: not raced further
constexpr int crowd = 4;                   // finalists' worth that is raced further
constexpr double anchor_weight = 20;       // sweeps: more do not make an anchor surer
constexpr double hopeless_ratio = 10;      // by the time of the check alone
constexpr double hopeless_slack_ns = 1e6;  // what a cold call may cost more

}  // namespace

Race::Race(Field& field, const SearchSettings& settings, std::vector<int> always,
           std::function<bool()> out_of_time)
    : field_(field),
      settings_(settings),
      always_(std::move(always)),
      out_of_time_(std::move(out_of_time)) {}

bool Race::is_always(int who) const {
  return who == incumbent_ || std::ranges::find(always_, who) != always_.end();
}

void Race::leave(int who) { std::erase(racing_, who); }

void Race::enter(const std::vector<int>& fresh) {
  std::vector<int> timed;
  double best_call = 0;
  if (incumbent_ >= 0) best_call = field_[incumbent_].call_ns;
  for (int who : fresh) {
    Contestant& c = field_[who];
    if (!c.ok()) continue;
    if (best_call > 0 && c.call_ns > hopeless_ratio * best_call + hopeless_slack_ns &&
        !is_always(who)) {
      c.best_ns = c.call_ns;
      c.score = std::log(c.call_ns / best_call);
      field_.report_race(who, -1);
      continue;
    }
    racing_.push_back(who);
    timed.push_back(who);
  }
  batches(timed, 2, kill_first);
}

void Race::batches(const std::vector<int>& who, int sweeps, double kill) {
  size_t room = static_cast<size_t>(settings_.batch) - std::min<size_t>(always_.size() + 1, 3);
  for (size_t i = 0; i < who.size(); i += room) {
    std::vector<int> part(
        who.begin() + static_cast<std::ptrdiff_t>(i),
        who.begin() + static_cast<std::ptrdiff_t>(std::min(who.size(), i + room)));
    if (i > 0 && (out_of_time_() || field_.observer.stop_requested())) return;
    batch(std::move(part), sweeps, kill);
  }
}

void Race::batch(std::vector<int> who, int sweeps, double kill) {
  auto add = [&](int c) {
    if (c >= 0 && field_[c].ok() && std::ranges::find(who, c) == who.end()) who.push_back(c);
  };
  add(incumbent_);
  for (int c : always_) add(c);
  rate(who, field_.session(who, sweeps));
  for (int c : who) {
    const Contestant& x = field_[c];
    double ratio = incumbent_ < 0 ? 1 : std::exp(x.score - field_[incumbent_].score);
    bool out = x.weight > 0 && ratio > kill && !is_always(c);
    if (x.ok() && !out) {
      // Told now, so that a run that is killed knows it when it is resumed.
      if (!x.reported && x.weight > 0) field_.report_race(c, incumbent_);
      continue;
    }
    // The incumbent or an always-member can fail here too: then it is no candidate any more.
    if (std::ranges::find(racing_, c) == racing_.end()) continue;
    leave(c);
    field_.report_race(c, x.ok() ? incumbent_ : -1);
  }
}

void Race::rate(const std::vector<int>& who, const std::vector<std::vector<double>>& samples) {
  // The level of this batch is what those known from earlier ones agree on, so that nobody's lucky
  // first samples become the measure of all that follows.
  auto usable = [&](size_t i) { return field_[who[i]].ok() && fastest(samples[i]) > 0; };
  if (incumbent_ >= 0 && !field_[incumbent_].ok()) incumbent_ = -1;
  double level = 0, weight = 0, first = 0;
  bool any = false;
  for (size_t i = 0; i < who.size(); ++i) {
    if (!usable(i)) continue;
    const Contestant& c = field_[who[i]];
    double ln_ns = std::log(fastest(samples[i]));
    if (!any) first = ln_ns;
    any = true;
    double w = std::min(c.weight, anchor_weight);
    level += w * (ln_ns - c.score);
    weight += w;
  }
  if (!any) return;
  level = weight > 0 ? level / weight : first;
  for (size_t i = 0; i < who.size(); ++i) {
    if (!usable(i)) continue;
    Contestant& c = field_[who[i]];
    double ns = fastest(samples[i]);
    auto sweeps = static_cast<double>(samples[i].size());
    double seen = std::log(ns) - level;
    c.score = (c.score * c.weight + seen * sweeps) / (c.weight + sweeps);
    c.weight += sweeps;
    if (c.best_ns == 0 || ns < c.best_ns) c.best_ns = ns;
    for (size_t k = 0; k < samples[i].size(); ++k)
      c.samples.push_back({.session = field_.last_session(),
                           .sweep = static_cast<int64_t>(k),
                           .ns = samples[i][k]});
  }
  for (size_t i = 0; i < who.size(); ++i) {
    if (!usable(i)) continue;
    if (incumbent_ < 0 || field_[who[i]].score < field_[incumbent_].score) incumbent_ = who[i];
  }
}

std::vector<int> Race::finish() {
  auto by_score = [&](int a, int b) {
    const Contestant &x = field_[a], &y = field_[b];
    if (x.score != y.score) return x.score < y.score;
    return x.opts.size() != y.opts.size() ? x.opts.size() < y.opts.size() : x.opts < y.opts;
  };
  auto sort_racing = [&] {
    // Nobody is judged by a session that never happened.
    std::erase_if(racing_, [&](int c) {
      const Contestant& x = field_[c];
      bool gone = !x.ok() || x.weight == 0;
      if (gone) field_.report_race(c, -1);
      return gone;
    });
    std::ranges::sort(racing_, by_score);
  };
  sort_racing();
  auto few = static_cast<size_t>(settings_.finalists);
  for (size_t i = racing_.size(); i-- > few;) {
    double ratio = std::exp(field_[racing_[i]].score - field_[racing_[0]].score);
    if ((i >= crowd * few || ratio > far_ratio) && !is_always(racing_[i])) leave(racing_[i]);
  }
  for (int sweeps : {2, 4, 8}) {
    if (racing_.size() <= few || out_of_time_() || field_.observer.stop_requested()) break;
    size_t keep = std::max(few, (racing_.size() + 1) / 2);
    double leader = field_[racing_[0]].score;
    std::vector<int> rest(racing_.begin() + static_cast<std::ptrdiff_t>(keep), racing_.end());
    for (int c : rest) {
      if (is_always(c) || field_[c].score <= leader + std::log(close_ratio)) continue;
      leave(c);
      field_.report_race(c, incumbent_);
    }
    std::vector<int> order = racing_;
    field_.shuffle(order);
    field_.observer.on_progress({.phase = "race",
                                 .done = static_cast<size_t>(sweeps),
                                 .total = order.size(),
                                 .best_ns = field_[incumbent_].best_ns,
                                 .best_opts = field_[incumbent_].opts});
    batches(order, sweeps, sweeps >= 4 ? kill_later : kill_first);
    sort_racing();
  }
  for (int c : racing_) field_.report_race(c, incumbent_);
  return racing_;
}

}  // namespace beamline::search
