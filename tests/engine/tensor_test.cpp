// TensorOps: the shapes of what it builds, its refusals, and values against plain loops.
#include "engine/tensor/tensor_ops.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "engine/ir/arena.h"
#include "tests/engine/tensor_eval.h"

namespace beamline {
namespace {

using test::Tensor;
using Axes = TensorOps::Axes;

class TensorTest : public ::testing::Test {
 protected:
  UOp input(int64_t slot, Ints shape, DType t = DType::F32) {
    ParamArg a;
    a.slot = slot;
    return param(a, t, shape);
  }
  static Tensor counting(Ints shape) {
    Tensor t{shape, {}};
    for (int64_t i = 0; i < test::numel(shape); i++) t.data.push_back(static_cast<double>(i));
    return t;
  }
  static Tensor random(Ints shape, unsigned seed) {
    std::mt19937 rng(seed);
    Tensor t{shape, {}};
    for (int64_t i = 0; i < test::numel(shape); i++)
      t.data.push_back(static_cast<float>(static_cast<double>(rng() % 2000) / 1000.0 - 1));
    return t;
  }
  static Ints shape(UOp u) { return {u.shape().begin(), u.shape().end()}; }
  Tensor eval(UOp u, const std::vector<Tensor>& in) { return test::evaluate(u, in).front(); }

  Arena arena_;
  Arena::Scope scope_{arena_};
  TensorOps ops_;
};

TEST_F(TensorTest, MatmulIsOneReductionOverProducts) {
  const UOp r = ops_.matmul(input(0, {4, 5}), input(1, {5, 6}));
  ASSERT_TRUE(r) << ops_.take_error();
  EXPECT_EQ(shape(r), (Ints{4, 6}));
  EXPECT_EQ(r.op(), Op::REDUCE);
  EXPECT_EQ(r.reduce_dims(), 1U);
  EXPECT_EQ(r.src(0).op(), Op::MUL);
}

TEST_F(TensorTest, MatmulValues) {
  struct Case {
    Ints a, b, out;
  };
  const Case cases[] = {{{3}, {3}, {}},
                        {{3}, {3, 2}, {2}},
                        {{4, 3}, {3}, {4}},
                        {{4, 3}, {3, 2}, {4, 2}},
                        {{2, 4, 3}, {3, 2}, {2, 4, 2}},
                        {{5, 1, 4, 3}, {2, 3, 2}, {5, 2, 4, 2}},
                        {{1, 1}, {1, 1}, {1, 1}},
                        {{2, 0}, {0, 3}, {2, 3}}};
  for (const Case& c : cases) {
    const Tensor a = random(c.a, 1), b = random(c.b, 2);
    const UOp r = ops_.matmul(input(0, c.a), input(1, c.b));
    ASSERT_TRUE(r) << ops_.take_error();
    EXPECT_EQ(shape(r), c.out);
    const Tensor got = eval(r, {a, b});
    // Element by element, with vectors read as one row or one column.
    Ints full = c.out;
    if (c.a.size() == 1) full.insert(full.end() - (c.b.size() == 1 ? 0 : 1), 1);
    if (c.b.size() == 1) full.push_back(1);
    const Ints sa = c.a.size() == 1 ? Ints{1, c.a[0]} : c.a,
               sb = c.b.size() == 1 ? Ints{c.b[0], 1} : c.b;
    const Tensor ma{sa, a.data}, mb{sb, b.data};
    for (int64_t i = 0; i < test::numel(full); i++) {
      Ints at = test::unravel(i, full);
      double sum = 0;
      for (int64_t k = 0; k < sa.back(); k++) {
        Ints ia = at, ib = at;
        ia.back() = k, ib[ib.size() - 2] = k;
        sum += test::element(ma, std::span(ia).last(std::max(sa.size(), ia.size()))) *
               test::element(mb, std::span(ib).last(std::max(sb.size(), ib.size())));
      }
      EXPECT_NEAR(got.data[static_cast<size_t>(i)], sum, 1e-5);
    }
  }
}

TEST_F(TensorTest, AccumulationTypes) {
  const Axes all{{}, true};
  struct Case {
    DType in, accumulated, out;
  };
  const Case cases[] = {
      {DType::F16, DType::F32, DType::F16},  {DType::BF16, DType::F32, DType::BF16},
      {DType::F32, DType::F32, DType::F32},  {DType::F64, DType::F64, DType::F64},
      {DType::Bool, DType::I32, DType::I32}, {DType::I8, DType::I32, DType::I32},
      {DType::U16, DType::I32, DType::I32},  {DType::U32, DType::U32, DType::U32},
      {DType::I64, DType::I64, DType::I64},  {DType::Fp8e4m3, DType::F32, DType::Fp8e4m3}};
  for (const Case& c : cases) {
    const UOp m = ops_.matmul(input(0, {2, 3}, c.in), input(1, {3, 2}, c.in));
    const UOp s = ops_.sum(input(0, {2, 3}, c.in), all, false);
    ASSERT_TRUE(m && s) << ops_.take_error();
    EXPECT_EQ(m.dtype(), c.out);
    EXPECT_EQ(s.dtype(), c.out);
    for (UOp root : {m, s})
      for (UOp u : toposort(root))
        if (u.op() == Op::REDUCE) {
          EXPECT_EQ(u.dtype(), c.accumulated) << dtype_name(c.in);
        }
  }
  EXPECT_EQ(ops_.mean(input(0, {2, 3}, DType::I64), all, false).dtype(), DType::F32);
  EXPECT_EQ(ops_.mean(input(0, {2, 3}, DType::F16), all, false).dtype(), DType::F16);
}

TEST_F(TensorTest, Promotion) {
  const auto joined = [&](DType a, DType b) {
    return ops_.add(input(0, {2}, a), input(1, {2}, b)).dtype();
  };
  EXPECT_EQ(joined(DType::I8, DType::U8), DType::I16);
  EXPECT_EQ(joined(DType::I8, DType::U32), DType::I64);
  EXPECT_EQ(joined(DType::I64, DType::U64), DType::F32);
  EXPECT_EQ(joined(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(joined(DType::I64, DType::F16), DType::F16);
  EXPECT_EQ(joined(DType::Bool, DType::Bool), DType::Bool);
  const auto literal = [&](DType a, UOp b) { return ops_.mul(input(0, {2}, a), b).dtype(); };
  EXPECT_EQ(literal(DType::F16, iconst(3)), DType::F16);
  EXPECT_EQ(literal(DType::F16, fconst(0.5, DType::WeakFloat)), DType::F16);
  EXPECT_EQ(literal(DType::U8, iconst(3)), DType::U8);
  EXPECT_EQ(literal(DType::I64, fconst(0.5, DType::WeakFloat)), DType::F32);
  EXPECT_EQ(literal(DType::Bool, iconst(3)), DType::I32);
  EXPECT_EQ(ops_.div(input(0, {2}, DType::I64), iconst(2)).dtype(), DType::F32);
}

TEST_F(TensorTest, Refusals) {
  struct Case {
    std::function<UOp()> build;
    std::string message;
  };
  const UOp x = input(0, {2, 3}), b = input(1, {2}, DType::Bool), i = input(2, {2}, DType::U8);
  const Case cases[] = {
      {[&] {
         return ops_.add(x, input(3, {4, 2}));
       },
       "shapes (2, 3) and (4, 2) do not broadcast"},
      {[&] { return ops_.matmul(x, x); }, "matmul of shapes (2, 3) and (2, 3): 3 and 2 differ"},
      {[&] { return ops_.matmul(x, fconst(1, DType::F32)); }, "a scalar is no matrix"},
      {[&] {
         return ops_.matmul(input(3, {2, 4, 3}), input(4, {3, 3, 2}));
       },
       "batches do not broadcast"},
      {[&] {
         return ops_.reshape(x, {4, -1});
       },
       "shape (2, 3) of 6 elements cannot become (4, -1)"},
      {[&] { return ops_.reshape(x, {7}); }, "cannot become (7,) of 7"},
      {[&] {
         return ops_.reshape(x, {-1, -1});
       },
       "only one dim may be -1"},
      {[&] {
         return ops_.permute(x, {0, 0});
       },
       "axis 0 is given twice"},
      {[&] { return ops_.permute(x, {0}); }, "1 axes for shape (2, 3)"},
      {[&] { return ops_.transpose(x, 0, 2); }, "axis 2 is not in -2..1"},
      {[&] {
         return ops_.sum(x, {{-3}, false}, false);
       },
       "axis -3 is not in -2..1"},
      {[&] {
         return ops_.max(input(3, {0, 2}), {{0}, false}, false);
       },
       "an empty axis"},
      {[&] {
         return ops_.expand(x, {2, 4});
       },
       "shape (2, 3) does not expand to (2, 4)"},
      {[&] { return ops_.expand(input(3, {1}), {int64_t{1} << 41}); }, "more than 2^40 elements"},
      {[&] { return ops_.squeeze(x, {1}); }, "axis 1 of shape (2, 3) is 3, not 1"},
      {[&] {
         return ops_.concat({x, input(3, {3, 2})}, 0);
       },
       "do not join along axis 0"},
      {[&] { return ops_.stack({}, 0); }, "nothing to concatenate"},
      {[&] { return ops_.where(x, x, x); }, "the condition is f32, not bool"},
      {[&] { return ops_.sub(b, b); }, "bools cannot be subtracted"},
      {[&] { return ops_.neg(b); }, "bools have no negative"},
      {[&] { return ops_.bitwise(Op::AND, x, x); },
       "bit operations need integers or bools, not f32"},
      {[&] { return ops_.invert(x); }, "'~' needs integers or bools, not f32"},
      {[&] { return ops_.add(i, iconst(300)); }, "300 does not fit u8"},
      {[&] { return ops_.mod(i, iconst(0)); }, "division by zero"},
      {[&] { return ops_.pow(bool_const(true), bool_const(true)); }, "bools have no powers"},
      {[&] { return ops_.bitcast(x, DType::F64); }, "f32 to f64: the last dim of shape"},
      {[&] {
         return ops_.layer_norm(x, input(3, {2}), {}, {{-1}, false}, 1e-5);
       },
       "has shape (2,), the axes have (3,)"},
  };
  for (const Case& c : cases) {
    EXPECT_FALSE(c.build()) << c.message;
    EXPECT_FALSE(ops_.ok());
    EXPECT_NE(ops_.take_error().find(c.message), std::string::npos) << c.message;
  }
  // A null operand passes through without a second message.
  EXPECT_FALSE(ops_.add(UOp{}, x));
  EXPECT_TRUE(ops_.ok());
  EXPECT_TRUE(ops_.split(x, 2, 1).empty());
  EXPECT_EQ(ops_.take_error(), "axis 1 of shape (2, 3) does not split into 2 equal parts");
}

TEST_F(TensorTest, ExpandPlacesAxes) {
  const UOp x = input(0, {3, 1, 2});
  const UOp r = ops_.expand(x, {4, 3, 5, 2});
  ASSERT_TRUE(r);
  EXPECT_EQ(shape(r), (Ints{4, 3, 5, 2}));
  const Tensor in = counting({3, 1, 2}), got = eval(r, {in});
  for (int64_t i = 0; i < test::numel(got.shape); i++) {
    const Ints at = test::unravel(i, got.shape);
    EXPECT_EQ(got.data[static_cast<size_t>(i)], static_cast<double>(at[1] * 2 + at[3]));
  }
}

TEST_F(TensorTest, BandMasksForAllOffsets) {
  const Tensor in = counting({3, 4});
  for (int64_t k = -6; k <= 6; k++) {
    const UOp l = ops_.band(input(0, {3, 4}), k, true), u = ops_.band(input(0, {3, 4}), k, false);
    ASSERT_TRUE(l && u) << ops_.take_error();
    const Tensor lower = eval(l, {in}), upper = eval(u, {in});
    for (int64_t i = 0; i < 3; i++)
      for (int64_t j = 0; j < 4; j++) {
        const auto at = static_cast<size_t>(i * 4 + j);
        EXPECT_EQ(lower.data[at], j <= i + k ? in.data[at] : 0) << k << " " << i << " " << j;
        EXPECT_EQ(upper.data[at], j >= i + k ? in.data[at] : 0) << k << " " << i << " " << j;
      }
  }
}

TEST_F(TensorTest, ConcatKeepsNegativeZero) {
  const UOp r = ops_.concat({input(0, {1}), input(1, {0}), input(2, {2})}, 0);
  const Tensor got = eval(r, {{{1}, {-0.0}}, {{0}, {}}, {{2}, {-0.0, NAN}}});
  ASSERT_EQ(got.data.size(), 3U);
  EXPECT_TRUE(std::signbit(got.data[0]) && std::signbit(got.data[1]) && std::isnan(got.data[2]));
}

// Composite functions against libm at points that include their seams and the ends of the line.
TEST_F(TensorTest, MathAgainstLibm) {
  struct Case {
    const char* name;
    UOp (TensorOps::*build)(UOp);
    double (*reference)(double);
    double tolerance;  // relative, f32
  };
  const Case cases[] = {
      {"exp", &TensorOps::exp, [](double v) { return std::exp(v); }, 2e-6},
      {"tanh", &TensorOps::tanh, [](double v) { return std::tanh(v); }, 4e-7},
      {"erf", &TensorOps::erf, [](double v) { return std::erf(v); }, 4e-7},
      {"sigmoid", &TensorOps::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, 2e-6},
      {"floor", &TensorOps::floor, [](double v) { return std::floor(v); }, 0},
      {"ceil", &TensorOps::ceil, [](double v) { return std::ceil(v); }, 0},
      {"trunc", &TensorOps::trunc, [](double v) { return std::trunc(v); }, 0},
      {"round", &TensorOps::round, [](double v) { return std::nearbyint(v); }, 0},
      {"abs", &TensorOps::abs, [](double v) { return std::fabs(v); }, 0},
      {"sqrt", &TensorOps::sqrt, [](double v) { return std::sqrt(v); }, 2e-7},
      {"sign", &TensorOps::sign, [](double v) { return v > 0   ? 1.0
                                                       : v < 0 ? -1.0
                                                               : v; }, 0},
      {"cos", &TensorOps::cos, [](double v) { return std::cos(v); }, 4e-6},
  };
  std::vector<double> points = {0.0,        -0.0,       0.5,  -0.5,     1.5,       2.5,
                                -2.5,       0.49999997, 1e-8, -1e-8,    0.625,     -0.625,
                                0.99999994, 1,          -1,   INFINITY, -INFINITY, NAN};
  for (int i = -90; i <= 90; i++) points.push_back(static_cast<float>(i * 0.11));
  const Tensor in{{static_cast<int64_t>(points.size())}, [&] {
                    std::vector<double> v;
                    for (double p : points) v.push_back(static_cast<float>(p));
                    return v;
                  }()};
  for (const Case& c : cases) {
    for (const DType t : {DType::F32, DType::F64}) {
      const UOp r = (ops_.*c.build)(input(0, in.shape, t));
      ASSERT_TRUE(r) << c.name;
      EXPECT_EQ(r.dtype(), t);
      const Tensor got = eval(r, {in});
      for (size_t i = 0; i < points.size(); i++) {
        const double x = in.data[i], want = c.reference(x), have = got.data[i];
        if (std::isnan(want) || std::isinf(want)) {
          if (c.name == std::string("cos")) continue;  // of infinities: whatever SIN gives
          EXPECT_TRUE(std::isnan(want) ? std::isnan(have) : have == want)
              << c.name << "(" << x << ") = " << have;
        } else {
          const double tolerance = t == DType::F64 ? std::min(c.tolerance, 4e-15) : c.tolerance;
          EXPECT_NEAR(
              have, want,
              tolerance * std::max(std::fabs(want), c.name == std::string("cos") ? 1.0 : 1e-30))
              << c.name << "(" << x << ") " << dtype_name(t);
        }
      }
    }
  }
}

TEST_F(TensorTest, PowLikeLibm) {
  const double xs[] = {0, 1, -1, 2, -2, 0.5, -8, INFINITY, -INFINITY, NAN},
               ys[] = {0, 1, -1, 2, 3, 0.5, -2.5, 1.0 / 3, INFINITY, -INFINITY, NAN};
  for (double y : ys) {
    Tensor x{{10}, {xs, xs + 10}}, e{{10}, std::vector<double>(10, y)};
    const Tensor got =
        eval(ops_.pow(input(0, {10}, DType::F64), input(1, {10}, DType::F64)), {x, e});
    for (size_t i = 0; i < 10; i++) {
      const double want = std::pow(xs[i], y), have = got.data[i];
      const bool same = std::isnan(want)
                            ? std::isnan(have)
                            : have == want || std::fabs(have - want) <= 1e-12 * std::fabs(want);
      EXPECT_TRUE(same) << xs[i] << "**" << y << " = " << have;
    }
  }
  // Whole constant exponents are products.
  const UOp cube = ops_.pow(input(0, {2}), iconst(3));
  for (UOp u : toposort(cube)) EXPECT_NE(u.op(), Op::EXP2);
  EXPECT_EQ(eval(cube, {{{2}, {-2, 3}}}).data, (std::vector<double>{-8, 27}));
  EXPECT_EQ(eval(ops_.pow(input(0, {1}, DType::I32), iconst(5)), {{{1}, {-3}}}).data[0], -243);
}

}  // namespace
}  // namespace beamline
