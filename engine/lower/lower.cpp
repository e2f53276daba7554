#include "engine/lower/lower.h"

#include <algorithm>
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
  UOp lanes;
  int64_t vector_lanes = 1;
  int64_t threads = 1;
  bool reference = false;
  std::string refusal;
};

int64_t lanes_of(UOp graph, const Target& t) {
  int64_t n = t.vector_bytes;
  for (UOp u : toposort(graph))
    if (u.op() == Op::PARAM) n = std::min<int64_t>(n, t.lanes(u.dtype()));
  return std::max<int64_t>(1, n);
}

struct Pass {
  std::string_view name;
  void (*run)(State&);
};
// clang-format off
constexpr Pass passes[] = {
    {"add loads",             [](State& s) { s.graph = add_loads(s.graph); }},
    {"choose lanes",          [](State& s) { s.lanes = choose_lanes(s.graph); s.vector_lanes = lanes_of(s.graph, s.target); }},
    {"remove reduces",        [](State& s) { s.graph = reduce_to_accumulator(s.graph, s.lanes); }},
    {"add thread dims",       [](State& s) { s.graph = add_thread_dims(s.graph, s.threads); }},
    {"expand",                [](State& s) {
       if (const auto g = expand(s.graph, s.lanes, s.vector_lanes)) s.graph = *g;
       else s.refusal = "the opts write out too many values"; }},
    {"symbolic",              [](State& s) { s.graph = simplify(s.graph); }},
    {"order index sums",      [](State& s) { s.graph = order_index_sums(s.graph); }},
    {"lower index dtypes",    [](State& s) { s.graph = lower_index_dtypes(s.graph, s.target.index_dtype); }},
    {"decompositions",        [](State& s) { s.graph = decompose(s.graph); }},
};
// clang-format on

// A pass that breaks its stage is our own mistake.
void must_hold(std::string_view pass, const std::optional<std::string>& error) {
  if (error)
    std::fprintf(stderr, "after pass '%.*s': %s\n", static_cast<int>(pass.size()), pass.data(),
                 error->c_str());
  CHECK(!error);
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out{"apply opts"};
  for (const Pass& p : passes) out.push_back(p.name);
  out.push_back("linearize");
  return out;
}

std::variant<LinearKernel, OptRefusal> lower(UOp prepared, const Opts& opts, const Target& target,
                                             const LowerOptions& options) {
  LinearKernel k;
  k.estimates = estimate(prepared);
  if (prepared.node()->ext) k.name = std::get<KernelInfo>(*prepared.node()->ext).name;
  if (k.name.empty()) k.name = "kernel";
  auto scheduled = apply_opts(options.reference ? widen_floats(prepared) : prepared, opts, target);
  if (const auto* refusal = std::get_if<OptRefusal>(&scheduled)) return *refusal;
  const KernelSchedule& schedule = std::get<KernelSchedule>(scheduled);
  k.opts = schedule.applied();
  State s{schedule.ast(), target, {}, 1, 1, options.reference, {}};
  if (options.after_pass) options.after_pass("apply opts", s.graph);
  must_hold("apply opts", verify(s.graph, Stage::Kernel, options.check));
  for (const Pass& p : passes) {
    p.run(s);
    if (!s.refusal.empty()) return OptRefusal{opts.size(), s.refusal};
    if (options.after_pass) options.after_pass(p.name, s.graph);
    must_hold(p.name, verify(s.graph, Stage::Lowered, options.check));
  }
  k.threads = s.threads;
  k.list = linearize(s.graph);
  must_hold("linearize", verify_linear(k.list, options.check));
  for (UOp u : k.list) {
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global)
      k.args.push_back({u.param().slot, u.dtype(), u.numel(), false});
  }
  for (UOp u : k.list) {
    if (u.op() != Op::STORE) continue;
    UOp p = u.src(0);
    while (p.op() == Op::INDEX || p.op() == Op::SHRINK || p.op() == Op::AFTER) p = p.src(0);
    for (KernelArg& a : k.args)
      if (p.op() == Op::PARAM && p.param().slot == a.slot) a.written = true;
  }
  std::ranges::sort(k.args, {}, &KernelArg::slot);
  return k;
}

}  // namespace beamline
