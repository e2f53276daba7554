#include "harness/runner_session.h"

#include <fmt/format.h>

#include <stdexcept>

namespace beamline {
namespace {

constexpr double load_deadline_s = 30;
constexpr double setup_base_s = 60, setup_bytes_per_s = 50e6;

}  // namespace

search::Outcome outcome_of(const std::string& status) {
  for (int i = 0; i < static_cast<int>(search::Outcome::Count); ++i)
    if (auto o = static_cast<search::Outcome>(i); status == search::outcome_name(o)) return o;
  return search::Outcome::Crashed;
}

RunnerSession::RunnerSession(std::vector<unsigned> pus)
    : worker_({.command = {helper_path("beamline-runner")}}), pus_(std::move(pus)) {}

void RunnerSession::use_buffers(std::vector<BufferSpec> buffers) {
  buffers_ = std::move(buffers);
  buffers_sent_ = false;
  checked_.clear();
}

void RunnerSession::restart() {
  worker_.restart();
  buffers_sent_ = false;
  loaded_.clear();
  checked_.clear();
}

bool RunnerSession::is_checked(const std::string& id) const {
  return worker_.pid() >= 0 && buffers_sent_ && checked_.contains(id);
}

template <class Reply>
Answer<Reply> RunnerSession::ask(const Frame& frame, double deadline_s) {
  Outcome o = worker_.call(frame, milliseconds(deadline_s));
  Answer<Reply> a{.error = {}, .reply = {}, .elapsed_ms = o.elapsed_ms};
  if (o.ok()) {
    if (auto reply = read_message<Reply>(o.reply)) {
      a.reply = std::move(*reply);
      a.outcome = outcome_of(a.reply.status);
      a.error = a.reply.error;
      return a;
    }
    a.outcome = search::Outcome::Crashed;
    a.error = "garbled answer";
  } else {
    a.outcome =
        o.kind == Outcome::Kind::Timeout ? search::Outcome::Timeout : search::Outcome::Crashed;
    a.error = o.error;
  }
  restart();
  return a;
}

void RunnerSession::ready() {
  if (worker_.pid() < 0) restart();
  if (buffers_sent_) return;
  double bytes = 0;
  for (const BufferSpec& b : buffers_) bytes += static_cast<double>(b.elements) * 8;
  auto a = ask<Reply>(to_frame(SetupRequest{.buffers = buffers_, .pus = pus_}),
                      setup_base_s + bytes / setup_bytes_per_s);
  if (a.outcome != search::Outcome::Ok)
    throw std::runtime_error(fmt::format("cannot set up the buffers: {}", a.error));
  buffers_sent_ = true;
  checked_.clear();
}

Answer<Reply> RunnerSession::load(const std::string& id, const LoadedCode& code) {
  ready();
  if (loaded_.contains(id)) return {};
  auto a = ask<Reply>(
      to_frame(LoadRequest{id, code.code, code.entry_offset, code.threads, code.layouts}),
      load_deadline_s);
  if (a.outcome == search::Outcome::Ok) loaded_.insert(id);
  return a;
}

Answer<CheckReply> RunnerSession::check(const std::string& id, const LoadedCode& code,
                                        double deadline_s) {
  if (auto a = load(id, code); a.outcome != search::Outcome::Ok)
    return {.outcome = a.outcome, .error = a.error, .reply = {}};
  auto a = ask<CheckReply>(to_frame(CheckRequest{id, 0}), deadline_s);
  if (a.outcome == search::Outcome::Ok) checked_.insert(id);
  return a;
}

Answer<TimeReply> RunnerSession::time(const TimeRequest& request, double deadline_s) {
  ready();
  return ask<TimeReply>(to_frame(request), deadline_s);
}

}  // namespace beamline
