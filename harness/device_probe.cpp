#include "harness/device_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "harness/messages.h"
#include "harness/probe_kernels.h"
#include "harness/process_pool.h"

namespace beamline {
namespace {

constexpr std::chrono::seconds patience{60};

// A runner with one large buffer, and what was compiled for it.
class ProbeRunner {
 public:
  ProbeRunner(const ProbeSettings& settings, int64_t buffer_bytes)
      : settings_(settings),
        buffer_bytes_(buffer_bytes),
        compiler_({.command = {helper_path("beamline-compile")}}),
        runner_({.command = {helper_path("beamline-runner")}}) {}

  void add(const std::string& id, const ProbeKernel& kernel) {
    const auto reply = ask<CompileReply>(
        compiler_,
        to_frame(CompileIrRequest{
            .ir = kernel.ir, .entry = "probe", .target = target_text(settings_.target)}),
        "compile " + id);
    programs_.push_back({id, reply.code, reply.entry_offset, kernel.threads});
    ready_ = false;
  }

  void new_process() {
    runner_.restart();
    ready_ = false;
  }

  TimeReply time(const std::vector<std::string>& ids, int sweeps, uint64_t seed) {
    if (!ready_) set_up();
    return ask<TimeReply>(
        runner_,
        to_frame(TimeRequest{.ids = ids, .sweeps = sweeps, .seed = seed, .unchecked = true}),
        "time " + ids[0]);
  }

 private:
  template <class Reply>
  Reply ask(Worker& worker, const Frame& frame, const std::string& what) {
    const Outcome o = worker.call(frame, patience);
    auto reply = o.ok() ? read_message<Reply>(o.reply) : std::nullopt;
    if (!reply || reply->status != "ok")
      throw std::runtime_error(fmt::format("probe: {}: {}", what,
                                           !o.ok() ? o.error
                                           : reply ? reply->error
                                                   : "garbled"));
    return std::move(*reply);
  }

  void set_up() {
    SetupRequest setup{.buffers = {}, .pus = settings_.pus};
    BufferSpec buffer{.dtype = "f32",
                      .elements = buffer_bytes_ / 4,
                      .role = "out",
                      .init = {},
                      .expected = {},
                      .expected_dtype = {}};
    setup.buffers.push_back(std::move(buffer));
    ask<Reply>(runner_, to_frame(setup), "buffers");
    for (const LoadRequest& p : programs_) ask<Reply>(runner_, to_frame(p), "load " + p.id);
    ready_ = true;
  }

  const ProbeSettings& settings_;
  int64_t buffer_bytes_;
  Worker compiler_, runner_;
  std::vector<LoadRequest> programs_;
  bool ready_ = false;
};

double fastest(const TimeReply& reply) {
  const std::vector<double>& ns = reply.contestants.at(0).ns;
  if (ns.empty()) throw std::runtime_error("probe: no sample: " + reply.contestants[0].error);
  return *std::ranges::min_element(ns);
}

constexpr int64_t smallest_buffer = int64_t{1} << 20;

}  // namespace

std::optional<DevicePeaks> probe_peaks(const ProbeSettings& settings) {
  const Target& t = settings.target;
  ProbeRunner runner(settings, std::max(smallest_buffer, settings.largest_footprint));
  bool stopped = false;
  auto measure = [&](const std::string& what, const ProbeKernel& k) {
    stopped |= settings.stop_requested && settings.stop_requested();
    if (stopped) return 1.0;
    if (settings.progress) settings.progress(what);
    runner.add(what, k);
    double best = 0;
    for (int s = 0; s < settings.sessions; ++s) {
      const double ns = fastest(runner.time({what}, settings.sweeps, static_cast<uint64_t>(s)));
      best = s == 0 ? ns : std::min(best, ns);
    }
    return std::max(k.flops, k.bytes) / best;
  };
  DevicePeaks p;
  p.threads = t.threads;
  p.gflops_1 = measure("multiply-adds, f32, one thread", fma_probe(t, DType::F32, 1));
  p.gflops = t.threads == 1 ? p.gflops_1
                            : measure(fmt::format("multiply-adds, f32, {} threads", t.threads),
                                      fma_probe(t, DType::F32, t.threads));
  p.gflops_f64 = measure("multiply-adds, f64", fma_probe(t, DType::F64, t.threads));
  // All threads may be less than one where there are fewer free cores than threads.
  p.gflops = std::max(p.gflops, p.gflops_1);
  for (int64_t bytes = 16 << 10; bytes <= settings.largest_footprint && !stopped; bytes *= 4) {
    FootprintRate rate{.bytes = static_cast<double>(bytes)};
    auto best = [&](const char* name, auto make) {
      double gbps =
          measure(fmt::format("{} {} KiB, one thread", name, bytes >> 10), make(t, bytes, 1));
      if (t.threads > 1)
        gbps = std::max(gbps,
                        measure(fmt::format("{} {} KiB, {} threads", name, bytes >> 10, t.threads),
                                make(t, bytes, t.threads)));
      return gbps;
    };
    rate.read_gbps = best("read", read_probe);
    rate.triad_gbps = best("triad", triad_probe);
    p.rates.push_back(rate);
  }
  return stopped ? std::nullopt : std::optional(p);
}

SelfComparison compare_with_self(const ProbeSettings& settings, int sessions, int processes) {
  // The stream is as long as what the memory figures of the protocol stand on: 16 MiB.
  const int64_t stream = std::min<int64_t>(int64_t{16} << 20, settings.largest_footprint);
  ProbeRunner runner(settings, std::max(smallest_buffer, stream));
  runner.add("compute", fma_probe(settings.target, DType::F32, 1));
  runner.add("memory", read_probe(settings.target, stream, 1));
  SelfComparison result;
  const int per_process = std::max(1, (sessions + processes - 1) / processes);
  for (int s = 0; s < sessions; ++s) {
    if (settings.stop_requested && settings.stop_requested()) break;
    if (s % per_process == 0) runner.new_process();
    if (settings.progress) settings.progress(fmt::format("session {} of {}", s + 1, sessions));
    for (auto* list : {&result.compute, &result.memory}) {
      const std::string id = list == &result.compute ? "compute" : "memory";
      const TimeReply reply =
          runner.time({id, id}, settings.sweeps, static_cast<uint64_t>(s) * 2 + 1);
      std::vector<double> best;
      for (const TimedContestant& c : reply.contestants)
        if (!c.ns.empty()) best.push_back(*std::ranges::min_element(c.ns));
      list->push_back(best.size() == 2 ? std::log(best[1] / best[0]) : std::nan(""));
      result.timer = reply.session.value("timer", "");
      result.timer_overhead_ns = reply.session.value("timer_overhead_ns", 0.0);
    }
  }
  return result;
}

}  // namespace beamline
