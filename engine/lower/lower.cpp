#include "engine/lower/lower.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/lower/passes.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

struct State {
  UOp graph;
  const Target& target;
  const Opts& opts;
  Opts applied{};
  std::vector<Packing> packings{};
  std::vector<Layout> layouts{};
  std::vector<Skipping> skippings{};
  std::vector<Prefetch> prefetches{};
  std::vector<UOp> lanes{};
  int64_t vector_lanes = 1;
  Grid grid{};
  std::vector<UOp> list{};
  Trace* trace = nullptr;
  bool scheduled = false;
  size_t refused_opt = 0;
  std::string refusal{};
};

bool has(const Opts& opts, const Opt& opt) { return std::ranges::find(opts, opt) != opts.end(); }

int64_t lanes_of(UOp graph, const Target& t) {
  int64_t n = t.vector_bytes;
  for (UOp u : toposort(graph))
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global)
      n = std::min<int64_t>(n, t.lanes(u.dtype()));
    else if ((u.op() == Op::REDUCE || u.op() == Op::WMMA) &&
             !t.has_local)  // what is summed stays in registers
      n = std::min<int64_t>(n, t.lanes(u.dtype()));
  return std::max<int64_t>(1, n);
}

void apply_all(State& s) {
  auto scheduled = apply_opts(s.graph, s.opts, s.target);
  if (const auto* refusal = std::get_if<OptRefusal>(&scheduled)) {
    s.refused_opt = refusal->index;
    s.refusal = refusal->reason;
    return;
  }
  const auto& schedule = std::get<KernelSchedule>(scheduled);
  s.graph = schedule.ast();
  s.applied = schedule.applied();
  s.packings = schedule.packings();
  s.layouts = schedule.layouts();
  s.skippings = schedule.skippings();
  s.prefetches = schedule.prefetches();
}

void expand_all(State& s) {
  if (const auto g = expand(s.graph, s.lanes, s.vector_lanes)) {
    s.graph = *g;
    return;
  }
  s.refused_opt = s.opts.empty() ? 0 : s.opts.size() - 1;
  s.refusal = "all opts together write out too many values";
}

// GPUs count in 32 bits where that is enough for every step of the index math; processors in those
// of an address.
DType index_dtype(UOp graph, const Target& target) {
  if (!target.has_local) return target.index_dtype;
  const auto narrow = [](UOp u) {
    return u.dtype() != DType::WeakInt ||
           (u.vmin() >= dtype_min(DType::I32) && u.vmax() <= dtype_max(DType::I32));
  };
  // Shapes are told in constants that nobody computes with.
  const bool fits = std::ranges::all_of(toposort(graph), [&](UOp u) {
    if (u.op() == Op::CONST || u.op() == Op::STACK) return true;
    return narrow(u) && (!ops::alu.has(u.op()) || std::ranges::all_of(u.srcs(), narrow));
  });
  return fits ? DType::I32 : target.index_dtype;
}

// Apple's GPUs do not compute in f64.
bool has_doubles(const Target& target) { return target.name != "emulator:metal"; }

// Of a processor that says what it has.
bool has_halves(const Target& target) {
  return target.instructions.empty() || has_instruction(target.instructions, "f16c");
}

struct Pass {
  std::string_view name;
  void (*run)(State&);
};
// clang-format off
constexpr Pass passes[] = {
    {"apply opts",            apply_all},
    {"add loads",             [](State& s) { s.graph = add_loads(s.graph); }},
    {"overlap tails",         [](State& s) { if (!s.target.has_local && !has(s.applied, {OptKind::STREAM, 0, {}})) s.graph = overlap_tails(s.graph, s.packings, s.skippings); }},
    {"stage operands",        [](State& s) { s.graph = stage_operands(s.graph, s.packings, lanes_of(s.graph, s.target)); }},
    {"group reduces",         [](State& s) { if (s.target.has_local) s.graph = reduce_across_groups(s.graph); }},
    {"choose lanes",          [](State& s) { s.vector_lanes = lanes_of(s.graph, s.target); s.lanes = choose_lanes(s.graph, s.vector_lanes); }},
    {"skip padding",          [](State& s) { s.graph = skip_padding(s.graph, s.skippings, s.lanes); }},
    {"remove reduces",        [](State& s) { s.graph = reduce_to_accumulator(s.graph, s.lanes, has(s.applied, {OptKind::PREFETCH, 0, {}}), s.prefetches); }},
    {"add grid",              [](State& s) { s.graph = add_grid(s.graph, s.grid); }},
    {"expand",                expand_all},
    {"symbolic",              [](State& s) { s.graph = simplify(s.graph, sym_matcher(), s.trace); }},
    {"order index sums",      [](State& s) { s.graph = order_index_sums(s.graph); }},
    {"coalesce accesses",     [](State& s) { if (s.target.has_local) s.graph = coalesce_accesses(s.graph); }},
    {"lower index dtypes",    [](State& s) { s.graph = lower_index_dtypes(s.graph, index_dtype(s.graph, s.target)); }},
    {"magic division",        [](State& s) { if (s.target.magic_division) s.graph = magic_division(s.graph, s.trace); }},
    {"decompositions",        [](State& s) { s.graph = decompose(s.graph, has_doubles(s.target), has_halves(s.target), s.trace); }},
    {"number params",         [](State& s) { s.graph = number_params(s.graph); }},
    {"implicit barriers",     [](State& s) { if (s.target.has_local) s.graph = add_implicit_barriers(s.graph); }},
    {"linearize",             [](State& s) { s.list = linearize(s.graph); }},
};
// clang-format on

// A pass that breaks its stage is our own mistake.
void must_hold(std::string_view pass, const std::optional<std::string>& error) {
  if (error)
    std::fprintf(stderr, "after pass '%.*s': %s\n", static_cast<int>(pass.size()), pass.data(),
                 error->c_str());
  CHECK(!error);
}

// Every pass goes through here: skipped by name, timed, shown, verified.
void run_pass(State& s, const Pass& pass, const LowerOptions& options) {
  if (std::ranges::find(options.skip, pass.name) != options.skip.end()) return;
  const auto start = std::chrono::steady_clock::now();
  pass.run(s);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  if (!s.refusal.empty()) return;
  if (options.after_pass) options.after_pass(pass.name, s.graph, took.count());
  const bool listed = !s.list.empty();
  must_hold(pass.name, listed ? verify_linear(s.list, options.check)
                              : verify(s.graph, s.scheduled ? Stage::Lowered : Stage::Scheduled,
                                       options.check));
  s.scheduled = true;
}

std::vector<LinearArg> args_of(std::span<const UOp> list) {
  std::vector<LinearArg> args;
  for (UOp u : list)
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global)
      args.push_back({u.param().slot, u.dtype(), u.numel(), false});
  for (UOp u : list) {
    if (u.op() != Op::STORE) continue;
    const UOp p = memory_of(u.src(0));
    for (LinearArg& a : args)
      if (p.op() == Op::PARAM && p.param().slot == a.slot) a.written = true;
  }
  std::ranges::sort(args, {}, &LinearArg::slot);
  return args;
}

}  // namespace

bool is_written(const LinearKernel& kernel, UOp param) {
  const auto arg = std::ranges::find(kernel.args, param.param().slot, &LinearArg::slot);
  return arg != kernel.args.end() && arg->written;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out;
  for (const Pass& p : passes) out.push_back(p.name);
  return out;
}

std::variant<LinearKernel, OptRefusal> lower(UOp prepared, const Opts& opts, const Target& target,
                                             const LowerOptions& options) {
  LinearKernel k;
  k.estimates = estimate(prepared);
  if (prepared.node()->ext) k.name = std::get<KernelInfo>(*prepared.node()->ext).name;
  if (k.name.empty()) k.name = "kernel";
  State s{options.reference ? widen_floats(prepared) : prepared, target, opts};
  s.trace = options.trace;
  for (const Pass& p : passes) {
    run_pass(s, p, options);
    if (!s.refusal.empty()) return OptRefusal{s.refused_opt, s.refusal};
  }
  k.list = std::move(s.list);
  k.args = args_of(k.list);
  k.grid = s.grid;
  k.opts = std::move(s.applied);
  k.instructions = target.instructions;
  for (const Layout& l : s.layouts) {
    LowerOptions plain;
    plain.check = options.check;
    auto copy = lower(l.copy, {}, target, plain);
    k.layouts.push_back({l.slot, std::get<LinearKernel>(std::move(copy))});
  }
  return k;
}

}  // namespace beamline
