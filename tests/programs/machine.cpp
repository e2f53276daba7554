#include "tests/programs/machine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "devices/cpu/blob.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/rules/verify.h"
#include "workloads/elements.h"

namespace beamline::fuzz {
namespace {

constexpr size_t canary = 64;  // bytes behind each buffer that nobody may write

struct Failure {
  std::string what;
};

struct Memory {
  std::vector<InterpreterBuffer> values;
  std::vector<std::vector<std::byte>> bytes;
};

Memory memory_of(const KernelGraph& g, const Program& p) {
  Memory m;
  for (const BufferInfo& b : g.buffers) {
    const auto n = static_cast<size_t>(std::max<int64_t>(1, b.elements));
    const DType t = b.dtype == DType::Void ? DType::U8 : b.dtype;
    m.values.push_back(make_buffer(t, n));
    m.bytes.emplace_back(n * static_cast<size_t>(dtype_bytes(t)) + canary, std::byte{0xa5});
    if (b.kind != BufferInfo::Kind::Input || b.dtype == DType::Void) continue;
    const TensorValue& v = p.inputs[static_cast<size_t>(b.input_slot)].value;
    for (size_t i = 0; i < v.size(); i++) {
      if (is_float(t)) {
        m.values.back().floats[i] = v.reals[i];
        workloads::store(m.bytes.back(), t, i, v.reals[i]);
      } else {
        m.values.back().ints[i] = v.wholes[i];
        workloads::store(m.bytes.back(), t, i, v.wholes[i]);
      }
    }
  }
  return m;
}

void run_kernel(const KernelAst& k, Memory& m, bool heuristic, RunFacts* run) {
  if (const auto error = verify(k.ast, Stage::Kernel, 1)) throw Failure{*error};
  if (run && verify(k.ast, Stage::Kernel, 2)) run->unproved++;
  Target target;
  const auto lowered = lower(k.ast, {}, target);
  if (!std::holds_alternative<LinearKernel>(lowered))
    throw Failure{"lower: " + std::get<OptRefusal>(lowered).reason};
  std::vector<InterpreterBuffer> args;
  for (size_t id : k.buffers) args.push_back(std::move(m.values[id]));
  const auto error = interpret(std::get<LinearKernel>(lowered).list, args);
  for (size_t i = 0; i < args.size(); i++) m.values[k.buffers[i]] = std::move(args[i]);
  if (error) throw Failure{"interpreter: " + *error};

  const std::string opts = heuristic ? opts_text(cpu_heuristic(k.ast, target)) : "";
  const auto rendered = render_kernel({print_uops(k.ast), opts, target, false});
  if (const auto* refusal = std::get_if<Refusal>(&rendered))
    throw Failure{"render: " + refusal->reason + " with opts '" + opts + "'"};
  const auto& source = std::get<RenderedKernel>(rendered);
  const auto compiled = compile_ir(source.source, source.entry);
  if (const auto* e = std::get_if<CompileError>(&compiled))
    throw Failure{"LLVM: " + e->reason + "\n" + source.source};
  const auto& blob = std::get<CompiledBlob>(compiled);
  const auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  if (!std::holds_alternative<CodeBlob>(mapped)) throw Failure{std::get<std::string>(mapped)};
  std::vector<void*> pointers;
  for (size_t id : k.buffers) pointers.push_back(m.bytes[id].data());
  for (int64_t core = 0; core < source.threads; core++)
    std::get<CodeBlob>(mapped).entry()(pointers.data(), core);
  for (size_t id : k.buffers)
    for (size_t i = m.bytes[id].size() - canary; i < m.bytes[id].size(); i++)
      if (m.bytes[id][i] != std::byte{0xa5}) throw Failure{"machine code wrote behind a buffer"};
}

double unit(DType t) {
  switch (t) {
    case DType::F64: return 0x1p-50;  // transcendental ops are not exact to the last bit
    case DType::F32: return 0x1p-24;
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    case DType::Fp8e4m3: return 0x1p-4;
    default: return 0x1p-3;
  }
}

// How far a value may be off: what rounding after each node makes of the exact values shows how
// sensitive the program is.
struct Tolerance {
  double absolute = 0, relative = 0;
};
Tolerance tolerance_of(const TensorValue& typed, const TensorValue& wide) {
  Tolerance t;
  if (!is_float(typed.dtype)) return t;
  double worst = 0, squares = 0;
  size_t n = 0;
  for (size_t i = 0; i < typed.size(); i++) {
    const double v = typed.reals[i], w = wide.reals[i];
    if (!std::isfinite(v) || !std::isfinite(w)) continue;
    worst = std::max(worst, std::fabs(v - w)), squares += v * v, n++;
  }
  const double rms = n > 0 ? std::sqrt(squares / static_cast<double>(n)) : 0;
  t.relative = 16 * unit(typed.dtype);
  t.absolute = 16 * worst + t.relative * rms + 1e-30;
  return t;
}

bool close(double have, double want, const Tolerance& t) {
  if (std::isnan(want)) return std::isnan(have);
  if (have == want) return true;
  return std::fabs(have - want) <= t.absolute + t.relative * std::fabs(want);
}

void compare(const KernelGraph& g, const Memory& m, const std::vector<TensorValue>& typed,
             const std::vector<TensorValue>& wide) {
  for (size_t o = 0; o < g.outputs.size(); o++) {
    const size_t id = g.outputs[o];
    const Tolerance t = tolerance_of(typed[o], wide[o]);
    for (size_t i = 0; i < typed[o].size(); i++) {
      const bool real = is_float(typed[o].dtype);
      const double want = typed[o].number(i);
      for (const bool machine : {false, true}) {
        double have = 0;
        bool good = true;
        if (machine) {
          have = workloads::load(m.bytes[id], typed[o].dtype, i);
          good = real ? close(have, want, t) : have == want;
        } else if (real) {
          have = m.values[id].floats[i];
          good = close(have, want, t);
        } else {
          have = static_cast<double>(m.values[id].ints[i]);
          good = m.values[id].ints[i] == typed[o].wholes[i];
        }
        if (!good)
          throw Failure{
              fmt::format("result {}[{}]: the {} gives {:.9g}, the evaluator {:.9g} (+- {:.3g})", o,
                          i, machine ? "machine code" : "interpreter", have, want,
                          t.absolute + t.relative * std::fabs(want))};
      }
    }
  }
}

}  // namespace

std::optional<std::string> disagreement(const Program& p, bool heuristic, RunFacts* run) {
  Arena arena;
  const Arena::Scope scope(arena);
  std::string kernels;
  try {
    const Graph g = build(p);
    if (!g.error.empty()) throw Failure{g.error};
    if (const auto error = verify(g.graph.sink, Stage::Tensor, 1)) throw Failure{*error};
    std::vector<TensorValue> inputs;
    for (const Input& i : p.inputs) inputs.push_back(i.value);
    const auto typed = evaluate_tensors(g.graph.sink, inputs, Rounding::Typed);
    const auto wide = evaluate_tensors(g.graph.sink, inputs, Rounding::Wide);
    const KernelGraph k = make_kernels(g.graph.sink);
    if (run) run->kernels += k.kernels.size();
    for (const KernelAst& kernel : k.kernels) kernels += "\n" + print_uops(kernel.ast);
    Memory memory = memory_of(k, p);
    for (const KernelAst& kernel : k.kernels) run_kernel(kernel, memory, heuristic, run);
    compare(k, memory, typed, wide);
  } catch (const Failure& f) {
    return f.what + kernels;
  } catch (const std::exception& e) {
    return std::string(e.what()) + kernels;
  }
  return std::nullopt;
}

}  // namespace beamline::fuzz
