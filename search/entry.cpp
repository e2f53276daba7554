#include "search/entry.h"

#include <fmt/format.h>

#include <algorithm>

namespace beamline::search {
namespace {

// Under this share of the tolerance an error is rounding, whatever the unoptimised kernel has.
constexpr double plain_error = 0.02;
constexpr double mistrust_factor = 10;

bool simpler(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

}  // namespace

int Entry::find(const std::string& opts) const {
  auto it = by_text_.find(opts);
  return it == by_text_.end() ? -1 : it->second;
}

void Entry::recall(std::span<const KnownTrial> known, std::span<const std::string> but) {
  for (const KnownTrial& k : known) {
    field_.recall(k);
    ++compiled_;
    if (std::ranges::find(but, k.opts) != but.end()) continue;
    auto [it, is_new] = by_text_.try_emplace(k.opts, -1);
    if (!is_new || k.outcome != Outcome::Ok || !k.time_ns) continue;
    it->second = static_cast<int>(field_.all.size());
    if (!k.code_hash.empty()) by_code_.try_emplace(k.code_hash, it->second);
    Contestant& c = field_.all.emplace_back();
    c.opts = k.opts;
    c.code_hash = k.code_hash;
  }
}

std::vector<int> Entry::admit(std::span<const Candidate> candidates, bool beyond_limit) {
  std::vector<Candidate> fresh;
  for (const Candidate& c : candidates) {
    auto [it, is_new] = by_text_.try_emplace(c.opts, -1);
    bool asleep = !is_new && it->second >= 0 && field_[it->second].program < 0;
    if (!asleep && (!is_new || (full() && !beyond_limit))) {
      if (is_new) by_text_.erase(it);
      continue;
    }
    fresh.push_back(c);
    compiled_ += is_new;
  }
  std::vector<int> entered;
  if (fresh.empty()) return entered;
  std::vector<Compiled> compiled = field_.measurer.compile(fresh);
  for (size_t i = 0; i < fresh.size(); ++i)
    if (int c = enlist(fresh[i], compiled[i]); c >= 0) entered.push_back(c);
  check(entered);
  return entered;
}

int Entry::enlist(const Candidate& candidate, const Compiled& compiled) {
  Trial refused{.opts = compiled.opts.empty() ? candidate.opts : compiled.opts,
                .outcome = compiled.outcome,
                .stage = Stage::Search,
                .time_ns = {},
                .ratio_to_incumbent = {},
                .samples = {},
                .compile_ms = compiled.compile_ms,
                .code_hash = compiled.code_hash,
                .error = compiled.error};
  if (compiled.outcome != Outcome::Ok) {
    note_failure(compiled.outcome, compiled.error);
    field_.report(refused);
    return -1;
  }
  int own = by_text_[candidate.opts];
  bool wakes = own >= 0 && field_[own].program < 0;
  auto [it, is_new] =
      by_code_.try_emplace(compiled.code_hash, wakes ? own : static_cast<int>(field_.all.size()));
  if (!is_new) is_new = field_[it->second].program < 0;  // known, and here is its program
  by_text_[candidate.opts] = it->second;
  by_text_[refused.opts] = it->second;
  if (!is_new) {
    // One program, one candidate: the simpler text names it. Text that was reported already stays.
    Contestant& twin = field_[it->second];
    if (!twin.reported && simpler(refused.opts, twin.opts)) std::swap(twin.opts, refused.opts);
    refused.outcome = Outcome::Rejected;
    refused.error = fmt::format("duplicate code of \"{}\"", twin.opts);
    field_.report(refused);
    return -1;
  }
  if (it->second == static_cast<int>(field_.all.size())) field_.all.emplace_back();
  Contestant& c = field_[it->second];
  if (c.opts.empty()) c.opts = refused.opts;
  c.program = compiled.program;
  c.code_hash = compiled.code_hash;
  c.source_hash = compiled.source_hash;
  c.compile_ms = compiled.compile_ms;
  c.threads = compiled.threads;
  c.planted = !candidate.planted_source.empty();
  return it->second;
}

void Entry::note_failure(Outcome outcome, const std::string& error) {
  if (first_failure_.empty()) first_failure_ = fmt::format("{}: {}", outcome_name(outcome), error);
}

void Entry::check(std::vector<int>& who) {
  if (who.empty()) return;
  std::vector<int> programs;
  for (int c : who) programs.push_back(field_[c].program);
  std::vector<Checked> checked = field_.measurer.check(programs, 0);
  auto is = [](Outcome o) { return [o](const Checked& c) { return c.outcome == o; }; };
  reference_confirmed_ |= std::ranges::any_of(checked, is(Outcome::Ok));
  if (!reference_confirmed_ && !reference_recomputed_ &&
      std::ranges::any_of(checked, is(Outcome::WrongResult))) {
    // Everyone wrong: the reference itself is the suspect, before anything is recorded.
    reference_recomputed_ = true;
    field_.measurer.recompute_reference();
    checked = field_.measurer.check(programs, 0);
    reference_confirmed_ = std::ranges::any_of(checked, is(Outcome::Ok));
  }
  for (size_t i = 0; i < who.size(); ++i) {
    Contestant& c = field_[who[i]];
    c.call_ns = checked[i].call_ns;
    c.error_share = checked[i].error_share;
    if (checked[i].outcome != Outcome::Ok)
      field_.fail(who[i], checked[i].outcome, checked[i].error);
    if (c.ok() && c.opts.empty()) unoptimised_error_ = c.error_share;
  }
  double trusted = mistrust_factor * std::max(unoptimised_error_, plain_error);
  for (int c : who) {
    if (field_[c].ok() && unoptimised_error_ >= 0 && field_[c].error_share > trusted)
      field_.fail(c, Outcome::Mistrusted,
                  fmt::format("error {:.2g} of the tolerance, unoptimised {:.2g}",
                              field_[c].error_share, unoptimised_error_));
    if (field_[c].ok()) continue;
    note_failure(field_[c].outcome, field_[c].error);
    field_.report_race(c, -1);
  }
  std::erase_if(who, [&](int c) { return !field_[c].ok(); });
}

}  // namespace beamline::search
