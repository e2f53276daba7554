// The strategies: who is proposed next.
#include <algorithm>
#include <map>
#include <set>

#include "search/guided_search.h"

namespace beamline::search {
namespace {

// The first level of legal actions, in a random order.
class FirstLevel final : public Proposer {
 public:
  std::vector<std::string> next(size_t room, const Standing& s) override {
    if (!listed_) {
      level_ = s.space.extensions("");
      s.field.shuffle(level_);
      listed_ = true;
    }
    std::vector<std::string> out;
    for (; done_ < level_.size() && out.size() < room; ++done_)
      if (!s.entry.seen(level_[done_])) out.push_back(level_[done_]);
    return out;
  }
  size_t left() const override { return level_.size() - done_; }
  bool patient() const override { return false; }

 private:
  std::vector<std::string> level_;
  size_t done_ = 0;
  bool listed_ = false;
};

// Neighbours of the best schedules so far, at most `width` of them at a time, the better ones more
// often. Unlike level by level, a find is built upon at once; the seeds (unoptimised, heuristic,
// stored) are there from the start, the space's other starts come first, and the best schedule on
// one thread always has a place, so that threads do not hide what helps each of them.
class Beam final : public Proposer {
 public:
  explicit Beam(int width) : width_(static_cast<size_t>(std::max(width, 1))) {}

  std::vector<std::string> next(size_t room, const Standing& s) override {
    if (!started_) {
      starts_ = s.space.starts();
      std::ranges::reverse(starts_);
      started_ = true;
    }
    std::vector<int> open = best(s.field);
    std::vector<std::string> out;
    std::set<std::string> drawn;
    for (; out.size() < room && !starts_.empty(); starts_.pop_back())
      if (!s.entry.seen(starts_.back()) && drawn.insert(starts_.back()).second)
        out.push_back(starts_.back());
    while (out.size() < room && !open.empty()) {
      // The k-th best with probability 2^-k.
      size_t k = 0;
      while (k + 1 < open.size() && (s.field.next_seed() & 1) != 0) ++k;
      std::vector<std::string>& untried = untried_of(open[k], s);
      while (!untried.empty() && (s.entry.seen(untried.back()) || drawn.contains(untried.back())))
        untried.pop_back();
      if (untried.empty()) {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(k));
        continue;
      }
      drawn.insert(untried.back());
      out.push_back(std::move(untried.back()));
      untried.pop_back();
    }
    return out;
  }

 private:
  std::vector<int> best(Field& field) const {
    std::vector<int> who;
    for (size_t i = 0; i < field.all.size(); ++i) {
      const Contestant& c = field.all[i];
      if (c.ok() && c.weight > 0 && !c.planted) who.push_back(static_cast<int>(i));
    }
    std::ranges::sort(who, [&](int a, int b) {
      const Contestant &x = field[a], &y = field[b];
      return x.score != y.score ? x.score < y.score : a < b;
    });
    // What is hopelessly slow takes the time of many to measure, and so do its neighbours.
    while (who.size() > 1 && field[who.back()].score > field[who.front()].score + hopeless)
      who.pop_back();
    auto single = std::ranges::find_if(who, [&](int c) { return field[c].threads == 1; });
    size_t place = static_cast<size_t>(single - who.begin());
    if (single != who.end() && place >= width_)
      std::rotate(who.begin() + static_cast<std::ptrdiff_t>(width_) - 1, single, single + 1);
    if (who.size() > width_) who.resize(width_);
    return who;
  }

  std::vector<std::string>& untried_of(int who, const Standing& s) {
    auto [it, is_new] = untried_.try_emplace(who);
    if (is_new) {
      const std::string& opts = s.field[who].opts;
      it->second = s.space.extensions(opts);
      std::vector<std::string> varied = s.space.variations(opts);
      it->second.insert(it->second.end(), varied.begin(), varied.end());
      s.field.shuffle(it->second);
    }
    return it->second;
  }

  static constexpr double hopeless = 2.3;  // of a score, the logarithm of a time: ten times it

  size_t width_;
  bool started_ = false;
  std::vector<std::string> starts_;                  // the last comes first
  std::map<int, std::vector<std::string>> untried_;  // by contestant
};

// Random walks from the unoptimised kernel: every legal sequence can be reached.
class RandomWalks final : public Proposer {
 public:
  std::vector<std::string> next(size_t room, const Standing& s) override {
    std::vector<std::string> out;
    std::set<std::string> drawn;
    for (int misses = 0; out.size() < room && misses < give_up;) {
      std::string opts;
      size_t length = 1 + s.field.next_seed() % longest;
      for (size_t i = 0; i < length; ++i) {
        const std::vector<std::string>& more = extensions(opts, s);
        if (more.empty()) break;
        opts = more[s.field.next_seed() % more.size()];
      }
      if (s.entry.seen(opts) || !drawn.insert(opts).second) {
        ++misses;
        continue;
      }
      out.push_back(opts);
    }
    return out;
  }
  bool patient() const override { return false; }

 private:
  static constexpr size_t longest = 5;
  static constexpr int give_up = 500;  // walks in a row that lead nowhere new

  const std::vector<std::string>& extensions(const std::string& opts, const Standing& s) {
    auto [it, is_new] = known_.try_emplace(opts);
    if (is_new) it->second = s.space.extensions(opts);
    return it->second;
  }
  std::map<std::string, std::vector<std::string>> known_;
};

// Every sequence, shorter ones first.
class Exhaustive final : public Proposer {
 public:
  std::vector<std::string> next(size_t room, const Standing& s) override {
    std::vector<std::string> out;
    while (out.size() < room) {
      if (at_ == level_.size()) {
        if (parent_ == parents_.size()) {
          if (grown_.empty()) break;
          parents_ = std::move(grown_);
          grown_.clear();
          parent_ = 0;
        }
        level_ = s.space.extensions(parents_[parent_++]);
        at_ = 0;
        continue;
      }
      std::string opts = level_[at_++];
      if (!named_.insert(opts).second) continue;
      grown_.push_back(opts);
      if (!s.entry.seen(opts)) out.push_back(std::move(opts));
    }
    return out;
  }
  bool patient() const override { return false; }

 private:
  std::vector<std::string> parents_{""}, level_, grown_;
  size_t parent_ = 0, at_ = 0;
  std::set<std::string> named_;
};

template <class P>
class Guide final : public Strategy {
 public:
  Guide(std::string_view name, P proposer) : name_(name), proposer_(std::move(proposer)) {}
  std::string_view name() const override { return name_; }
  SearchResult run(const SearchTask& task, Measurer& measurer, SearchObserver& observer) override {
    P proposer = proposer_;  // a search starts from nothing
    return run_guided(task, measurer, observer, proposer);
  }

 private:
  std::string_view name_;
  P proposer_;
};

constexpr std::string_view names[] = {"heuristic", "random", "beam", "exhaustive"};

}  // namespace

int strategy_rank(std::string_view name) {
  const auto* it = std::ranges::find(names, name);
  return it == std::end(names) ? -1 : static_cast<int>(it - std::begin(names));
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, int beam) {
  switch (strategy_rank(name)) {
    case 0: return std::make_unique<Guide<FirstLevel>>(names[0], FirstLevel());
    case 1: return std::make_unique<Guide<RandomWalks>>(names[1], RandomWalks());
    case 2: return std::make_unique<Guide<Beam>>(names[2], Beam(beam));
    case 3: return std::make_unique<Guide<Exhaustive>>(names[3], Exhaustive());
    default: return nullptr;
  }
}

}  // namespace beamline::search
