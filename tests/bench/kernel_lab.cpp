#include "tests/bench/kernel_lab.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "devices/cpu/cpu_target.h"
#include "devices/cpu/llvm_compiler.h"
#include "devices/cpu/sampler.h"
#include "devices/cpu/topology.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/estimates.h"
#include "engine/opt/heuristic.h"
#include "engine/render/render_kernel.h"
#include "search/stats/robust.h"
#include "workloads/builder.h"
#include "workloads/selection.h"

namespace beamline::bench {
namespace {

Network lower_instance(const workloads::Instance& instance) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto built = workloads::build(instance);
  if (const auto* e = std::get_if<std::vector<workloads::WorkloadError>>(&built))
    throw std::runtime_error(workloads::to_string(e->at(0)));
  const KernelGraph g = make_kernels(std::get<workloads::TensorGraph>(built).sink);
  Network out{instance.name, {}, {}, g.buffers, g.outputs};
  for (const KernelAst& k : g.kernels) {
    const Estimates work = estimate(k.ast);
    Kernel made{instance.name + " " + k.name, k.key, print_uops(k.ast), work.flops, work.bytes, {}};
    for (size_t b : k.buffers) made.buffers.push_back(g.buffers[b]);
    out.kernels.push_back(std::move(made));
    out.slots.push_back(k.buffers);
  }
  return out;
}

std::vector<Kernel> lower_instances(const std::vector<workloads::Instance>& instances) {
  std::vector<Kernel> out;
  for (const workloads::Instance& instance : instances)
    for (Kernel& k : lower_instance(instance).kernels) out.push_back(std::move(k));
  return out;
}

std::vector<workloads::Instance> instances_of_text(const std::string& toml) {
  const workloads::LoadedFile file = workloads::parse_workload_file("bench.toml", toml);
  std::vector<workloads::WorkloadError> errors = file.errors;
  std::vector<workloads::Instance> instances;
  for (const workloads::WorkloadDef& w : file.workloads)
    for (workloads::Instance& i : workloads::expand(w, {}, errors))
      instances.push_back(std::move(i));
  if (!errors.empty()) throw std::runtime_error(workloads::to_string(errors[0]));
  return instances;
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

Target machine_target(int threads) {
  return cpu_target(read_cpu_model(), read_topology(), threads);
}

std::vector<Kernel> kernels_of(const std::string& selection) {
  const workloads::Selection s = workloads::select({selection});
  if (!s.errors.empty()) throw std::runtime_error(workloads::to_string(s.errors[0]));
  return lower_instances(s.instances);
}

std::vector<Kernel> kernels_of_text(const std::string& toml) {
  return lower_instances(instances_of_text(toml));
}

Network network_of_text(const std::string& toml) {
  return lower_instance(instances_of_text(toml).at(0));
}

std::string matmul_toml(int64_t m, int64_t n, int64_t k) {
  return fmt::format(
      "[[workload]]\nname = \"matmul\"\nparams = {{ M = {}, N = {}, K = {} }}\n"
      "inputs = {{ a = \"f32[M, K]\", b = \"f32[K, N]\" }}\ncompute = \"return a @ b\"\n",
      m, n, k);
}

std::string heuristic_opts(const Kernel& kernel, const Target& target) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = std::get<UOp>(parse_uops(kernel.ast));
  const Estimates work = estimate(ast);
  return opts_text(across_threads(ast, cpu_heuristic(ast, target), target, work.flops, work.bytes));
}

Program compile(const Kernel& kernel, const std::string& opts, const Target& target) {
  auto start = std::chrono::steady_clock::now();
  const auto rendered = render_kernel({kernel.ast, opts, target, false});
  if (const auto* r = std::get_if<Refusal>(&rendered))
    throw std::runtime_error(fmt::format("{} with '{}': {}", kernel.name, opts, r->reason));
  const auto& text = std::get<RenderedKernel>(rendered);
  const double lower_ms = ms_since(start);
  start = std::chrono::steady_clock::now();
  const auto machine_code = [&](const RenderedKernel& k) {
    auto compiled = compile_ir(k.source, k.entry, {.cpu = target.cpu, .features = target.features});
    if (const auto* e = std::get_if<CompileError>(&compiled))
      throw std::runtime_error(fmt::format("{} with '{}': {}", kernel.name, opts, e->reason));
    return std::get<CompiledBlob>(std::move(compiled));
  };
  const CompiledBlob blob = machine_code(text);
  std::vector<LayoutCode> layouts;
  for (const RenderedLayout& l : text.layouts) {
    const CompiledBlob made = machine_code(l.kernel);
    const RenderedArg& a = l.kernel.args.at(0);
    layouts.push_back({static_cast<size_t>(l.slot),
                       static_cast<size_t>(a.elements * dtype_bytes(*dtype_from_name(a.dtype))),
                       made.code, made.entry_offset});
  }
  const double compile_ms = ms_since(start);
  auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  if (const auto* why = std::get_if<std::string>(&mapped)) throw std::runtime_error(*why);
  return {std::get<CodeBlob>(std::move(mapped)),
          text.threads,
          text.opts_text,
          lower_ms,
          compile_ms,
          std::move(layouts)};
}

Buffers::Buffers(const std::vector<BufferInfo>& buffers) {
  std::mt19937 random(1);
  for (const BufferInfo& b : buffers) {
    const auto n = static_cast<size_t>(b.elements);
    memory_.emplace_back(n * static_cast<size_t>(dtype_bytes(b.dtype)), /*huge_pages=*/true);
    void* data = memory_.back().data();
    const size_t bytes = static_cast<size_t>(dtype_bytes(b.dtype));
    if (is_float(b.dtype))
      for (size_t i = 0; i < n; i++) {
        const uint64_t bits =
            float_to_bits(b.dtype, (static_cast<int>(random() % 127) - 63) / 64.0);
        std::memcpy(static_cast<char*>(data) + i * bytes, &bits, bytes);  // little endian
      }
    else if (bytes == 1 && b.dtype != DType::Bool)
      for (size_t i = 0; i < n; i++) static_cast<char*>(data)[i] = static_cast<char>(random());
    else
      std::memset(data, 0, n * bytes);
  }
  for (const GuardedBuffer& m : memory_) pointers_.push_back(m.data());
}

OnFirstPu::OnFirstPu() {
  sched_getaffinity(0, sizeof before_, &before_);
  bind_thread(read_topology().pus.at(0));
}
OnFirstPu::~OnFirstPu() { sched_setaffinity(0, sizeof before_, &before_); }

RaceResult race(const std::vector<Racer>& racers, const Buffers& buffers, int sessions,
                int sweeps) {
  const CpuTopology topology = read_topology();
  const OnFirstPu here;
  Launcher launcher(topology.pus);
  const Timer timer;
  std::vector<Contestant> contestants;
  for (const Racer& r : racers) contestants.push_back({r.call, r.threads, r.buffers});
  RaceResult out;
  std::vector<std::vector<double>>& best = out.best;
  best.resize(racers.size());
  for (int s = 0; s < sessions; s++) {
    SessionPlan plan;
    plan.sweeps = sweeps;
    plan.seed = static_cast<uint64_t>(s);
    const SessionResult result =
        run_session(timer, launcher, contestants, buffers.pointers(), {}, plan);
    for (size_t i = 0; i < racers.size(); i++) {
      const ContestantSamples& c = result.contestants[i];
      if (c.ns.empty())
        throw std::runtime_error(fmt::format("{} has no times: {}", racers[i].name, c.refused));
      best[i].push_back(*std::min_element(c.ns.begin(), c.ns.end()));
    }
  }
  for (size_t i = 0; i < racers.size(); i++) {
    std::vector<double> ratios;
    for (size_t s = 0; s < best[i].size(); s++) ratios.push_back(best[0][s] / best[i][s]);
    out.ns.push_back(stats::median(best[i]));
    out.ratio.push_back(stats::median(ratios));
  }
  return out;
}

}  // namespace beamline::bench
