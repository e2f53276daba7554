#include "devices/cpu/sampler.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <fmt/format.h>

namespace beamline {
namespace {

constexpr int kMaxCalls = 1 << 20;

void flush(const Spans& spans) {
#if defined(__x86_64__)
  for (const auto& [address, bytes] : spans) {
    const char* p = static_cast<const char*>(address);
    for (size_t i = 0; i < bytes; i += 64) _mm_clflush(p + i);
  }
  _mm_mfence();
#else
  (void)spans;
#endif
}

// A chain of dependent multiply-adds: its time follows the clock of the core and little else.
double canary_ns(const Timer& timer) {
  double best = 0;
  for (int round = 0; round < 5; round++) {
    double x = 1.0;
    const uint64_t start = timer.now();
    for (int i = 0; i < 10'000; i++) {
      x = x * 0.999999 + 0.000001;
      asm volatile("" : "+x"(x));
    }
    const double ns = timer.ns(timer.now() - start);
    best = round == 0 ? ns : std::min(best, ns);
  }
  return best;
}

class Session {
 public:
  Session(const Timer& timer, Launcher& launcher, void* const* buffers, const Spans& spans,
          const SessionPlan& plan)
      : timer_(timer), launcher_(launcher), buffers_(buffers), spans_(spans), plan_(plan) {}

  void call(const Contestant& c) {
    launcher_.run(c.kernel, c.buffers != nullptr ? c.buffers : buffers_, c.threads);
  }

  // One sample: ns per call of a batch of `calls`.
  double warm(const Contestant& c, int calls) {
    call(c);
    const uint64_t start = timer_.now();
    for (int i = 0; i < calls; i++) call(c);
    return timer_.ns(timer_.now() - start) / calls;
  }

  // A cold batch times each call alone: the flush between them is not the kernel's.
  double cold(const Contestant& c, int calls) {
    double sum = 0;
    for (int i = 0; i < calls; i++) {
      flush(spans_);
      const uint64_t start = timer_.now();
      call(c);
      sum += timer_.ns(timer_.now() - start) - timer_.overhead_ns();
    }
    return sum / calls;
  }

  double sample(const Contestant& c, int calls) {
    return plan_.cold ? cold(c, calls) : warm(c, calls);
  }

  // The smallest power of two of calls that lasts long enough; never more than one call once one
  // does.
  int find_calls(const Contestant& c, std::string& refused) {
    for (int calls = 1; calls <= kMaxCalls; calls *= 2) {
      if (sample(c, calls) * calls >= plan_.min_batch_ns) return calls;
    }
    refused = fmt::format("{} calls last less than {} ns: below the resolution", kMaxCalls,
                          plan_.min_batch_ns);
    return 0;
  }

  // Takes one sample of c, longer if the batch turns out too short.
  void take(const Contestant& c, ContestantSamples& out, int position) {
    double ns = sample(c, out.calls_per_sample);
    while (ns * out.calls_per_sample < plan_.min_batch_ns && out.calls_per_sample < kMaxCalls) {
      out.calls_per_sample *= 2;
      ns = sample(c, out.calls_per_sample);
    }
    if (!std::isfinite(ns) || ns <= 0 || ns < plan_.floor_ns) {
      out.refused = fmt::format("{} ns is below what is possible ({} ns)", ns, plan_.floor_ns);
      return;
    }
    out.ns.push_back(ns);
    out.positions.push_back(position);
    const double best = *std::min_element(out.ns.begin(), out.ns.end());
    out.killed = plan_.kill_above_ns > 0 && best > plan_.kill_above_ns &&
                 static_cast<int>(out.ns.size()) >= plan_.kill_after;
  }

 private:
  const Timer& timer_;
  Launcher& launcher_;
  void* const* buffers_;
  const Spans& spans_;
  const SessionPlan& plan_;
};

}  // namespace

SessionResult run_session(const Timer& timer, Launcher& launcher,
                          const std::vector<Contestant>& contestants, void* const* buffers,
                          const Spans& spans, const SessionPlan& plan) {
  SessionResult result;
  result.contestants.resize(contestants.size());
  std::vector<ContestantSamples>& all = result.contestants;
  Session session(timer, launcher, buffers, spans, plan);
  set_float_mode();
  for (size_t i = 0; i < contestants.size(); i++) {
    all[i].calls_per_sample = std::max(1, session.find_calls(contestants[i], all[i].refused));
  }

  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  timespec cpu_before{}, cpu_after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_before);
  const uint64_t start = timer.now();
  result.canary_before_ns = canary_ns(timer);

  std::mt19937_64 random(plan.seed);
  std::vector<size_t> order(contestants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int sweep = 0; sweep < plan.sweeps; sweep++) {
    // Fisher-Yates by hand: std::shuffle may differ between libraries, and orders are recorded by
    // seed.
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random() % i]);
    for (size_t position = 0; position < order.size(); position++) {
      ContestantSamples& s = all[order[position]];
      if (s.killed || !s.refused.empty()) continue;
      session.take(contestants[order[position]], s, static_cast<int>(position));
    }
  }

  result.canary_after_ns = canary_ns(timer);
  result.wall_ns = timer.ns(timer.now() - start);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_after);
  getrusage(RUSAGE_SELF, &after);
  result.cpu_ns = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) * 1e9 +
                  static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec);
  result.voluntary_switches = after.ru_nvcsw - before.ru_nvcsw;
  result.involuntary_switches = after.ru_nivcsw - before.ru_nivcsw;
  result.minor_faults = after.ru_minflt - before.ru_minflt;
  result.major_faults = after.ru_majflt - before.ru_majflt;
  return result;
}

}  // namespace beamline
