// Every rule tests itself: its own pattern is filled with random expressions, the rule alone is
// applied, and both sides are evaluated. Prints how often each rule fired; a rule that never fires
// fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/ir/print.h"
#include "engine/rules/rules.h"
#include "tests/engine/expressions.h"

namespace beamline {
namespace {

using testing::Expressions;

// Rules about memory, control and loops have no scalar value; control_rules_test.cpp states what
// they do.
const std::set<std::string_view> without_value = {
    "invalid-store", "invalid-load",  "store-load",   "store-invalid", "end-constant",
    "end-nothing",   "after-nothing", "group-one",    "flatten",       "reduce-factor",
    "reduce-unused", "fold-stack-1",  "fold-stack-2", "fold-stack-3",  "fold-stack-right"};

bool well_typed(Op op, DType dtype, std::span<const UOp> src) {
  const auto whole_type = [](DType t) { return is_int(t) || t == DType::Bool; };
  const size_t arity = ops::ternary.has(op) ? 3 : ops::binary.has(op) ? 2 : 1;
  if (ops::elementwise.has(op) && src.size() != arity) return false;
  DType joined = DType::Void;
  for (UOp s : src) joined = join(joined, s.dtype());
  if (op == Op::WHERE) return src[0].dtype() == DType::Bool || src[0].is_invalid();
  if (ops::shifts.has(op))
    return is_int(src[0].dtype()) && (is_int(src[1].dtype()) || src[1].is_invalid());
  const OpSet wholes = Op::XOR | Op::AND | Op::OR;
  const OpSet divisions = Op::FLOORDIV | Op::FLOORMOD | Op::CDIV | Op::CMOD;
  const OpSet reals =
      Op::EXP2 | Op::LOG2 | Op::SIN | Op::SQRT | Op::RECIPROCAL | Op::FDIV | Op::POW;
  if (wholes.has(op)) return whole_type(joined) || joined == DType::Invalid;
  if (divisions.has(op)) return is_int(joined) || joined == DType::Invalid;
  if (reals.has(op)) return is_float(joined) || joined == DType::Invalid;
  if (op == Op::NEG || op == Op::SUB || op == Op::TRUNC) return joined != DType::Bool;
  if (op == Op::THREEFRY) return false;
  if (op == Op::BITCAST)
    return src[0].is_invalid() ||
           (dtype_bytes(dtype) == dtype_bytes(src[0].dtype()) && !is_weak(dtype) &&
            !is_weak(src[0].dtype()) && dtype != DType::Bool && src[0].dtype() != DType::Bool);
  if (op == Op::RANGE) return src[0].dtype() == DType::WeakInt;
  return true;
}

// Fills a pattern. Null where the choice made no well-typed node.
class Filler {
 public:
  Filler(Expressions& e, const Pat& p, DType base) : e_(e), p_(p), base_(base) {}
  UOp next() {
    const Step& s = p_.steps[at_++];
    std::vector<UOp> src;
    bool ok = true;
    for (uint8_t i = 0; i < s.nsrc; i++) {
      src.push_back(next());
      ok &= static_cast<bool>(src.back());
    }
    if (!ok) return {};
    if (!s.capture.empty())
      if (const auto it = bound_.find(s.capture); it != bound_.end()) return it->second;
    const UOp u = fill(s, std::move(src));
    if (u && !s.capture.empty()) bound_[s.capture] = u;
    return u;
  }

 private:
  DType type_of(const Step& s) {
    static constexpr DType wholes[] = {DType::WeakInt, DType::WeakInt, DType::I32,
                                       DType::U8,      DType::I64,     DType::U32};
    static constexpr DType mixed[] = {DType::WeakInt, DType::I32, DType::Bool, DType::F32,
                                      DType::WeakFloat};
    switch (s.type) {
      case TypeClass::Int: return is_int(base_) ? base_ : wholes[e_.below(std::size(wholes))];
      case TypeClass::Float: return is_float(base_) ? base_ : DType::F32;
      case TypeClass::Bool: return DType::Bool;
      case TypeClass::Exact: return s.exact;
      case TypeClass::Any: return e_.below(6) == 0 ? mixed[e_.below(std::size(mixed))] : base_;
    }
    return base_;
  }
  UOp fill(const Step& s, std::vector<UOp> src) {
    const DType t = type_of(s);
    if (t == DType::Invalid) return invalid();
    if (s.has_value) {
      if (is_float(t)) return fconst(static_cast<double>(s.value), t);
      const int64_t v = wrap_to(t, s.value);
      return iconst(v == s.value ? v : wrap_to(t, v), t);
    }
    if (s.ops == OpSet(Op::CONST)) return e_.constant(t);
    if (s.any_src && s.ops == ops::all) return e_.of(t, static_cast<int>(e_.below(4)));
    if (s.nsrc == 0) return e_.of(t, 2);  // "any node of these ops": most expressions are one
    if (s.commute && e_.coin()) std::swap(src[0], src[1]);
    Op op = Op::NOOP;
    do op = static_cast<Op>(e_.below(op_count));
    while (!s.ops.has(op));
    if (ops::ternary.has(op) && src.size() != 3) return {};
    DType dtype = derive_dtype(op, src, t);
    if (op == Op::CAST || op == Op::BITCAST) dtype = cast_target(s, op, src[0].dtype());
    if (op == Op::RANGE) dtype = DType::WeakInt;
    if (!well_typed(op, dtype, src)) return {};
    if (s.type == TypeClass::Int && !is_int(dtype)) return {};
    const int64_t val = op == Op::RANGE ? static_cast<int64_t>(AxisType::LOOP) : 0;
    return make(op, dtype, src, val);
  }
  DType cast_target(const Step& s, Op op, DType from) {
    static constexpr DType all[] = {DType::Bool, DType::I8,     DType::U8,  DType::I32,
                                    DType::U32,  DType::I64,    DType::F32, DType::F64,
                                    DType::F16,  DType::WeakInt};
    if (s.type == TypeClass::Bool) return DType::Bool;
    if (op == Op::BITCAST && e_.coin()) return from;
    DType t = all[e_.below(std::size(all))];
    while (s.type == TypeClass::Int && !is_int(t)) t = all[e_.below(std::size(all))];
    return t;
  }

  Expressions& e_;
  const Pat& p_;
  DType base_;
  uint8_t at_ = 0;
  std::map<std::string_view, UOp> bound_;
};

struct Count {
  int fired = 0, compared = 0;
};

Count fuzz(const Rule& rule, int trials, uint64_t seed) {
  static constexpr DType bases[] = {DType::WeakInt, DType::WeakInt, DType::WeakInt,
                                    DType::I32,     DType::U8,      DType::Bool,
                                    DType::F32,     DType::U32,     DType::F64};
  const MatcherBase only({&rule});
  Arena arena;
  Arena::Scope scope(arena);
  Expressions e(seed);
  Count count;
  for (int i = 0; i < trials; i++) {
    arena.reset();
    Filler filler(e, rule.pat, bases[e.below(std::size(bases))]);
    const UOp u = filler.next();
    if (!u) continue;
    const UOp v = only.rewrite(u, nullptr, nullptr);
    if (!v) continue;
    count.fired++;
    EXPECT_TRUE(std::ranges::equal(u.shape(), v.shape()));
    EXPECT_TRUE(v.is_invalid() || u.dtype() == DType::Invalid || u.dtype() == v.dtype())
        << rule.name;
    for (int k = 0; k < 4; k++) {
      const Assignment a = e.values(u);
      const auto want = evaluate(u, a);
      if (!want) continue;
      count.compared++;
      const auto got = evaluate(v, a);
      const bool same = got && *got == *want;
      EXPECT_TRUE(same) << rule.name << "\n" << print_uops(u) << "became\n" << print_uops(v);
      if (!same) return count;
    }
  }
  return count;
}

TEST(RuleFuzz, BothSidesOfEveryRuleAreEqual) {
  std::string table;
  uint64_t seed = 1;
  for (const Rule* r : sym().list()) {
    if (without_value.contains(r->name)) continue;
    Count c;
    for (int round = 0; round < 24 && c.compared < 1000; round++) {
      const Count n = fuzz(*r, 1500, seed++);
      c.fired += n.fired, c.compared += n.compared;
      if (HasFailure()) break;
    }
    table += fmt::format("{:<22} fired {:>6}  compared {:>6}\n", r->name, c.fired, c.compared);
    EXPECT_GT(c.fired, 0) << r->name << " never fires";
    EXPECT_GT(c.compared, 0) << r->name << " was never compared";
  }
  std::fputs(table.c_str(), stdout);
}

TEST(RuleFuzz, ExceptionsAreRules) {
  for (std::string_view name : without_value)
    EXPECT_TRUE(std::ranges::any_of(sym().list(), [&](const Rule* r) { return r->name == name; }))
        << name;
}

TEST(RuleFuzz, NamesAreUnique) {
  std::set<std::string_view> seen;
  for (const Rule* r : sym().list()) EXPECT_TRUE(seen.insert(r->name).second) << r->name;
  EXPECT_GT(seen.size(), 80u);
}

TEST(RuleFuzz, TiersContainEachOther) {
  const auto starts = [](const Rules<>& longer, const Rules<>& shorter) {
    return std::equal(shorter.list().begin(), shorter.list().end(), longer.list().begin());
  };
  EXPECT_TRUE(starts(symbolic_simple(), invalid_rules()));
  EXPECT_TRUE(starts(symbolic(), symbolic_simple()));
  EXPECT_TRUE(starts(sym(), symbolic()));
}

}  // namespace
}  // namespace beamline
