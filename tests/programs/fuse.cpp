#include "tests/programs/fuse.h"

#include <algorithm>

#include "engine/rewrite/rewriter.h"

namespace beamline::fuzz {
namespace {

// What stands in the loops, without the END of them; and the loops, the outermost first.
struct Body {
  UOp value;
  std::vector<UOp> loops;
  UOp in(const std::vector<UOp>& some) const {
    std::vector<UOp> src{value};
    src.insert(src.end(), some.begin(), some.end());
    return some.empty() ? value : make(Op::END, DType::Void, src);
  }
};
Body body_of(UOp sink) {
  const UOp u = sink.src(0);
  if (u.op() != Op::END) return {u, {}};
  const std::vector<UOp> src = u.srcs();
  return {src[0], {src.begin() + 1, src.end()}};
}
bool writes(const KernelAst& k, size_t buffer) {
  for (UOp u : toposort(k.ast)) {
    if (u.op() != Op::STORE) continue;
    const UOp p = memory_of(u.src(0));
    if (k.buffers[static_cast<size_t>(p.param().slot)] == buffer) return true;
  }
  return false;
}
bool independent(const KernelAst& a, const KernelAst& b) {
  if (a.ast.nsrc() != 1 || b.ast.nsrc() != 1) return false;
  const auto apart = [](const KernelAst& writer, const KernelAst& other) {
    return std::ranges::none_of(other.buffers, [&](size_t id) { return writes(writer, id); });
  };
  return apart(a, b) && apart(b, a);
}

}  // namespace

KernelAst fused(const KernelAst& a, const KernelAst& b) {
  int64_t next_id = 0;
  for (UOp u : toposort(a.ast))
    if (u.op() == Op::RANGE) next_id = std::max(next_id, u.range_id() + 1);
  Substitution apart;
  for (UOp u : toposort(b.ast)) {
    if (u.op() == Op::RANGE)
      apart.emplace(u, range(u.src(0), next_id + u.range_id(), u.axis_type()));
    if (u.op() != Op::PARAM || u.addrspace() != AddrSpace::Global) continue;
    ParamArg arg = u.param();
    arg.slot += static_cast<int64_t>(a.buffers.size());
    apart.emplace(u, param(arg, u.dtype(), u.shape()));
  }
  const Body first = body_of(a.ast);
  Body second = body_of(substitute(b.ast, apart));
  std::vector<UOp> common, of_first = first.loops, of_second = second.loops;
  for (UOp x : first.loops)
    for (UOp y : second.loops)
      if (common.empty() && x.src(0) == y.src(0)) {
        common = {x};
        std::erase(of_first, x), std::erase(of_second, y);
        second.value = substitute(second.value, {{y, x}});
      }
  KernelAst out = a;
  out.buffers.insert(out.buffers.end(), b.buffers.begin(), b.buffers.end());
  const UOp both[] = {first.in(of_first), second.in(of_second)};
  out.ast = common.empty() ? make(Op::SINK, DType::Void, both)
                           : make(Op::SINK, DType::Void,
                                  {Body{make(Op::GROUP, DType::Void, both), common}.in(common)});
  return out;
}

std::optional<int64_t> vary(KernelAst& kernel) {
  for (UOp u : toposort(kernel.ast)) {
    if (u.op() != Op::MUL || u.dtype() != DType::WeakInt || !u.src(1).is_const() ||
        u.src(1).ival() < 2)
      continue;
    const int64_t factor = u.src(1).ival();
    const UOp src[] = {u.src(0), variable("factor", 0, factor)};
    kernel.ast = substitute(kernel.ast, {{u, rebuild(u, src)}});
    return factor;
  }
  return std::nullopt;
}

void fuse_pairs(std::vector<KernelAst>& kernels) {
  for (size_t i = 0; i + 1 < kernels.size(); i++) {
    if (!independent(kernels[i], kernels[i + 1])) continue;
    kernels[i] = fused(kernels[i], kernels[i + 1]);
    kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace beamline::fuzz
