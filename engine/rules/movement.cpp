// Movement ops and indexing of values (M1-M8), and operations on vectors of one value (Z3).
#include <algorithm>

#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;

bool is_uniform(UOp stack) {
  for (size_t i = 1; i < stack.nsrc(); i++)
    if (!(stack.src(i) == stack.src(0))) return false;
  return stack.nsrc() > 0;
}
bool scalar_indices(UOp index) {
  for (size_t i = 1; i < index.nsrc(); i++)
    if (!index.src(i).shape().empty() || index.src(i).is_invalid()) return false;
  return true;
}

UOp merge_reshapes(UOp u, UOp x) { return rebuild(u, std::vector<UOp>{x, u.src(1)}); }
UOp no_reshape(UOp u, UOp x) { return std::ranges::equal(u.shape(), x.shape()) ? x : UOp{}; }
UOp merge_permutes(UOp u, UOp x) {
  const Ints &outer = u.ints(), &inner = u.src(0).ints();
  Ints axes;
  for (int64_t a : outer) axes.push_back(inner[static_cast<size_t>(a)]);
  return make(Op::PERMUTE, u.dtype(), {x}, 0, intern(axes));
}
UOp no_permute(UOp u, UOp x) {
  return std::ranges::is_sorted(u.ints()) ? x : UOp{};  // a permutation: the identity
}

// (v[0], v[1], ...) of a whole value v
UOp restack(UOp u) {
  const UOp first = u.nsrc() > 0 ? u.src(0) : UOp{};
  if (!first || first.op() != Op::INDEX || first.nsrc() != 2) return {};
  const UOp v = first.src(0);
  if (v.addrspace() != AddrSpace::None || v.shape().empty() ||
      v.shape()[0] != static_cast<int64_t>(u.nsrc()))
    return {};
  for (size_t i = 0; i < u.nsrc(); i++) {
    const UOp e = u.src(i);
    if (e.op() != Op::INDEX || e.nsrc() != 2 || !(e.src(0) == v) ||
        !e.src(1).is_const(static_cast<int64_t>(i)))
      return {};
  }
  return v;
}
// (a, b, ...)[const]
UOp pick(UOp u, UOp stack, UOp k) {
  if (!is_int(k.dtype()) || k.ival() < 0 || k.ival() >= static_cast<int64_t>(stack.nsrc()))
    return {};
  const UOp element = stack.src(static_cast<size_t>(k.ival()));
  if (u.nsrc() == 2) return element;
  std::vector<UOp> src{element};
  for (size_t i = 2; i < u.nsrc(); i++) src.push_back(u.src(i));
  return rebuild(u, src);
}
// v[i...][j...]
UOp concatenate(UOp u, UOp inner) {
  if (!scalar_indices(inner) || !scalar_indices(u) || u.nsrc() < 2) return {};
  std::vector<UOp> src = inner.srcs();
  for (size_t i = 1; i < u.nsrc(); i++) src.push_back(u.src(i));
  return rebuild(u, src);
}
// v[indices][j] with a vector of indices: v[indices[j]]
UOp index_the_index(UOp u, UOp inner) {
  if (inner.nsrc() != 2 || u.nsrc() < 2 || !scalar_indices(u)) return {};
  const UOp indices = inner.src(1);
  if (indices.is_invalid() || indices.shape().size() != u.nsrc() - 1) return {};
  std::vector<UOp> src{indices};
  for (size_t i = 1; i < u.nsrc(); i++) src.push_back(u.src(i));
  const UOp index = make(Op::INDEX, indices.dtype(), src);
  return rebuild(u, std::vector<UOp>{inner.src(0), index});
}

UOp lanewise(UOp u, UOp a, UOp b) {
  if (a.nsrc() != b.nsrc() || !is_uniform(a) || !is_uniform(b)) return {};
  const UOp one = make(u.op(), u.dtype(), {a.src(0), b.src(0)});
  return stack(std::vector<UOp>(a.nsrc(), one));
}

// clang-format off
constexpr RuleOf<void> table[] = {
    law("reshape-reshape", node(Op::RESHAPE, node(Op::RESHAPE, x, y), z).as("u"), [](U u, X x_, Y, Z) { return merge_reshapes(u, x_); }),
    law("reshape-same",    node(Op::RESHAPE, x, y).as("u"),                       [](U u, X x_, Y)    { return no_reshape(u, x_); }),
    law("permute-permute", node(Op::PERMUTE, node(Op::PERMUTE, x)).as("u"),       [](U u, X x_)       { return merge_permutes(u, x_); }),
    law("permute-same",    node(Op::PERMUTE, x).as("u"),                          [](U u, X x_)       { return no_permute(u, x_); }),
    law("stack-of-parts",  node(Op::STACK, node(Op::INDEX, x, k)).tail().as("u"), [](U u, X, K)       { return restack(u); }),
    law("stack-part",      node(Op::INDEX, node(Op::STACK).tail().as("x"), k).tail().as("u"), [](U u, X x_, K k_) { return pick(u, x_, k_); }),
    law("index-index",     node(Op::INDEX, node(Op::INDEX).tail().as("x")).tail().as("u"), [](U u, X x_) { return concatenate(u, x_); }),
    law("index-vector",    node(Op::INDEX, node(Op::INDEX).tail().as("x")).tail().as("u"), [](U u, X x_) { return index_the_index(u, x_); }),
    law("uniform-stacks",  ordered(node(ops::binary, node(Op::STACK).tail().as("x"), node(Op::STACK).tail().as("y"))).as("u"), [](U u, X x_, Y y_) { return lanewise(u, x_, y_); }),
};
// clang-format on

}  // namespace

const Rules<>& movement_rules() {
  static const Rules<> r(table);
  return r;
}

}  // namespace beamline
