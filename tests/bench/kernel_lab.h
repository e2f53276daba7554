// Kernels made, compiled and timed in the process of a benchmark: from a workload's text to machine
// code, and the common sampling primitive (interleaved sessions) around it. One thread at a time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <sched.h>

#include "devices/cpu/blob.h"
#include "devices/cpu/laid_operands.h"
#include "devices/cpu/launcher.h"
#include "devices/cpu/memory.h"
#include "devices/cpu/timer.h"
#include "engine/ir/target.h"
#include "engine/rangeify/rangeify.h"

namespace beamline::bench {

/// A kernel as text, so that it outlives its arena.
struct Kernel {
  std::string name, key, ast;  // the AST prepared, in UOp text
  double flops = 0, bytes = 0;
  std::vector<BufferInfo> buffers;  // by slot
};
/// All kernels of a workload, in order, and the buffers that they share.
struct Network {
  std::string name;
  std::vector<Kernel> kernels;
  std::vector<std::vector<size_t>> slots;  // by kernel and slot: index into buffers
  std::vector<BufferInfo> buffers;         // inputs by slot, then temporaries and outputs
  std::vector<size_t> outputs;
};

/// The target of this machine with `threads` threads.
Target machine_target(int threads = 1);

/// The kernels of WORKLOAD arguments (FILE, FILE:GLOB), in order; throws std::runtime_error on a
/// mistake in them.
std::vector<Kernel> kernels_of(const std::string& selection);
/// The kernels of one workload given as TOML text.
std::vector<Kernel> kernels_of_text(const std::string& toml);
/// The only workload of TOML text, whole.
Network network_of_text(const std::string& toml);

/// TOML of `c = a @ b`, f32.
std::string matmul_toml(int64_t m, int64_t n, int64_t k);

/// What the heuristic gives the kernel.
std::string heuristic_opts(const Kernel& kernel, const Target& target);

struct Program {
  CodeBlob blob;
  int threads = 1;
  std::string opts;       // as applied
  double lower_ms = 0;    // AST text to rendered text
  double compile_ms = 0;  // rendered text to machine code
  std::vector<LayoutCode> layouts;
};
/// Throws std::runtime_error with the reason of a refusal.
Program compile(const Kernel& kernel, const std::string& opts, const Target& target);

/// Buffers of a kernel, inputs filled with multiples of 1/64 in (-1, 1).
class Buffers {
 public:
  explicit Buffers(const std::vector<BufferInfo>& buffers);
  explicit Buffers(const Kernel& kernel) : Buffers(kernel.buffers) {}
  void* const* pointers() const { return pointers_.data(); }
  float* floats(size_t slot) const { return static_cast<float*>(pointers_[slot]); }
  size_t bytes(size_t slot) const { return memory_[slot].bytes(); }

 private:
  std::vector<GuardedBuffer> memory_;
  std::vector<void*> pointers_;
};

/// The calling thread on the first PU, and afterwards where it was before: what it starts then may
/// run anywhere again.
class OnFirstPu {
 public:
  OnFirstPu();
  ~OnFirstPu();
  OnFirstPu(const OnFirstPu&) = delete;
  OnFirstPu& operator=(const OnFirstPu&) = delete;

 private:
  cpu_set_t before_;
};

struct Racer {
  std::string name;
  KernelFn call = nullptr;
  int threads = 1;
  void* const* buffers = nullptr;  // its own; null: those of the race
};
struct RaceResult {
  std::vector<double> ns;     // median over the sessions of the session's minimum
  std::vector<double> ratio;  // median over the sessions of first / this: above 1 = faster than the
                              // first
  std::vector<std::vector<double>> best;  // ns by racer and session: the session's minimum
};
/// `sessions` interleaved sessions of `sweeps` sweeps on the same buffers, on the first PU.
RaceResult race(const std::vector<Racer>& racers, const Buffers& buffers, int sessions, int sweeps);

}  // namespace beamline::bench
