#include "tests/bench/peer_race.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "devices/cpu/topology.h"
#include "search/stats/robust.h"
#include "tests/bench/kernel_lab.h"
#include "tests/bench/network_run.h"
#include "tests/bench/openblas.h"
#include "tests/bench/tune_run.h"

namespace beamline::bench {
namespace {

struct Contender {
  std::string kind, name;
  std::function<void(int64_t)> call;
  int threads = 1;
  bool reference = false;  // code a library calls its reference
};

struct Tensors {
  float* out;
  float* in[3];
  size_t count;  // of results
};

Tensors tensors_of(const Network& n, const Buffers& buffers) {
  const size_t out = n.outputs.at(0);
  Tensors t{buffers.floats(out), {}, static_cast<size_t>(n.buffers[out].elements)};
  for (size_t i = 0; i < 3 && i < n.buffers.size() && i < out; i++) t.in[i] = buffers.floats(i);
  return t;
}

void add_library(std::vector<Contender>& list, const Case& c, const Tensors& t,
                 const std::string& library) {
  if (library == "openblas") {
    if (c.kind == Case::Kind::Product)
      list.push_back({library, openblas_core(), [c, t](int64_t) {
                        openblas_product(c.m, c.n, c.k, c.ta, c.tb, t.out, t.in[0], t.in[1]);
                      }});
    return;
  }
  const auto add = [&](DnnlRun r) {
    list.push_back({library, r.name, [run = std::move(r.run)](int64_t) { run(); }, 1, r.reference});
  };
  const int64_t cells = c.rows * c.columns;
  switch (c.kind) {
    case Case::Kind::Product:
      add(dnnl_matmul(c.m, c.n, c.k, c.ta, c.tb, t.out, t.in[0], t.in[1]));
      break;
    case Case::Kind::Convolution:
      for (DnnlRun& r : dnnl_conv(c.conv, t.out, t.in[0], t.in[1])) add(std::move(r));
      break;
    case Case::Kind::Memory:
      switch (c.op) {
        case HandOp::Add: add(dnnl_add(cells, t.out, t.in[0], t.in[1])); break;
        case HandOp::Gelu: add(dnnl_gelu(cells, t.out, t.in[0])); break;
        case HandOp::Softmax: add(dnnl_softmax(c.rows, c.columns, t.out, t.in[0])); break;
        case HandOp::LayerNorm:
          add(dnnl_layer_norm(c.rows, c.columns, 1e-5f, t.out, t.in[0], t.in[1], t.in[2]));
          break;
        case HandOp::Transpose: add(dnnl_transpose(c.rows, c.columns, t.out, t.in[0])); break;
        case HandOp::MaxPool:
          add(dnnl_max_pool(c.rows / c.columns, c.columns, c.columns, t.out, t.in[0]));
          break;
        case HandOp::RowSum: add(dnnl_sum(c.rows, c.columns, false, t.out, t.in[0])); break;
        case HandOp::ColumnSum: add(dnnl_sum(c.rows, c.columns, true, t.out, t.in[0])); break;
      }
  }
}

void add_hand(std::vector<Contender>& list, const Case& c, const Tensors& t) {
  if (c.kind != Case::Kind::Memory) return;
  HandArgs args;
  args.out = t.out, args.rows = c.rows, args.columns = c.columns;
  for (int i = 0; i < 3; i++) args.in[i] = t.in[i];
  for (const HandVariant& v : hand_variants(c.op))
    list.push_back({"hand", v.name, [args, run = v.run](int64_t) { run(args); }});
}

std::vector<std::string> tuned_opts(const Case& c, const Network& network,
                                    const RaceSettings& settings) {
  const double budget = settings.tuning.budget_s * static_cast<double>(network.kernels.size());
  const TuneRun run = tune(settings.tuning, c.toml, budget, settings.threads);
  std::vector<std::string> out;
  for (const Kernel& k : network.kernels) {
    const auto at = std::ranges::find(run.kernels, k.key, &TunedKernel::key);
    if (at == run.kernels.end() || at->status != "tuned")
      throw std::runtime_error(fmt::format("beamline tune gave {}",
                                           at == run.kernels.end() ? "no " + k.name : at->status));
    out.push_back(at->opts);
  }
  return out;
}

// Everybody computes the same (the anchor nothing): compared with the first of the list.
void verify(const Case& c, const Tensors& t, const std::vector<Contender>& list,
            const std::vector<KernelFn>& entries, Launcher& launcher) {
  std::vector<float> want;
  for (size_t i = 0; i < list.size(); i++) {
    if (list[i].kind == "peak") continue;
    std::fill(t.out, t.out + t.count, std::numeric_limits<float>::quiet_NaN());
    launcher.run(entries[i], nullptr, list[i].threads);
    if (want.empty()) want.assign(t.out, t.out + t.count);
    for (size_t e = 0; e < t.count; e++) {
      // Of products of multiples of 1/64 every sum is exact, in any order.
      const float bound = c.exact() ? 0 : 1e-5f * (1 + std::fabs(want[e]));
      if (!(std::fabs(want[e] - t.out[e]) <= bound))
        throw std::runtime_error(fmt::format("element {}: {} {} has {}, {} {} has {}", e,
                                             list[i].kind, list[i].name, t.out[e], list[0].kind,
                                             list[0].name, want[e]));
    }
  }
}

struct Lengths {
  int sessions = 15, sweeps = 10;
};
// Ten sweeps where they fit; at least five sessions, of two sweeps when calls are long.
Lengths lengths(double sweep_ns, double seconds, int most_sessions) {
  const double sweeps = seconds * 1e9 / (2 * sweep_ns);  // each with an untimed call
  Lengths l;
  l.sweeps = static_cast<int>(std::clamp(sweeps / 10, 2.0, 10.0));
  l.sessions = static_cast<int>(
      std::clamp(sweeps / l.sweeps, std::min(5.0, 1.0 * most_sessions), 1.0 * most_sessions));
  return l;
}

std::vector<PeerEntry> timed(const Case& c, const Tensors& t, std::vector<Contender> list,
                             const Buffers& buffers, double seconds, int most_sessions) {
  if (list.empty()) return {};
  std::vector<KernelFn> entries;
  std::vector<Racer> racers;
  for (size_t i = 0; i < list.size(); i++) {
    entries.push_back(bind_call(i, list[i].call));
    racers.push_back({list[i].name, entries[i], list[i].threads});
  }
  double sweep_ns = 0;
  {
    Launcher launcher(read_topology().pus);
    const OnFirstPu here;
    const Timer timer;
    verify(c, t, list, entries, launcher);
    for (const Racer& r : racers) {
      const uint64_t start = timer.now();
      launcher.run(r.call, nullptr, r.threads);
      sweep_ns += std::max(20e3, timer.ns(timer.now() - start));
    }
  }
  const Lengths l = lengths(sweep_ns, seconds, most_sessions);
  const RaceResult result = race(racers, buffers, l.sessions, l.sweeps);
  std::vector<PeerEntry> out;
  for (size_t i = 0; i < list.size(); i++)
    out.push_back({list[i].kind, list[i].name, result.ns[i], result.best[i]});
  return out;
}

// Reference code is no competitor for what a library is made for.
std::string crippled(const Case& c, const std::vector<Contender>& list) {
  for (const Contender& x : list)
    if (x.reference && c.kind != Case::Kind::Memory)
      return fmt::format("{} does this by {}", x.kind, x.name);
  return {};
}

}  // namespace

PeerResult race_case(const Case& c, const RaceSettings& settings, Anchors& anchors,
                     const std::vector<PeerEntry>& libraries) {
  PeerResult out{c.name, c.group, settings.threads, c.flops(), c.bytes(), 0, {}, {}};
  try {
    const Target target = machine_target(settings.threads);
    const Network network = network_of_text(c.toml);
    const std::vector<std::string> tuned =
        settings.tuned ? tuned_opts(c, network, settings) : std::vector<std::string>();
    out.gbps = anchors.gbps_at(c.bytes());
    const Buffers buffers(network.buffers);
    const Tensors t = tensors_of(network, buffers);
    std::vector<Contender> list;
    if (settings.threads == 1) {
      add_library(list, c, t, "openblas");
      add_hand(list, c, t);
      add_library(list, c, t, "onednn");
    }
    std::vector<std::string> heuristic;
    for (const Kernel& k : network.kernels) heuristic.push_back(heuristic_opts(k, target));
    std::vector<std::unique_ptr<NetworkRun>> runs;
    for (const auto& [kind, opts] :
         {std::pair("heuristic", heuristic), std::pair("tuned", tuned)}) {
      if (opts.empty()) continue;
      runs.push_back(std::make_unique<NetworkRun>(network, opts, target, buffers));
      NetworkRun* run = runs.back().get();
      list.push_back(
          {kind, run->opts_text(), [run](int64_t core) { run->call(core); }, run->threads()});
    }
    out.failure = crippled(c, list);
    if (!out.failure.empty()) return out;
    list.push_back({"peak", "multiply-adds",
                    [&anchors](int64_t core) { anchors.fma()(anchors.buffers(), core); },
                    settings.threads});
    out.entries = timed(c, t, list, buffers, settings.seconds, settings.most_sessions);
    for (PeerEntry& e : out.entries)
      if (e.kind == "peak") {  // ns per GFLOP
        const double scale = 1e9 / anchors.fma_flops();
        e.ns *= scale;
        for (double& s : e.sessions) s *= scale;
      }
    out.entries.insert(out.entries.end(), libraries.begin(), libraries.end());
  } catch (const std::exception& e) {
    out.failure = e.what();
  }
  return out;
}

std::vector<PeerEntry> library_entries(const Case& c, const std::string& library, int threads,
                                       double seconds) {
  const std::string why =
      library == "openblas" ? openblas_crippled(threads, true) : dnnl_crippled(threads, true);
  if (!why.empty()) throw std::runtime_error(why);
  const Network network = network_of_text(c.toml);
  const Buffers buffers(network.buffers);
  const Tensors t = tensors_of(network, buffers);
  std::vector<Contender> list;
  add_library(list, c, t, library);
  const std::string reference = crippled(c, list);
  if (!reference.empty()) throw std::runtime_error(reference);
  return timed(c, t, list, buffers, seconds, 15);
}

}  // namespace beamline::bench
