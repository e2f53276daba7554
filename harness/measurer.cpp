#include "harness/measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace beamline {
namespace {

using search::Checked;
using search::Compiled;
using search::SessionPlan;
using search::Timed;
using Result = search::Outcome;  // the search's; the unqualified one is the process pool's

// No candidate is worth waiting longer for than this many times the best.
constexpr double patience = 10, patience_slack_s = 2;
constexpr double layout_bytes_per_s = 200e6;  // at least
constexpr double session_slack_s = 5;
constexpr int session_tries = 3;

bool killed_runner(Result o) { return o == Result::Crashed || o == Result::Timeout; }

}  // namespace

struct ProcessMeasurer::Item {
  std::string id, opts, code_hash;
  LoadedCode code;
  double call_s = 0;
};

ProcessMeasurer::ProcessMeasurer(const ProgramKernel& kernel, int kernel_index, ProgramData& data,
                                 Pool& compilers, MeasurerOptions options)
    : kernel_(kernel),
      kernel_index_(kernel_index),
      data_(data),
      compilers_(compilers),
      options_(std::move(options)),
      runner_(options_.pus) {}

ProcessMeasurer::~ProcessMeasurer() = default;

ProcessMeasurer::Item& ProcessMeasurer::item(int program) {
  return *items_[static_cast<size_t>(program)];
}

std::optional<std::string> ProcessMeasurer::prepare() {
  auto buffers = data_.buffers(kernel_index_, 0);
  if (const auto* why = std::get_if<std::string>(&buffers)) return *why;
  return {};
}

std::vector<Compiled> ProcessMeasurer::compile(std::span<const search::Candidate> candidates) {
  std::vector<Compiled> results(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const search::Candidate& c = candidates[i];
    Frame frame = c.planted_source.empty()
                      ? to_frame(CompileRequest{
                            .ast = kernel_.ast, .opts = c.opts, .target = options_.target})
                      : to_frame(CompileIrRequest{
                            .ir = c.planted_source, .entry = "planted", .target = options_.target});
    compilers_.submit(
        std::move(frame), milliseconds(options_.timeout_s),
        [this, &results, &c, i](Outcome o) { results[i] = received(c, std::move(o)); });
  }
  compilers_.run();
  return results;
}

Compiled ProcessMeasurer::received(const search::Candidate& candidate, Outcome outcome) {
  Compiled c{.error = {},
             .opts = candidate.opts,
             .code_hash = {},
             .source_hash = {},
             .compile_ms = outcome.elapsed_ms};
  auto reply = outcome.ok() ? read_message<CompileReply>(outcome.reply) : std::nullopt;
  if (!reply) {
    c.outcome = outcome.kind == Outcome::Kind::Timeout ? Result::Timeout : Result::Crashed;
    c.error = "compiler: " + (outcome.ok() ? std::string("garbled answer") : outcome.error);
    return c;
  }
  if (!reply->toolchain.empty()) toolchain_ = reply->toolchain;
  c.outcome = outcome_of(reply->status);
  c.error = reply->error;
  if (c.outcome != Result::Ok) return c;
  bool planted = !candidate.planted_source.empty();
  if (!planted) c.opts = reply->opts;
  c.code_hash = reply->code_hash;
  c.source_hash = reply->source_hash;
  c.compile_ms = reply->lower_ms + reply->compile_ms;
  if (!planted && options_.quarantined)
    if (auto why = options_.quarantined(c.code_hash)) {
      c.outcome = Result::Rejected;
      c.error = "quarantined: " + *why;
      return c;
    }
  c.threads = reply->threads;
  c.program = static_cast<int>(items_.size());
  items_.push_back(std::make_unique<Item>(
      Item{fmt::format("p{}", c.program),
           c.opts,
           planted ? "" : c.code_hash,
           {std::move(reply->code), reply->entry_offset, reply->threads, std::move(reply->layouts)},
           0}));
  return c;
}

void ProcessMeasurer::use_input_set(int input_set) {
  if (input_set_ == input_set) return;
  auto buffers = data_.buffers(kernel_index_, input_set);
  if (const auto* why = std::get_if<std::string>(&buffers)) throw std::runtime_error(*why);
  runner_.use_buffers(std::move(std::get<0>(buffers)));
  input_set_ = input_set;
}

void ProcessMeasurer::recompute_reference() {
  data_.forget(kernel_index_);
  input_set_ = -1;
}

double ProcessMeasurer::call_deadline_s() const {
  if (fastest_call_s_ == 0) return options_.timeout_s;
  return std::min(options_.timeout_s, patience * fastest_call_s_ + patience_slack_s +
                                          kernel_.bytes / layout_bytes_per_s);
}

Checked ProcessMeasurer::check_one(Item& it) {
  auto a = runner_.check(it.id, it.code, call_deadline_s());
  Checked c{.outcome = a.outcome,
            .error = a.error,
            .call_ns = a.elapsed_ms * 1e6,
            .output_hash = a.reply.output_hash};
  if (a.outcome == Result::Ok) {
    it.call_s = a.elapsed_ms / 1000;
    if (fastest_call_s_ == 0 || it.call_s < fastest_call_s_) fastest_call_s_ = it.call_s;
    c.error_share = kernel_.rtol > 0 ? a.reply.max_err / kernel_.rtol : 0;
  }
  note_killer(it, a.outcome, a.error);
  return c;
}

std::vector<Checked> ProcessMeasurer::check(std::span<const int> programs, int input_set) {
  use_input_set(input_set);
  std::vector<Checked> results;
  for (int p : programs) results.push_back(check_one(item(p)));
  return results;
}

void ProcessMeasurer::note_killer(const Item& it, Result outcome, const std::string& error) {
  if (killed_runner(outcome) && options_.on_killer && !it.code_hash.empty())
    options_.on_killer(it.code_hash, fmt::format("{}: {}", search::outcome_name(outcome), error));
}

// A process that has not seen a program checks it before it times it. False: one failed, `timed`
// says so.
bool ProcessMeasurer::all_checked(const SessionPlan& plan, std::vector<Timed>& timed) {
  use_input_set(0);
  // A check that kills the process undoes the ones before it: those that failed are out, then once
  // more.
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    Item& it = item(plan.programs[i]);
    if (runner_.is_checked(it.id)) continue;
    Checked c = check_one(it);
    if (c.outcome == Result::Ok) continue;
    timed[i].outcome = c.outcome;
    timed[i].error = c.error;
    return false;
  }
  return true;
}

Answer<TimeReply> ProcessMeasurer::session(const std::vector<int>& programs, int sweeps,
                                           uint64_t seed) {
  TimeRequest request{.ids = {}, .sweeps = sweeps, .mode = options_.mode, .seed = seed};
  double expected_s = 0;
  for (int p : programs) {
    request.ids.push_back(item(p).id);
    expected_s += sweeps * 2 * item(p).call_s;
  }
  return runner_.time(request, patience * expected_s + session_slack_s);
}

std::vector<Timed> ProcessMeasurer::time(const SessionPlan& plan) {
  std::vector<Timed> timed(plan.programs.size());
  for (int attempt = 0;; ++attempt) {
    if (!all_checked(plan, timed)) return timed;
    Answer<TimeReply> a = session(plan.programs, plan.sweeps, plan.seed);
    if (a.outcome == Result::Ok && a.reply.contestants.size() == timed.size()) {
      for (size_t i = 0; i < timed.size(); ++i) {
        TimedContestant& c = a.reply.contestants[i];
        timed[i].outcome = outcome_of(c.status);
        timed[i].error = c.error;
        timed[i].ns = std::move(c.ns);
      }
      return timed;
    }
    std::vector<Timed> alone = find_culprit(plan, a);
    bool found = std::ranges::any_of(alone, [](const Timed& t) { return t.outcome != Result::Ok; });
    if (found) return alone;
    if (attempt + 1 < session_tries) continue;
    for (Timed& t : timed) {
      t.outcome = a.outcome == Result::Ok ? Result::Crashed : a.outcome;
      t.error =
          fmt::format("sessions of {} fail together, none fails alone: {}", timed.size(), a.error);
    }
    return timed;
  }
}

// Which of a broken session's programs broke it: each runs a session of its own.
std::vector<Timed> ProcessMeasurer::find_culprit(const SessionPlan& plan,
                                                 const Answer<TimeReply>& broken) {
  std::vector<Timed> timed(plan.programs.size());
  runner_.restart();
  if (plan.programs.size() == 1) {
    timed[0].outcome = broken.outcome == Result::Ok ? Result::Crashed : broken.outcome;
    timed[0].error = broken.error;
    note_killer(item(plan.programs[0]), timed[0].outcome, timed[0].error);
    return timed;
  }
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    SessionPlan one{.programs = {plan.programs[i]}, .sweeps = plan.sweeps, .seed = plan.seed};
    std::vector<Timed> single(1);
    if (all_checked(one, single)) {
      auto a = session(one.programs, one.sweeps, one.seed);
      if (a.outcome == Result::Ok) continue;
      single[0].outcome = a.outcome;
      single[0].error = a.error;
      note_killer(item(one.programs[0]), a.outcome, a.error);
    }
    timed[i] = single[0];
  }
  return timed;
}

void ProcessMeasurer::new_pass() { runner_.restart(); }

double ProcessMeasurer::seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace beamline
