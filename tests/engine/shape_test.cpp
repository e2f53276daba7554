// Symbolic dims: bounded variables in shapes, in bounds of what is indexed by them, and in keys.
#include "engine/ir/shape.h"

#include <gtest/gtest.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

class SymbolicShape : public ::testing::Test {
 protected:
  static UOp tensor(int64_t slot, std::vector<UOp> dims_of) {
    ParamArg a;
    a.slot = slot;
    return make(Op::PARAM, DType::F32, {stack(dims_of)}, 0, intern(a));
  }
  static UOp reshape(UOp u, std::vector<UOp> to) {
    return make(Op::RESHAPE, u.dtype(), {u, stack(to)});
  }
  static UOp c(int64_t v) { return iconst(v); }
  Arena arena;
  Arena::Scope scope{arena};
  UOp n = variable("n", 1, 10), m = variable("m", 1, 10);
  UOp x = tensor(0, {n, c(4)}), y = tensor(1, {c(1), c(4)});
};

TEST_F(SymbolicShape, IsDerivedThroughEveryOp) {
  using Dims = std::vector<UOp>;
  EXPECT_EQ(Ints(x.shape().begin(), x.shape().end()), (Ints{10, 4}));
  EXPECT_TRUE(symbolic_shape(x) == (Dims{n, c(4)}));
  EXPECT_TRUE(symbolic_shape(x + y) == (Dims{n, c(4)}));
  EXPECT_TRUE(symbolic_shape(y * x) == (Dims{n, c(4)}));
  EXPECT_TRUE(symbolic_shape(reshape(x, {n * c(4)})) == (Dims{n * c(4)}));
  EXPECT_EQ(reshape(x, {n * c(4)}).shape()[0], 40);
  EXPECT_TRUE(symbolic_shape(make(Op::PERMUTE, DType::F32, {x}, 0, intern(Ints{1, 0}))) ==
              (Dims{c(4), n}));
  EXPECT_TRUE(symbolic_shape(make(Op::EXPAND, DType::F32, {y, stack(Dims{m})})) ==
              (Dims{m, c(1), c(4)}));
  EXPECT_TRUE(symbolic_shape(reduce(Op::ADD, x, {}, 1)) == (Dims{c(4)}));
  const UOp offsets = dims(Ints{0, 0});
  EXPECT_TRUE(symbolic_shape(make(Op::SHRINK, DType::F32, {x, offsets, stack(Dims{m, c(2)})})) ==
              (Dims{m, c(2)}));
  const UOp i = range(n, 0, AxisType::LOOP);
  EXPECT_TRUE(symbolic_shape(make(Op::INDEX, DType::F32, {x, i})) == (Dims{c(4)}));
  EXPECT_TRUE(symbolic_shape(make(Op::STAGE, DType::F32,
                                  {make(Op::INDEX, DType::F32, {x, i, c(0)}), i})) == (Dims{n}));
}
TEST_F(SymbolicShape, DimsThatOnlyHaveTheSameBoundDoNotBroadcast) {
  EXPECT_FALSE(mismatched_dims(x + y));
  EXPECT_FALSE(mismatched_dims(x * tensor(2, {n, c(4)})));
  const UOp wrong = x + tensor(2, {m, c(4)});
  EXPECT_TRUE(mismatched_dims(wrong * y) == wrong);
}
TEST_F(SymbolicShape, BoundsFollowTheVariables) {
  const UOp i = range(n, 0, AxisType::LOOP), j = range(c(4), 1, AxisType::LOOP);
  EXPECT_EQ(i.vmin(), 0);
  EXPECT_EQ(i.vmax(), 9);
  EXPECT_EQ((i * c(4) + j).vmax(), 39);
  EXPECT_TRUE(simplify((i * n + range(n, 2, AxisType::LOOP)) % n) == range(n, 2, AxisType::LOOP));
  EXPECT_TRUE(simplify((i * c(4) + j) / c(4)) == i);
  EXPECT_TRUE(simplify(i / n).is_const(0));
  EXPECT_TRUE(simplify(i < n).op() == Op::CMPLT) << "its bounds do not tell";
}
TEST_F(SymbolicShape, KeysHoldTheExpressionsAndNotTheNames) {
  const auto kernel = [](UOp end, UOp size) {
    const UOp i = range(end, 0, AxisType::LOOP);
    ParamArg out, in;
    in.slot = 1;
    const UOp o = make(Op::PARAM, DType::F32, {stack(std::vector<UOp>{size})}, 0, intern(out)),
              p = make(Op::PARAM, DType::F32, {stack(std::vector<UOp>{size})}, 0, intern(in));
    const UOp store =
        make(Op::STORE, DType::Void,
             {make(Op::INDEX, DType::F32, {o, i}), make(Op::INDEX, DType::F32, {p, i})});
    return make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, i})});
  };
  const UOp k = kernel(n, n * c(4));
  EXPECT_EQ(kernel_key(k), kernel_key(kernel(m, m * c(4)))) << "a name is not part of a key";
  EXPECT_NE(kernel_key(k), kernel_key(kernel(c(10), c(40))));
  EXPECT_NE(kernel_key(k), kernel_key(kernel(variable("n", 1, 11), variable("n", 1, 11) * c(4))));
  EXPECT_NE(kernel_key(kernel(n, m)), kernel_key(kernel(n, n)));
  const auto back = parse_uops(print_uops(k));
  ASSERT_TRUE(std::holds_alternative<UOp>(back));
  EXPECT_TRUE(std::get<UOp>(back) == k);
}

}  // namespace
}  // namespace beamline
