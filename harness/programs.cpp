#include "harness/programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/base/sha256.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/ir/provenance.h"
#include "engine/lower/estimates.h"
#include "engine/lower/lower.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/rangeify.h"
#include "engine/rules/verify.h"
#include "harness/tolerance.h"
#include "workloads/builder.h"
#include "workloads/elements.h"

namespace beamline {
namespace {

namespace fs = std::filesystem;

// By slot: is this buffer stored to?
std::vector<bool> written_slots(UOp ast, size_t slots) {
  std::vector<bool> written(slots, false);
  for (UOp u : toposort(ast)) {
    if (u.op() != Op::STORE) continue;
    UOp target = u.src(0);
    while (target.op() != Op::PARAM && target.nsrc() > 0) target = target.src(0);
    if (target.op() == Op::PARAM) written[static_cast<size_t>(target.param().slot)] = true;
  }
  return written;
}

std::string dtypes_text(const ProgramKernel& k, const std::vector<ProgramBuffer>& buffers) {
  std::vector<std::string> out, in;
  for (size_t i = 0; i < k.buffers.size(); ++i)
    (k.written[i] ? out : in).push_back(buffers[static_cast<size_t>(k.buffers[i])].dtype);
  return in.empty() ? fmt::format("{}", fmt::join(out, ", "))
                    : fmt::format("{} <- {}", fmt::join(out, ", "), fmt::join(in, ", "));
}

// What follows from the AST and the buffers' facts; the buffers are known already.
ProgramKernel describe(UOp ast, const std::string& name, std::vector<int> slots,
                       std::vector<ProgramBuffer>& buffers, int index) {
  ProgramKernel k;
  k.key = kernel_key(ast);
  k.name = name;
  k.ast = print_uops(ast);
  Estimates work = estimate(ast);
  k.flops = work.flops;
  k.bytes = work.bytes;
  k.rtol = kernel_tolerance(ast);
  k.buffers = std::move(slots);
  k.written = written_slots(ast, k.buffers.size());
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    if (!k.written[i]) continue;
    ProgramBuffer& b = buffers[static_cast<size_t>(k.buffers[i])];
    b.producer = index;
    if (k.shape.empty()) k.shape = b.shape;
  }
  k.dtypes = dtypes_text(k, buffers);
  if (Provenance* table = Provenance::current()) {
    k.origins = table->origins(ast);
    k.node_origins = table->by_node(ast);
  }
  return k;
}

LoweringCache::Lowered lower_graph(UOp sink, bool relaxed) {
  LoweringCache::Lowered out;
  const KernelGraph graph = make_kernels(sink, relaxed ? Math::Relaxed : Math::Strict);
  for (const BufferInfo& b : graph.buffers)
    out.buffers.push_back({.dtype = std::string(dtype_name(b.dtype)),
                           .elements = b.elements,
                           .shape = b.shape,
                           .input = static_cast<int>(b.input_slot),
                           .offset = b.offset});
  out.arena_bytes = graph.arena_bytes;
  for (const KernelAst& k : graph.kernels) {
    std::vector<int> slots(k.buffers.begin(), k.buffers.end());
    out.kernels.push_back(describe(k.ast, k.name, std::move(slots), out.buffers,
                                   static_cast<int>(out.kernels.size())));
  }
  out.outputs.assign(graph.outputs.begin(), graph.outputs.end());
  return out;
}

KernelProgram lower_instance(workloads::Instance instance, LoweringCache& cache,
                             std::vector<workloads::WorkloadError>& errors) {
  Arena arena;
  Arena::Scope scope(arena);
  Provenance provenance;
  const Provenance::Scope tracing(&provenance);
  KernelProgram program;
  auto built = workloads::build(instance);
  if (auto* e = std::get_if<std::vector<workloads::WorkloadError>>(&built)) {
    errors.insert(errors.end(), e->begin(), e->end());
    return program;
  }
  const UOp sink = std::get<workloads::TensorGraph>(built).sink;
  const std::string hash = tensor_graph_hash(sink) + (instance.relaxed ? " relaxed" : "");
  const LoweringCache::Lowered* lowered = cache.find(hash);
  const std::string from = instance.file + ":" + instance.workload;
  if (!lowered) {
    LoweringCache::Lowered fresh = lower_graph(sink, instance.relaxed);
    fresh.from = from;
    lowered = &cache.add(hash, std::move(fresh));
  }
  program.buffers = lowered->buffers, program.kernels = lowered->kernels;
  if (lowered->from != from)  // the same graph, from other lines
    for (ProgramKernel& k : program.kernels) k.origins.clear(), k.node_origins.clear();
  program.outputs = lowered->outputs, program.arena_bytes = lowered->arena_bytes;
  program.instance = std::move(instance);
  return program;
}

// What a buffer of a .uop kernel is filled with: the defaults of a workload's input.
workloads::InputSpec default_input(const std::string& name, DType t, int64_t elements) {
  workloads::InputSpec spec;
  spec.name = name;
  spec.dtype = t;
  spec.shape = {elements};
  if (is_float(t)) {
    spec.dist = {.kind = workloads::DistKind::Uniform, .first = -1, .second = 1, .path = {}};
  } else {
    spec.dist = {.kind = workloads::DistKind::Int, .highest = t == DType::Bool ? 1 : 9, .path = {}};
  }
  return spec;
}

KernelProgram lower_uop_file(const std::string& file,
                             std::vector<workloads::WorkloadError>& errors) {
  KernelProgram program;
  auto refuse = [&](int line, int column, std::string message, std::string expected = {}) {
    errors.push_back({file, line, column, "", std::move(message), std::move(expected)});
    return KernelProgram{};
  };
  std::ifstream in(file, std::ios::binary);
  if (!in) return refuse(0, 0, "cannot read the file");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  Arena arena;
  Arena::Scope scope(arena);
  auto parsed = parse_uops(text);
  if (const auto* e = std::get_if<ParseError>(&parsed))
    return refuse(e->line, e->column, e->message);
  UOp root = std::get<UOp>(parsed);
  if (root.op() != Op::SINK)
    return refuse(0, 0, fmt::format("the last node is {}", op_name(root.op())),
                  "a kernel rooted at SINK");
  if (const auto error = verify(root, Stage::Kernel)) return refuse(0, 0, *error);
  UOp ast = prepare(root).ast;
  std::map<int64_t, UOp> params;
  bool stores = false;
  for (UOp u : toposort(ast)) {
    stores |= u.op() == Op::STORE;
    if (u.op() == Op::PARAM && u.param().addrspace == AddrSpace::Global) params[u.param().slot] = u;
  }
  if (!stores) return refuse(0, 0, "the kernel stores nothing", "a STORE under the SINK");
  std::vector<int> slots;
  for (const auto& [slot, u] : params) {
    if (slot != static_cast<int64_t>(slots.size()) || u.dtype() == DType::Void ||
        is_weak(u.dtype()))
      return refuse(
          0, 0, fmt::format("buffer slot {} is no buffer that a kernel can be called with", slot));
    slots.push_back(static_cast<int>(slots.size()));
    program.buffers.push_back({.dtype = std::string(dtype_name(u.dtype())),
                               .elements = u.numel(),
                               .shape = {u.shape().begin(), u.shape().end()},
                               .input = static_cast<int>(slot)});
    program.instance.inputs.push_back(
        default_input(fmt::format("slot{}", slot), u.dtype(), u.numel()));
  }
  for (UOp v : kernel_variables(ast)) {
    const DType t = is_weak(v.dtype()) ? Target{}.index_dtype : v.dtype();
    slots.push_back(static_cast<int>(slots.size()));
    program.buffers.push_back(
        {.dtype = std::string(dtype_name(t)), .elements = 1, .shape = {1}, .input = slots.back()});
    workloads::InputSpec spec = default_input(v.param().name, t, 1);
    spec.dist.lowest = v.vmin(), spec.dist.highest = v.vmax();
    program.instance.inputs.push_back(std::move(spec));
  }
  std::string name = fs::path(file).stem().string();
  program.kernels.push_back(describe(ast, name, slots, program.buffers, 0));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].producer < 0) continue;
    program.buffers[i].input = -1;
    program.outputs.push_back(static_cast<int>(i));
  }
  program.instance.file = file;
  program.instance.workload = program.instance.name = name;
  program.instance.content_hash = sha256_hex(program.kernels[0].ast);
  return program;
}

}  // namespace

const LoweringCache::Lowered* LoweringCache::find(const std::string& hash) {
  const auto it = by_hash_.find(hash);
  if (it == by_hash_.end()) return nullptr;
  hits_++;
  return &it->second;
}
const LoweringCache::Lowered& LoweringCache::add(const std::string& hash, Lowered lowered) {
  return by_hash_.insert_or_assign(hash, std::move(lowered)).first->second;
}

KernelPrograms lower_workloads(const std::vector<std::string>& arguments,
                               const std::vector<workloads::ParamOverride>& overrides,
                               LoweringCache* cache) {
  KernelPrograms out;
  LoweringCache own;
  if (!cache) cache = &own;
  // One selection for all .toml arguments, so that an instance named twice is one.
  std::vector<std::string> files, kernels;
  for (const std::string& a : arguments)
    (fs::path(a).extension() == ".uop" ? kernels : files).push_back(a);
  if (!files.empty() || !overrides.empty()) {
    workloads::Selection selection = workloads::select(files, overrides);
    out.errors = std::move(selection.errors);
    if (out.errors.empty())
      for (workloads::Instance& i : selection.instances)
        out.list.push_back(lower_instance(std::move(i), *cache, out.errors));
  }
  for (const std::string& file : kernels) out.list.push_back(lower_uop_file(file, out.errors));
  // The same mistake in many instances of a workload is one mistake.
  std::vector<workloads::WorkloadError> once;
  for (workloads::WorkloadError& e : out.errors)
    if (std::ranges::find(once, e) == once.end()) once.push_back(std::move(e));
  out.errors = std::move(once);
  return out;
}

std::vector<KernelUse> unique_kernels(const std::vector<KernelProgram>& programs) {
  std::vector<KernelUse> out;
  std::map<std::string, size_t> by_key;
  for (const KernelProgram& p : programs)
    for (size_t k = 0; k < p.kernels.size(); ++k) {
      auto [it, fresh] = by_key.try_emplace(p.kernels[k].key, out.size());
      if (fresh) out.push_back({.program = &p, .kernel = static_cast<int>(k), .workloads = {}});
      KernelUse& use = out[it->second];
      use.count += p.instance.repeat;
      if (use.workloads.empty() || use.workloads.back() != p.instance.name)
        use.workloads.push_back(p.instance.name);
    }
  return out;
}

std::vector<KernelUse> select_kernels(const std::vector<KernelUse>& kernels,
                                      const std::string& selector) {
  std::vector<KernelUse> found;
  bool number = !selector.empty() && selector.size() < 7 &&
                std::ranges::all_of(selector, [](char c) { return c >= '0' && c <= '9'; });
  if (number && std::stoul(selector) < kernels.size()) return {kernels[std::stoul(selector)]};
  for (const KernelUse& k : kernels)
    if (k.get().name == selector) found.push_back(k);
  if (!found.empty() || selector.empty()) return found;
  for (const KernelUse& k : kernels)
    if (k.get().key.starts_with(selector)) found.push_back(k);
  return found;
}

}  // namespace beamline
