// WHERE: constant conditions, equal branches, nests of two (S15, S16, S47-S50, Y13, Y15-Y17, Y20,
// Y21).
#include "engine/rules/rules.h"
#include "engine/rules/rules_internal.h"

namespace beamline {
namespace {
using namespace pat;
using A = Cap<"a">;
inline constexpr Pat a = any("a").bools();
constexpr OpSet pairwise = ops::binary;

// op(where(c,t,f), where(c,v,w)): worth it when one pair of branches folds to a constant.
UOp merge_branches(UOp u, UOp cond, UOp t, UOp f, UOp v, UOp w) {
  if (!(t.is_const() && v.is_const()) && !(f.is_const() && w.is_const())) return {};
  if (t.dtype() != f.dtype() || v.dtype() != w.dtype()) return {};
  const UOp yes[] = {t, v}, no[] = {f, w};
  return where(cond, make(u.op(), derive_dtype(u.op(), yes, u.dtype()), yes),
               make(u.op(), derive_dtype(u.op(), no, u.dtype()), no));
}
UOp with_constant(UOp u, UOp cond, UOp t, UOp f, UOp c) {
  if (!t.is_const() || !f.is_const() || t.dtype() != f.dtype()) return {};
  const bool left = u.src(0).op() == Op::WHERE;
  const UOp yes[] = {left ? t : c, left ? c : t}, no[] = {left ? f : c, left ? c : f};
  return where(cond, make(u.op(), derive_dtype(u.op(), yes, u.dtype()), yes),
               make(u.op(), derive_dtype(u.op(), no, u.dtype()), no));
}

// Branches that are bools used as integers: the selection is one of bools.
UOp of_bools(UOp u, UOp cond, UOp t, UOp f) {
  const auto bit = [](UOp x) -> UOp {
    if (x.is_const() && x.dtype() != DType::Invalid && (x.ival() == 0 || x.ival() == 1))
      return bool_const(x.ival() != 0);
    return x.op() == Op::CAST && x.src(0).dtype() == DType::Bool ? x.src(0) : UOp{};
  };
  const UOp yes = bit(t), no = bit(f);
  return yes && no ? cast(where(cond, yes, no), u.dtype()) : UOp{};
}

// True when u has a value wherever its leaves have: what a WHERE guards may be a division by zero.
bool is_total(UOp root) {
  constexpr size_t limit = 64;
  std::vector<UOp> stack{root};
  for (size_t seen = 0; !stack.empty(); seen++) {
    const UOp v = stack.back();
    stack.pop_back();
    const bool divides = v.op() == Op::FLOORDIV || v.op() == Op::FLOORMOD || v.op() == Op::CDIV ||
                         v.op() == Op::CMOD;
    if (seen > limit || (divides && v.src(1).vmin() <= 0 && v.src(1).vmax() >= 0)) return false;
    if (!ops::elementwise.has(v.op())) continue;
    for (size_t i = 0; i < v.nsrc(); i++) stack.push_back(v.src(i));
  }
  return true;
}
// cast(where(c, t, f)) -> where(c, cast t, cast f) where a branch is a constant: no cast more. A
// selection of bools is better as one cast.
UOp cast_branches(UOp u, UOp cond, UOp t, UOp f) {
  if (t.is_invalid() || f.is_invalid() || u.src(0).dtype() == DType::Bool) return {};
  if (!t.is_const() && !f.is_const()) return {};
  const UOp yes = as_type(as_type(t, u.src(0).dtype()), u.dtype()),
            no = as_type(as_type(f, u.src(0).dtype()), u.dtype());
  return yes.is_const() || no.is_const() ? where(cond, yes, no) : UOp{};
}
UOp guarded(UOp part, UOp result) { return is_total(part) ? result : UOp{}; }

// clang-format off
constexpr RuleOf<void> simple[] = {
    law("where-true",        select(truth, t, f).as("u"),              [](U u, T t_, F)            { return as_type(t_, u.dtype()); }),
    law("where-false",       select(untruth, t, f).as("u"),            [](U u, T, F f_)            { return as_type(f_, u.dtype()); }),
    law("where-same",        select(c, v, v),                          [](C, V v_)                 { return v_; }),
    law("where-bool",        select(c, truth, untruth),                [](C c_)                    { return c_; }),
    law("where-not-bool",    select(c, untruth, truth),                [](C c_)                    { return negation(c_); }),
    law("where-and",         select(a, select(b, t, f), f),            [](A a_, B b_, T t_, F f_)  { return guarded(b_, where(a_ & b_, t_, f_)); }),
    law("where-or",          select(a, t, select(b, t, f)),            [](A a_, B b_, T t_, F f_)  { return guarded(b_, where(a_ | b_, t_, f_)); }),
    law("where-and-not",     select(a, select(b, f, t), f),            [](A a_, B b_, T t_, F f_)  { return guarded(b_, where(a_ & negation(b_), t_, f_)); }),
    law("where-or-not",      select(a, t, select(b, f, t)),            [](A a_, B b_, T t_, F f_)  { return guarded(b_, where(a_ | negation(b_), t_, f_)); }),
    law("where-bool-and",    select(c, t.bools(), untruth),            [](C c_, T t_)              { return guarded(t_, c_ & t_); }),
    law("where-bool-or",     select(c, truth, f.bools()),              [](C c_, F f_)              { return guarded(f_, c_ | f_); }),
    law("where-bool-andnot", select(c, untruth, f.bools()),            [](C c_, F f_)              { return guarded(f_, negation(c_) & f_); }),
    law("where-bool-ornot",  select(c, t.bools(), truth),              [](C c_, T t_)              { return guarded(t_, negation(c_) | t_); }),
};
constexpr RuleOf<void> merging[] = {
    law("where-bools",       select(c, t, f).ints().as("u"),           [](U u, C c_, T t_, F f_)   { return of_bools(u, c_, t_, f_); }),
    law("where-not",         select(negated(c), t, f),                 [](C c_, T t_, F f_)        { return f_.is_invalid() ? UOp{} : where(c_, f_, t_); }),
    law("where-pair",        ordered(node(pairwise, select(c, t, f), select(c, v, any("w")))).as("u"),
                                                                       [](U u, C c_, T t_, F f_, V v_, W w_) { return merge_branches(u, c_, t_, f_, v_, w_); }),
    law("where-constant",    node(pairwise, select(c, t, f), k).as("u"),
                                                                       [](U u, C c_, T t_, F f_, K k_) { return with_constant(u, c_, t_, f_, k_); }),
    law("where-max",         select(xi < y, y, x),                     [](X x_, Y y_)              { return x_.dtype() == y_.dtype() ? maximum(x_, y_) : UOp{}; }),
};
constexpr RuleOf<void> casts[] = {
    law("cast-where",        node(Op::CAST, select(c, t, f)).as("u"),  [](U u, C c_, T t_, F f_)   { return cast_branches(u, c_, t_, f_); }),
};
// clang-format on

}  // namespace

const Rules<>& cast_where_rules() {
  static const Rules<> r(casts);
  return r;
}
const Rules<>& where_rules() {
  static const Rules<> r(simple);
  return r;
}
const Rules<>& where_bound_rules() {
  static const Rules<> r(merging);
  return r;
}

}  // namespace beamline
