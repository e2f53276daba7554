#include <algorithm>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/ir/node_map.h"
#include "engine/ir/provenance.h"
#include "engine/lower/passes.h"

namespace beamline {
namespace {

std::vector<UOp> terms(UOp sum) {
  std::vector<UOp> out, todo{sum};
  while (!todo.empty()) {
    const UOp u = todo.back();
    todo.pop_back();
    if (u.op() == Op::ADD) {
      todo.push_back(u.src(1));
      todo.push_back(u.src(0));
    } else {
      out.push_back(u);
    }
  }
  return out;
}

// A weak operand beside one of a real type takes that type.
void commit_literals(UOp u, std::vector<UOp>& src) {
  if (!ops::binary.has(u.op()) && !ops::ternary.has(u.op())) return;
  DType t = DType::Void;
  const size_t first = u.op() == Op::WHERE ? 1 : 0;
  for (size_t i = first; i < u.nsrc(); i++) t = join(t, u.src(i).dtype());
  if (is_weak(t)) return;
  for (size_t i = first; i < u.nsrc(); i++) {
    const UOp s = u.src(i);
    if (!is_weak(s.dtype())) continue;
    if (!s.is_const())
      src[i] = cast(src[i], t);
    else if (is_float(t))
      src[i] = fconst(s.number(), t);
    else
      src[i] = iconst(s.ival(), t);
  }
}

}  // namespace

UOp order_index_sums(UOp ast) {
  // The depth of a range is the number of loops around it: the order in which ENDs list them, and
  // reduce loops inside the output's.
  std::unordered_map<UOp, int, UOpHash> depth;
  const std::vector<UOp> order = toposort(ast);
  for (UOp u : order)
    if (u.op() == Op::END)
      for (size_t i = 1; i < u.nsrc(); i++)
        depth[u.src(i)] = static_cast<int>(u.ranges().size() + i);
  const auto level = [&](UOp u) {
    if (u.is_const()) return 1 << 20;
    int d = 0;
    for (const Node* r : u.ranges())
      if (const auto it = depth.find(UOp(r)); it != depth.end()) d = std::max(d, it->second);
    return d;
  };
  NodeMap<UOp> done;
  std::vector<UOp> src;
  for (UOp u : order) {
    src.clear();
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    UOp v = src == u.srcs() ? u : rebuild(u, src);
    if (u.op() == Op::ADD && u.dtype() == DType::WeakInt && u.shape().empty()) {
      std::vector<UOp> t = terms(v);
      std::ranges::stable_sort(t, {}, level);
      v = t[0];
      for (size_t i = 1; i < t.size(); i++) v = v + t[i];
    }
    done.emplace(u, v);
  }
  return done.at(ast);
}

UOp lower_index_dtypes(UOp ast, DType index_dtype) {
  NodeMap<UOp> done;
  std::vector<UOp> src;
  for (UOp u : toposort(ast)) {
    const Provenance::Of from(u);
    src.clear();
    for (size_t i = 0; i < u.nsrc(); i++) src.push_back(done.at(u.src(i)));
    commit_literals(u, src);
    DType t = u.dtype() == DType::WeakInt     ? index_dtype
              : u.dtype() == DType::WeakFloat ? DType::F32
                                              : u.dtype();
    if (u.op() == Op::SHRINK || u.op() == Op::PARAM || u.op() == Op::BUFFER) {
      // Shape operands stay as they are; the offset of a vector access is a value.
      if (u.op() != Op::SHRINK) {
        src = u.srcs();
        t = u.dtype() == DType::WeakInt ? index_dtype : u.dtype();
      } else {
        src[2] = u.src(2);
      }
    }
    done.emplace(u, make(u.op(), t, src, u.node()->val, u.node()->ext));
  }
  return done.at(ast);
}

}  // namespace beamline
