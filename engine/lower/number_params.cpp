#include <algorithm>
#include <tuple>

#include "engine/lower/passes.h"
#include "engine/rewrite/rewriter.h"

namespace beamline {

std::vector<UOp> kernel_variables(UOp ast) {
  std::vector<UOp> out;
  for (UOp u : toposort(ast))
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Alu) out.push_back(u);
  std::ranges::sort(out, {}, [](UOp u) {
    return std::tuple(u.param().name, u.vmin(), u.vmax(), dtype_name(u.dtype()));
  });
  return out;
}

UOp number_params(UOp ast) {
  const std::vector<UOp> variables = kernel_variables(ast);
  if (variables.empty()) return ast;
  ParamArg arg;
  for (UOp u : toposort(ast))
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global)
      arg.slot = std::max(arg.slot, u.param().slot + 1);
  Substitution values;
  for (UOp v : variables) {
    const int64_t one[] = {1};
    const UOp memory = param(arg, v.dtype(), one);
    const UOp at = make(Op::INDEX, v.dtype(), {memory, iconst(0, DType::I64)});
    values.emplace(v, make(Op::LOAD, v.dtype(), {at}));
    arg.slot++;
  }
  return substitute(ast, values);
}

}  // namespace beamline
