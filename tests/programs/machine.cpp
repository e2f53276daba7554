#include "tests/programs/machine.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/rules/verify.h"
#include "tests/devices/run_rendered.h"
#include "tests/programs/fuse.h"
#include "tests/programs/gpu_text.h"
#include "tests/programs/opencl_device.h"
#include "workloads/elements.h"

namespace beamline::fuzz {
namespace {

constexpr size_t most_nodes = 3000;  // of a kernel with random opts
constexpr size_t canary = 64;        // bytes behind each buffer that nobody may write

struct Failure {
  std::string what;
};

struct Memory {
  std::vector<InterpreterBuffer> values;
  std::vector<std::vector<std::byte>> bytes;
};

struct Kernels : KernelGraph {
  std::vector<std::pair<size_t, int64_t>> variables;  // buffers that hold one, with its value
};
Kernels kernels_of(UOp sink, const Plan& plan) {
  Kernels g{make_kernels(sink), {}};
  if (plan.fused) fuse_pairs(g.kernels);
  for (KernelAst& k : g.kernels) {
    const auto value = plan.variables ? vary(k) : std::nullopt;
    if (!value) continue;
    k.buffers.push_back(g.buffers.size());
    g.variables.push_back({g.buffers.size(), *value});
    g.buffers.push_back({.kind = BufferInfo::Kind::Temp, .dtype = DType::I64, .elements = 1});
  }
  return g;
}

Memory memory_of(const Kernels& g, const Program& p) {
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
  for (const auto& [id, value] : g.variables) {
    m.values[id].ints[0] = value;
    workloads::store(m.bytes[id], DType::I64, 0, value);  // a narrower argument reads the low bytes
  }
  return m;
}

// Opts of the kernels of a program, one after another.
class Chooser {
 public:
  explicit Chooser(const Plan& plan) : plan_(plan), random_(plan.seed) {}
  Opts next(UOp ast) {
    switch (plan_.kind) {
      case Plan::Kind::Unoptimised: return {};
      case Plan::Kind::Heuristic: return heuristic(ast, plan_.target);
      case Plan::Kind::Listed: return std::get<Opts>(parse_opts(plan_.listed.at(kernel_++)));
      case Plan::Kind::Random: break;
    }
    Opts opts = random_opts(ast, plan_.target, random_);
    // What writes out too much says so, or takes long to compile, when it is lowered only.
    const auto too_much = [&] {
      const auto out = lower(ast, opts, plan_.target);
      const auto* kernel = std::get_if<LinearKernel>(&out);
      return !kernel || kernel->list.size() > most_nodes;
    };
    while (!opts.empty() && too_much()) opts.pop_back();
    return opts;
  }

 private:
  const Plan& plan_;
  std::mt19937_64 random_;
  size_t kernel_ = 0;
};

LinearKernel lowered(UOp ast, const Opts& opts, const Target& target, Coverage* coverage) {
  LowerOptions options;
  options.check = 0;  // a failure here is one to shrink, not to stop at
  UOp before = ast;
  bool scheduled = false;
  options.after_pass = [&](std::string_view pass, UOp graph, double) {
    const Stage stage = std::exchange(scheduled, true) ? Stage::Lowered : Stage::Scheduled;
    if (const auto error = verify(graph, stage, 1))
      throw Failure{fmt::format("after {}: {}", pass, *error)};
    // The last makes a list of the graph, and leaves that alone.
    if (coverage) coverage->count_pass(pass, !(graph == before) || pass == "linearize");
    before = graph;
  };
  auto out = lower(ast, opts, target, options);
  if (const auto* r = std::get_if<OptRefusal>(&out)) throw Failure{"lower: " + r->reason};
  auto& kernel = std::get<LinearKernel>(out);
  if (const auto error = verify_linear(kernel.list)) throw Failure{"list: " + *error};
  if (coverage) coverage->count(kernel);
  return std::move(kernel);
}

void interpret_kernel(const KernelAst& k, const LinearKernel& linear, Memory& m) {
  std::vector<InterpreterBuffer> args;
  for (size_t id : k.buffers) args.push_back(std::move(m.values[id]));
  const auto error = interpret(linear, args);
  for (size_t i = 0; i < args.size(); i++) m.values[k.buffers[i]] = std::move(args[i]);
  if (error) throw Failure{"interpreter: " + *error};
}

void run_machine_code(const KernelAst& k, const std::string& opts, const Plan& plan, Memory& m) {
  const Target& target = plan.target;
  RenderRequest request{print_uops(k.ast), opts, target, false};
  request.renderer = plan.renderer;
  const auto rendered = render_kernel(request);
  if (const auto* refusal = std::get_if<Refusal>(&rendered))
    throw Failure{"render: " + refusal->reason + " with opts '" + opts + "'"};
  const auto& source = std::get<RenderedKernel>(rendered);
  std::vector<void*> pointers;
  for (size_t id : k.buffers) pointers.push_back(m.bytes[id].data());
  if (plan.on_device) {
    std::vector<size_t> bytes;
    for (size_t id : k.buffers) bytes.push_back(m.bytes[id].size());
    run_on_opencl(source, pointers, bytes);
  } else if (target.has_local) {
    run_gpu_text(source, plan.renderer, pointers);
  } else {
    const std::string why = test::run_rendered(source, target, pointers);
    if (!why.empty()) throw Failure{"compiler: " + why};
  }
  for (size_t id : k.buffers)
    for (size_t i = m.bytes[id].size() - canary; i < m.bytes[id].size(); i++)
      if (m.bytes[id][i] != std::byte{0xa5}) throw Failure{"machine code wrote behind a buffer"};
}

void run_kernel(const KernelAst& k, Memory& m, const Plan& plan, Chooser& chooser, RunFacts* run) {
  if (const auto error = verify(k.ast, Stage::Kernel, 1)) throw Failure{*error};
  if (run && verify(k.ast, Stage::Kernel, 2)) run->unproved++;
  const Opts opts = chooser.next(k.ast);
  Coverage* coverage = run ? run->coverage : nullptr;
  if (plan.target.has_local) {
    interpret_kernel(k, lowered(k.ast, opts, plan.target, coverage), m);
    if (!plan.renderer.empty()) run_machine_code(k, opts_text(opts), plan, m);
    return;
  }
  lowered(k.ast, opts, plan.target, coverage);
  interpret_kernel(k, lowered(k.ast, {}, plan.target, nullptr), m);
  run_machine_code(k, opts_text(opts), plan, m);
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
             const std::vector<TensorValue>& wide, bool has_machine) {
  for (size_t o = 0; o < g.outputs.size(); o++) {
    const size_t id = g.outputs[o];
    const Tolerance t = tolerance_of(typed[o], wide[o]);
    for (size_t i = 0; i < typed[o].size(); i++) {
      const bool real = is_float(typed[o].dtype);
      const double want = typed[o].number(i);
      for (const bool machine : {false, true}) {
        if (machine && !has_machine) continue;
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

std::optional<std::string> disagreement(const Program& p, const Plan& plan, RunFacts* run) {
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
    const Kernels k = kernels_of(g.graph.sink, plan);
    if (run) run->kernels += k.kernels.size();
    for (const KernelAst& kernel : k.kernels) kernels += "\n" + print_uops(kernel.ast);
    Memory memory = memory_of(k, p);
    Chooser chooser(plan);
    for (const KernelAst& kernel : k.kernels) run_kernel(kernel, memory, plan, chooser, run);
    compare(k, memory, typed, wide, !plan.target.has_local || !plan.renderer.empty());
  } catch (const Failure& f) {
    return f.what + kernels;
  } catch (const std::exception& e) {
    return std::string(e.what()) + kernels;
  }
  return std::nullopt;
}

std::string Plan::describe() const {
  constexpr std::string_view kinds[] = {"no opts", "the heuristic's opts", "random opts", "opts"};
  std::string text = fmt::format("{}, {}", target.name, kinds[static_cast<size_t>(kind)]);
  if (!renderer.empty()) text += fmt::format(", as {}{}", renderer, on_device ? " on the CPU" : "");
  for (const std::string& o : listed) text += fmt::format(" '{}'", o);
  return text;
}

void cover(const Program& p, const Plan& plan, Coverage& coverage) {
  Arena arena;
  const Arena::Scope scope(arena);
  Chooser chooser(plan);
  for (const KernelAst& k : kernels_of(build(p).graph.sink, plan).kernels)
    lowered(k.ast, chooser.next(k.ast), plan.target, &coverage);
}

std::vector<std::string> opts_of(const Program& p, const Plan& plan) {
  Arena arena;
  const Arena::Scope scope(arena);
  Chooser chooser(plan);
  std::vector<std::string> out;
  const Graph g = build(p);
  if (!g.error.empty()) return out;
  for (const KernelAst& k : kernels_of(g.graph.sink, plan).kernels)
    out.push_back(opts_text(chooser.next(k.ast)));
  return out;
}

std::vector<std::pair<std::string, std::string>> kernels_of(const Program& p, const Plan& plan) {
  Arena arena;
  const Arena::Scope scope(arena);
  Chooser chooser(plan);
  std::vector<std::pair<std::string, std::string>> out;
  for (const KernelAst& k : make_kernels(build(p).graph.sink).kernels)
    out.emplace_back(print_uops(k.ast), opts_text(chooser.next(k.ast)));
  return out;
}

std::string shrunk(const Program& p, const Plan& plan) {
  const auto kind = [](const std::string& s) { return s.substr(0, s.find_first_of(": ")); };
  const std::string first = kind(disagreement(p, plan).value_or(""));
  const auto fails_alike = [&](const Program& q, const Plan& with) {
    const auto w = disagreement(q, with);
    return w && kind(*w) == first;
  };
  const Program small = shrink(p, [&](const Program& q) { return fails_alike(q, plan); });
  Plan fixed = plan;
  fixed.kind = Plan::Kind::Listed;
  fixed.listed = opts_of(small, plan);
  for (std::string& text : fixed.listed)
    text = opts_text(shrink_opts(std::get<Opts>(parse_opts(text)), [&](const Opts& fewer) {
      const std::string before = std::exchange(text, opts_text(fewer));
      const bool fails = fails_alike(small, fixed);
      text = before;
      return fails;
    }));
  return fmt::format("{}\n{}{}{}", fixed.describe(), small.header(), small.text(),
                     disagreement(small, fixed).value_or("(not with these opts)"));
}

}  // namespace beamline::fuzz
