#include "harness/runner.h"

#include <fmt/format.h>

#include "devices/cpu/topology.h"
#include "devices/environment.h"
#include "harness/serve.h"

namespace beamline {
namespace {

// Of layouts that nobody may ask for again.
constexpr size_t most_laid_bytes = size_t{1} << 30;

Reply refused(const std::string& why) { return {"launch_error", why, {}}; }

}  // namespace

Frame Runner::handle(const Frame& request) {
  if (const auto m = read_message<SetupRequest>(request)) return to_frame(setup(*m));
  if (const auto m = read_message<LoadRequest>(request)) return to_frame(load(*m));
  if (const auto m = read_message<UnloadRequest>(request)) return to_frame(unload(*m));
  if (const auto m = read_message<CheckRequest>(request)) return to_frame(check(*m));
  if (const auto m = read_message<TimeRequest>(request)) return to_frame(time(*m));
  if (const auto m = read_message<RunRequest>(request)) return to_frame(run(*m));
  return error_frame("unknown or malformed request: " + request.kind());
}

Reply Runner::setup(const SetupRequest& m) {
  if (launcher_ == nullptr) {
    std::vector<unsigned> pus = m.pus;
    if (!pus.empty()) {
      const BindReport bound = bind_process(pus);
      facts_["bound_cpu"] = bound.cpu;
      facts_["bound_memory"] = bound.memory;
      if (!bound.note.empty()) facts_["bind_note"] = bound.note;
      if (!bound.cpu) return refused(bound.note);
      // The main thread keeps to the first; helpers have one PU each.
      bind_thread(pus.front());
    } else {
      pus = read_topology().pus;
    }
    launcher_ = std::make_unique<Launcher>(pus);
    facts_["pus"] = pus;
    facts_["mxcsr"] = set_float_mode();
  }
  for (auto& [id, kernel] : kernels_) kernel.checked = false;
  laid_.forget();
  buffers_.reset();  // before the new ones: memory may be short
  buffers_ = std::make_unique<RunnerBuffers>(m);
  facts_["huge_pages"] = m.huge_pages ? "madvise" : "never";
  facts_["buffers"] = buffers_->facts();
  return {"ok", "", facts_};
}

Reply Runner::load(const LoadRequest& m) {
  if (m.threads < 1 || m.threads > 65'536) return refused(fmt::format("{} threads", m.threads));
  auto mapped = CodeBlob::map(m.code, m.entry_offset);
  if (const auto* why = std::get_if<std::string>(&mapped)) return refused(*why);
  kernels_.insert_or_assign(
      m.id, Kernel{std::move(std::get<CodeBlob>(mapped)), m.threads, m.layouts, false});
  return {"ok", "", {}};
}

Reply Runner::unload(const UnloadRequest& m) {
  return kernels_.erase(m.id) > 0 ? Reply{"ok", "", {}} : refused("no kernel " + m.id);
}

std::string Runner::missing(const std::string& id) const {
  if (buffers_ == nullptr) return "no buffers are set up";
  return kernels_.count(id) == 0 ? "no kernel " + id : "";
}

std::vector<void*> Runner::pointers(const Kernel& k) {
  return laid_.pointers(k.layouts, buffers_->pointers());
}

void Runner::call(const Kernel& k) {
  set_float_mode();
  if (laid_.bytes() > most_laid_bytes) laid_.forget();
  const std::vector<void*> buffers = pointers(k);
  launcher_->run(k.blob.entry(), buffers.data(), k.threads);
}

CheckReply Runner::check(const CheckRequest& m) {
  CheckReply reply;
  if (reply.error = missing(m.id); !reply.error.empty()) {
    reply.status = "launch_error";
    return reply;
  }
  Kernel& k = kernels_.at(m.id);
  k.checked = false;
  buffers_->reset(/*poison_outputs=*/true);
  call(k);
  reply = buffers_->check(m.mistrust_above);
  k.checked = reply.status == "ok" || reply.status == "mistrusted";
  return reply;
}

TimeReply Runner::time(const TimeRequest& m) {
  TimeReply reply;
  const auto refuse = [&](const std::string& why) {
    reply.status = "launch_error";
    reply.error = why;
    return reply;
  };
  if (m.mode != "warm" && m.mode != "cold") return refuse("unknown mode " + m.mode);
  if (m.sweeps < 1 || m.sweeps > 1'000'000) return refuse(fmt::format("{} sweeps", m.sweeps));
  std::vector<Contestant> contestants;
  std::vector<std::vector<void*>> own;
  if (laid_.bytes() > most_laid_bytes) laid_.forget();
  for (const std::string& id : m.ids) {
    if (const std::string why = missing(id); !why.empty()) return refuse(why);
    const Kernel& k = kernels_.at(id);
    if (!k.checked && !m.unchecked) return refuse("kernel " + id + " has not passed a check");
    own.push_back(pointers(k));
    contestants.push_back({k.blob.entry(), k.threads, own.back().data()});
  }
  if (timer_ == nullptr) timer_ = std::make_unique<Timer>();
  SessionPlan plan;
  plan.sweeps = m.sweeps;
  plan.cold = m.mode == "cold";
  plan.min_batch_ns = m.min_batch_ns;
  plan.kill_above_ns = m.kill_factor * m.limit_ns;
  plan.kill_after = m.kill_after;
  plan.floor_ns = m.floor_ns;
  plan.seed = m.seed;
  buffers_->reset(/*poison_outputs=*/false);
  const nlohmann::json load = read_load();
  Spans spans = buffers_->spans();
  for (const auto& laid : laid_.spans()) spans.push_back(laid);
  const SessionResult r =
      run_session(*timer_, *launcher_, contestants, buffers_->pointers().data(), spans, plan);
  reply.status = "ok";
  for (size_t i = 0; i < m.ids.size(); i++) {
    const ContestantSamples& s = r.contestants[i];
    reply.contestants.push_back({m.ids[i], s.refused.empty() ? "ok" : "mistrusted", s.refused, s.ns,
                                 s.positions, s.calls_per_sample, s.killed});
  }
  reply.session = {{"timer", timer_->kind()},
                   {"timer_overhead_ns", timer_->overhead_ns()},
                   {"canary_before_ns", r.canary_before_ns},
                   {"canary_after_ns", r.canary_after_ns},
                   {"wall_ns", r.wall_ns},
                   {"cpu_ns", r.cpu_ns},
                   {"voluntary_switches", r.voluntary_switches},
                   {"involuntary_switches", r.involuntary_switches},
                   {"minor_faults", r.minor_faults},
                   {"major_faults", r.major_faults},
                   {"load_before", load},
                   {"load_after", read_load()},
                   {"mode", m.mode},
                   {"seed", m.seed}};
  // A candidate may trespass only now and then; the session is then worth nothing.
  if (const std::string where = buffers_->trespass(); !where.empty()) {
    reply.status = "wrong_result";
    reply.error = where;
  }
  return reply;
}

RunReply Runner::run(const RunRequest& m) {
  RunReply reply;
  if (reply.error = missing(m.id); !reply.error.empty()) {
    reply.status = "launch_error";
    return reply;
  }
  buffers_->reset(/*poison_outputs=*/false);
  call(kernels_.at(m.id));
  reply.error = buffers_->trespass();
  reply.status = reply.error.empty() ? "ok" : "wrong_result";
  if (reply.error.empty()) reply.outputs = buffers_->outputs();
  return reply;
}

}  // namespace beamline
