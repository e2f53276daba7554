// Rules without a scalar value: memory, control, reductions, vectors. Each is stated by an example,
// each that only holds under a condition also by an example where it must not fire.
#include <gtest/gtest.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rewrite/rewriter.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

class Control : public ::testing::Test {
 protected:
  UOp buffer_of(int64_t slot, int64_t n, DType t = DType::F32) {
    ParamArg a;
    a.slot = slot;
    const int64_t shape[] = {n};
    return param(a, t, shape);
  }
  UOp at(UOp b, UOp index) { return make(Op::INDEX, b.dtype(), {b, index}); }
  UOp store(UOp index, UOp value) { return make(Op::STORE, DType::Void, {index, value}); }
  UOp end(UOp body, std::initializer_list<UOp> ranges) {
    std::vector<UOp> src{body};
    src.insert(src.end(), ranges.begin(), ranges.end());
    return make(Op::END, DType::Void, src);
  }
  UOp sum(Op op, UOp v, std::initializer_list<UOp> ranges) {
    return reduce(op, v, {ranges.begin(), ranges.size()}, 0);
  }
  // Only the rule of this name.
  UOp only(std::string_view name, UOp u) {
    for (const Rule* rule : relaxed().list())
      if (rule->name == name) return MatcherBase({rule}).rewrite(u, nullptr, nullptr);
    ADD_FAILURE() << "no rule " << name;
    return {};
  }
  void same(UOp got, UOp want) {
    ASSERT_TRUE(got);
    EXPECT_TRUE(got == want) << print_uops(got) << "instead of\n" << print_uops(want);
  }

  Arena arena;
  Arena::Scope scope{arena};
  UOp i = range(8, 0, AxisType::LOOP), one = range(1, 1, AxisType::LOOP),
      r = range(16, 2, AxisType::REDUCE);
  UOp x = buffer_of(1, 16), out = buffer_of(0, 8), noop = make(Op::NOOP, DType::Void, {});
};

TEST_F(Control, AccessesOfPoisonVanish) {
  same(only("invalid-store", store(at(out, invalid()), fconst(1, DType::F32))), noop);
  EXPECT_FALSE(only("invalid-store", store(at(out, i), fconst(1, DType::F32))));
  const UOp load = make(Op::LOAD, DType::F32, {at(x, invalid())});
  same(only("invalid-load", load), fconst(0, DType::F32));
  const UOp alternative = fconst(3, DType::F32);
  same(only("invalid-load",
            make(Op::LOAD, DType::F32, {at(x, invalid()), alternative, bool_const(true)})),
       alternative);
  same(only("store-invalid", store(at(out, i), invalid())), noop);
}
TEST_F(Control, AGateThatIsKnownIsNone) {
  const UOp other = fconst(3, DType::F32);
  const auto load = [&](UOp address, UOp gate) {
    return make(Op::LOAD, DType::F32, {address, other, gate});
  };
  same(only("load-gate", load(at(x, i), bool_const(true))), make(Op::LOAD, DType::F32, {at(x, i)}));
  same(only("load-gate", load(at(x, i), bool_const(false))), other);
  EXPECT_FALSE(only("load-gate", load(at(x, i), i < iconst(5))));
  const UOp two[] = {iconst(0), iconst(1)};  // one value for two lanes
  EXPECT_FALSE(only("load-gate", load(at(x, stack(two)), bool_const(false))));
}
TEST_F(Control, AStoreOfWhatIsThereVanishes) {
  same(only("store-load", store(at(out, i), make(Op::LOAD, DType::F32, {at(out, i)}))), noop);
  EXPECT_FALSE(only("store-load", store(at(out, i), make(Op::LOAD, DType::F32, {at(x, i)}))));
}
TEST_F(Control, RangesOfSizeOneEndNothing) {
  const UOp body = store(at(out, i), fconst(1, DType::F32));
  same(simplify(end(body, {i, one})), end(body, {i}));
  same(only("end-constant", end(body, {})), body);
  same(simplify(sum(Op::ADD, at(x, one), {one})), at(x, iconst(0)));
  same(only("end-nothing", end(noop, {i})), noop);
}
TEST_F(Control, GroupsAreFlat) {
  const UOp a = store(at(out, i), fconst(1, DType::F32)),
            b = store(at(x, i), fconst(2, DType::F32));
  const UOp inner[] = {a, noop, b}, outer[] = {make(Op::GROUP, DType::Void, inner), a},
            flat[] = {a, b, a};
  same(only("flatten", make(Op::GROUP, DType::Void, inner)), make(Op::GROUP, DType::Void, {a, b}));
  same(simplify(make(Op::SINK, DType::Void, outer)), make(Op::SINK, DType::Void, flat));
  same(only("group-one", make(Op::GROUP, DType::Void, {a})), a);
  same(only("after-nothing", make(Op::AFTER, DType::F32, {x})), x);
}
TEST_F(Control, FactorsLeaveIntegerSums) {
  const UOp v = buffer_of(1, 16, DType::I32), k = buffer_of(2, 8, DType::I32);
  const UOp factor = at(k, i);
  same(only("reduce-factor", sum(Op::ADD, at(v, r) * factor, {r})),
       sum(Op::ADD, at(v, r), {r}) * factor);
  EXPECT_FALSE(only("reduce-factor", sum(Op::ADD, at(v, r) * at(v, r / iconst(2)), {r})));
  EXPECT_FALSE(only("reduce-factor", sum(Op::MAX, at(v, r) * factor, {r})));
  EXPECT_FALSE(only("reduce-factor", sum(Op::ADD, at(x, r) * at(x, i), {r})))
      << "floats would round differently";
}
TEST_F(Control, UnusedRangesAreCounted) {
  const UOp v = at(x, i), r2 = range(4, 3, AxisType::REDUCE);
  same(only("reduce-unused", sum(Op::ADD, v, {r})), v * fconst(16, DType::F32));
  same(only("reduce-unused", sum(Op::ADD, at(x, r), {r, r2})),
       sum(Op::ADD, at(x, r), {r}) * fconst(4, DType::F32));
  same(only("reduce-unused", sum(Op::MAX, v, {r})), v);
  EXPECT_FALSE(only("reduce-unused", sum(Op::MUL, v, {r})));
  EXPECT_FALSE(only("reduce-unused", sum(Op::ADD, at(x, r), {r})));
}
TEST_F(Control, VectorsOfConstantsFold) {
  const auto lanes = [](std::initializer_list<int64_t> v) {
    std::vector<UOp> e;
    for (int64_t k : v) e.push_back(iconst(k));
    return stack(e);
  };
  const UOp v = lanes({0, 1, 2, 3});
  same(only("fold-stack-2", v * iconst(4)), lanes({0, 4, 8, 12}));
  same(only("fold-stack-2", v + lanes({5, 5, 5, 6})), lanes({5, 6, 7, 9}));
  same(only("fold-stack-1", alu(Op::NEG, {v})), lanes({0, -1, -2, -3}));
  const UOp bools[] = {bool_const(false), bool_const(false), bool_const(true), bool_const(true)};
  same(only("fold-stack-right", iconst(1) < v), stack(bools));
  same(only("fold-stack-3", where(stack(bools), v, iconst(9))), lanes({9, 9, 2, 3}));
  EXPECT_FALSE(only("fold-stack-2", v * i));
  EXPECT_FALSE(only("fold-stack-2", v / lanes({1, 1, 0, 1})));
}

// No rule may change a shape: a constant is a scalar, a vector times zero is a vector.
TEST_F(Control, ShapesAreKept) {
  const int64_t four[] = {4};
  ParamArg a;
  a.slot = 5;
  const UOp v = param(a, DType::I32, four), s = variable("s", 0, 7, DType::I32);
  const UOp zero = iconst(0, DType::I32), lane_less = v < v;
  const UOp shaped[] = {v * zero,
                        v / v,
                        v ^ v,
                        v % iconst(1, DType::I32),
                        where(lane_less, s, s),
                        (v + s) + v * iconst(-1, DType::I32),
                        v & zero,
                        lane_less | bool_const(true),
                        where(bool_const(true), s, v),
                        where(v < s, invalid(), s)};
  for (UOp u : shaped) {
    const UOp t = simplify(u);
    ASSERT_TRUE(std::ranges::equal(t.shape(), u.shape())) << print_uops(u) << "became\n"
                                                          << print_uops(t);
  }
  same(simplify(v * iconst(1, DType::I32) + zero), v);
}

// Gates and what they guard.
TEST_F(Control, ConditionsHoldWhereTheyGuard) {
  const UOp j = range(64, 4, AxisType::LOOP);
  const auto gate = [](UOp c, UOp index) { return where(c, index, invalid()); };
  same(simplify(gate(j < iconst(8), j / iconst(8) + j)), gate(j < iconst(8), j));
  same(simplify(gate(j < iconst(8), j % iconst(8))), gate(j < iconst(8), j));
  same(simplify(where((j < iconst(8)) & (i < iconst(3)), where(i < iconst(3), j, i), iconst(1))),
       where((i < iconst(3)) & (j < iconst(8)), j, iconst(1)));
  same(simplify((j < iconst(8)) & (j / iconst(4) < iconst(5))), j < iconst(8));
  same(simplify((iconst(3) < j) & (j < iconst(5))), alu(Op::CMPEQ, {j, iconst(4)}));
  EXPECT_TRUE(simplify((iconst(5) < j) & (j < iconst(6))).is_const(0));
  EXPECT_TRUE(simplify((iconst(5) < j) | (j < iconst(9))).is_const(1));
}
TEST_F(Control, TwoGatesBecomeOne) {
  const UOp a = where(i < iconst(3), i, invalid()), b = where(r < iconst(5), r, invalid());
  same(simplify(a * iconst(16) + b),
       where((i < iconst(3)) & (r < iconst(5)), i * iconst(16) + r, invalid()));
}

// A store of what is there, but for where a condition holds: a gated store.
TEST_F(Control, KeptValuesAreNotStored) {
  const UOp c = variable("c", 0, 1, DType::Bool), v = fconst(2, DType::F32), here = at(out, i);
  const auto gated = [&](UOp condition) {
    return store(at(out, where(condition, i, invalid())), v);
  };
  same(only("store-kept", store(here, where(c, v, here))), gated(c));
  same(only("store-kept-else", store(here, where(c, here, v))), gated(logical_not(c)));
  same(only("store-gate", store(here, make(Op::WHERE, DType::F32, {c, v, invalid()}))), gated(c));
  const UOp g = variable("g", 0, 1, DType::Bool), there = at(out, where(g, i, invalid()));
  same(only("store-kept", store(there, where(c, v, there))), gated(g & c));
  EXPECT_FALSE(only("store-kept", store(here, where(c, v, at(x, i)))));
  const UOp load = make(Op::LOAD, DType::F32, {here});
  same(only("store-kept-load", store(here, where(c, v, load))),
       make(Op::STORE, DType::Void, {here, v, c}));
  same(only("store-kept-load-else", store(here, where(c, load, v))),
       make(Op::STORE, DType::Void, {here, v, logical_not(c)}));
  EXPECT_FALSE(only("store-kept-load", make(Op::STORE, DType::Void, {here, where(c, v, load), g})))
      << "it has a gate";
}
TEST_F(Control, AfterWaitsForEffects) {
  const UOp a = store(at(out, i), fconst(1, DType::F32));
  const UOp group = make(Op::GROUP, DType::Void, {a, noop}),
            total = at(x, i) + fconst(1, DType::F32);
  same(only("after-effects", make(Op::AFTER, DType::F32, {x, group})),
       make(Op::AFTER, DType::F32, {x, a}));
  same(only("after-effects", make(Op::AFTER, DType::F32, {x, total, r, r})),
       make(Op::AFTER, DType::F32, {x, i, r}));
  same(simplify(make(Op::AFTER, DType::F32, {x, noop})), x);
  EXPECT_FALSE(only("after-effects", make(Op::AFTER, DType::F32, {x, a, r})));
  const UOp load = make(Op::LOAD, DType::F32, {at(x, i)});
  EXPECT_FALSE(only("after-effects", make(Op::AFTER, DType::F32, {x, load})))
      << "what follows may overwrite what is read";
}

class Shapes : public Control {
 protected:
  UOp reshape(UOp u, std::initializer_list<int64_t> s) {
    return make(Op::RESHAPE, u.dtype(), {u, dims(std::span(s.begin(), s.size()))});
  }
  UOp permute(UOp u, Ints axes) {
    return make(Op::PERMUTE, u.dtype(), {u}, 0, intern(std::move(axes)));
  }
  UOp lanes(std::initializer_list<int64_t> v) {
    std::vector<UOp> e;
    for (int64_t k : v) e.push_back(iconst(k));
    return stack(e);
  }
};
TEST_F(Shapes, MovementsMerge) {
  const UOp v = reshape(x, {2, 8}), cube = reshape(x, {2, 2, 4});
  same(only("reshape-reshape", reshape(v, {4, 4})), reshape(x, {4, 4}));
  same(only("reshape-same", reshape(v, {2, 8})), v);
  EXPECT_FALSE(only("reshape-same", reshape(x, {2, 8})));
  same(only("permute-permute", permute(permute(cube, {2, 0, 1}), {1, 2, 0})),
       permute(cube, {0, 1, 2}));
  same(only("permute-permute", permute(permute(cube, {2, 0, 1}), {0, 2, 1})),
       permute(cube, {2, 1, 0}));
  same(only("permute-same", permute(cube, {0, 1, 2})), cube);
  EXPECT_FALSE(only("permute-same", permute(v, {1, 0})));
}
TEST_F(Shapes, IndicesOfVectors) {
  const UOp v = lanes({5, 6, 7}) * i, k = variable("k", 0, 2);
  const auto part = [](UOp u, std::initializer_list<UOp> at) {
    std::vector<UOp> src{u};
    src.insert(src.end(), at.begin(), at.end());
    return make(Op::INDEX, u.dtype(), src);
  };
  same(only("stack-part", part(lanes({5, 6, 7}), {iconst(1)})), iconst(6));
  // A vector keeps its shape, poisoned or not: its element is what becomes poison.
  const UOp poison[] = {invalid()};
  same(only("stack-part", part(stack(poison), {iconst(0)})), invalid());
  EXPECT_FALSE(only("stack-part", part(lanes({5, 6, 7}), {k})));
  EXPECT_FALSE(only("stack-part", part(lanes({5, 6, 7}), {iconst(3)}))) << "outside";
  const UOp parts[] = {part(v, {iconst(0)}), part(v, {iconst(1)}), part(v, {iconst(2)})};
  same(only("stack-of-parts", stack(parts)), v);
  const UOp swapped[] = {parts[1], parts[0], parts[2]};
  EXPECT_FALSE(only("stack-of-parts", stack(swapped)));
  EXPECT_FALSE(only("stack-of-parts", stack(std::span(parts, 2)))) << "not all of it";
  const int64_t shape[] = {4, 16};
  ParamArg a;
  a.slot = 3;
  const UOp table = param(a, DType::F32, shape);
  same(only("index-index", part(part(table, {k}), {i})), part(table, {k, i}));
  same(only("index-vector", part(part(x, {v}), {k})), part(x, {part(v, {k})}));
  EXPECT_FALSE(only("index-index", part(part(x, {v}), {k}))) << "a vector of indices";
  const UOp twos[] = {i, i}, threes[] = {k, k}, sums[] = {i + k, i + k}, mixed[] = {i, k};
  same(only("uniform-stacks", stack(twos) + stack(threes)), stack(sums));
  EXPECT_FALSE(only("uniform-stacks", stack(twos) + stack(mixed)));
}

// A sum and a maximum of a value that does not change: up to rounding, an exact one is stated
// above.
TEST_F(Control, RelaxedRulesOfNumbers) {
  const UOp f = variable("f", 0, 0, DType::F32), g = variable("g", 0, 0, DType::F32);
  const UOp unit = fconst(1, DType::F32), zero = fconst(0, DType::F32);
  const auto over = [](UOp a, UOp b) { return alu(Op::FDIV, {a, b}); };
  const auto relaxed_form = [](UOp u) { return simplify(u, relaxed_matcher()); };
  EXPECT_TRUE(relaxed_form(over(f, f)) == unit);
  EXPECT_TRUE(relaxed_form(over(f * g, g)) == f);
  EXPECT_TRUE(relaxed_form(f * zero) == zero);
  EXPECT_TRUE(relaxed_form(over(over(f, g), f + g)) == over(f, g * (f + g)));
  EXPECT_TRUE(relaxed_form(over(f, f + unit)) ==
              relaxed_form(unit - alu(Op::RECIPROCAL, {f + unit})));
  for (UOp u : {over(f, f), over(f * g, g), f * zero, over(over(f, g), f + g), over(f, f + unit)})
    EXPECT_TRUE(simplify(u) == u) << "strict: " << print_uops(u);
}

}  // namespace
}  // namespace beamline
