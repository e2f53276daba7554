// What single passes do to small kernels: how many nodes of a kind there are before and after.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/rangeify.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

UOp input(int64_t slot, Ints shape, DType t = DType::F32) {
  ParamArg a;
  a.slot = slot;
  return param(a, t, shape);
}

using Kernel = UOp (*)(TensorOps&);
using Wanted = bool (*)(UOp);

// A kind of node, by name.
struct Kind {
  const char* name;
  Wanted is;
};
bool weak_alu(UOp u) { return ops::alu.has(u.op()) && is_weak(u.dtype()); }
bool weak_literal(UOp u) {  // as an operand
  return ops::binary.has(u.op()) && u.src(1).is_const() && is_weak(u.src(1).dtype());
}
template <Op op>
bool is(UOp u) {
  return u.op() == op;
}
template <Op op>
bool scalar(UOp u) {
  return u.op() == op && (op == Op::STORE ? u.src(0) : u).shape().empty();
}
template <Op op>
bool vector(UOp u) {
  return u.op() == op && !scalar<op>(u);
}
bool small_float_alu(UOp u) {
  return ops::alu.has(u.op()) && u.op() != Op::WHERE &&
         (u.dtype() == DType::BF16 || u.dtype() == DType::Fp8e4m3);
}
bool half_cast(UOp u) { return u.op() == Op::CAST && u.src(0).dtype() == DType::F16; }
bool double_end(UOp u) { return u.op() == Op::END && u.nsrc() > 2; }
bool poison(UOp u) { return u.is_invalid(); }

struct Case {
  const char* pass;
  const char* target;
  const char* opts;
  Kernel kernel;
  const char* kind;
  Wanted is;
  int before, after;
};

UOp relu_sum(TensorOps& t) { return t.relu(t.add(input(0, {4, 8}), input(1, {4, 8}))); }
UOp padded(TensorOps& t) {
  return t.add(t.pad(input(0, {6}), {2}, {3}, fconst(0, DType::F32)), input(1, {11}));
}
UOp regrouped(TensorOps& t) {  // a row of 24 as 4 columns of 6
  return t.add(t.reshape(t.transpose(input(0, {6, 4}), 0, 1), {24}), input(1, {24}));
}
UOp rows(TensorOps& t) { return t.sum(input(0, {4, 16}), {{1}, false}, false); }
UOp small_product(TensorOps& t) {
  return t.mul(input(0, {8}, DType::BF16), input(1, {8}, DType::BF16));
}
UOp half_exp2(TensorOps& t) { return t.exp2(input(0, {8}, DType::F16)); }
UOp integer_quotient(TensorOps& t) {
  return t.floordiv(input(0, {8}, DType::I32), input(1, {8}, DType::I32));
}

const Case cases[] = {
    // A remainder of a range makes two ranges of it.
    {"apply opts", "emulator:sm_80", "", regrouped, "FLOORMOD", is<Op::FLOORMOD>, 1, 0},
    {"apply opts", "emulator:sm_80", "", regrouped, "RANGE", is<Op::RANGE>, 1, 2},
    {"add loads", "cpu", "", padded, "poison", poison, 1, 0},
    {"add loads", "cpu", "", padded, "LOAD", is<Op::LOAD>, 0, 2},
    {"remove reduces", "cpu", "", rows, "REDUCE", is<Op::REDUCE>, 1, 0},
    {"remove reduces", "cpu", "", rows, "BUFFER", is<Op::BUFFER>, 0, 1},
    {"group reduces", "emulator:sm_80", "GROUP:0:4", rows, "BARRIER", is<Op::BARRIER>, 0, 1},
    {"add grid", "emulator:sm_80", "LOCAL:0:2", relu_sum, "SPECIAL", is<Op::SPECIAL>, 0, 2},
    {"add grid", "emulator:sm_80", "LOCAL:0:2", relu_sum, "RANGE", is<Op::RANGE>, 2, 0},
    {"lower index dtypes", "cpu", "", padded, "weak ALU", weak_alu, 1, 0},
    {"lower index dtypes", "cpu", "", padded, "literal without a width", weak_literal, 2, 0},
    {"decompositions", "cpu", "", integer_quotient, "FLOORDIV", is<Op::FLOORDIV>, 1, 0},
    {"decompositions", "cpu", "", integer_quotient, "CDIV", is<Op::CDIV>, 0, 1},
    {"decompositions", "cpu", "", small_product, "ALU of bf16", small_float_alu, 1, 0},
    {"decompositions", "cpu", "", half_exp2, "CAST of f16", half_cast, 0, 1},
    {"decompositions", "cpu", "", half_exp2, "EXP2", is<Op::EXP2>, 1, 0},
};

int count(std::span<const UOp> nodes, Wanted wanted) {
  int n = 0;
  for (UOp u : nodes) n += wanted(u);
  return n;
}

UOp kernel_of(Kernel k, TensorOps& t) {
  return make_kernels(make(Op::SINK, DType::Void, {k(t)})).kernels[0].ast;
}
Target target_of(const char* name) { return emulated_target(name).value_or(Target{}); }

TEST(LowerPasses, DoWhatTheirNameSays) {
  for (const Case& c : cases) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    UOp before = kernel_of(c.kernel, t), after;
    const UOp start = before;
    LowerOptions options;
    options.check = 1;
    options.after_pass = [&](std::string_view pass, UOp graph, double) {
      if (pass == c.pass) after = graph;
      if (!after) before = graph;
    };
    const auto lowered =
        lower(start, std::get<Opts>(parse_opts(c.opts)), target_of(c.target), options);
    ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered)) << c.pass;
    const std::string what = fmt::format("{}: {}\n{}", c.pass, c.kind, print_uops(before));
    EXPECT_EQ(count(toposort(before), c.is), c.before) << "before " << what;
    EXPECT_EQ(count(toposort(after), c.is), c.after) << "after " << what << print_uops(after);
  }
}

// 32 bits on GPUs, unless a step of the index math needs more; 64 on processors.
TEST(LowerPasses, IndicesAreAsWideAsTheyNeedToBe) {
  struct Row {
    const char* target;
    int64_t rows;
    DType expected;
  };
  const Row table[] = {{"emulator:sm_80", 1 << 10, DType::I32},
                       {"emulator:sm_80", (int64_t{1} << 31) / 64, DType::I32},
                       {"emulator:sm_80", (int64_t{1} << 31) / 64 + 1, DType::I64},
                       {"cpu", 1 << 10, DType::I64}};
  for (const Row& row : table) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const UOp sum = t.sum(input(0, {row.rows, 64}), {{1}, false}, false);
    const UOp ast = make_kernels(make(Op::SINK, DType::Void, {sum})).kernels[0].ast;
    const auto lowered = lower(ast, {}, target_of(row.target));
    for (UOp u : std::get<LinearKernel>(lowered).list) {
      if (u.op() != Op::RANGE) continue;
      EXPECT_EQ(u.dtype(), row.expected) << row.rows;
    }
  }
}

TEST(LowerPasses, EndsOfTheListCloseOneLoopEach) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp ast = kernel_of(
      [](TensorOps& b) {
        return b.contiguous(b.transpose(input(0, {5, 7}), 0, 1));
      },
      t);
  EXPECT_EQ(count(toposort(ast), double_end), 1);
  const auto lowered = lower(ast, {}, Target{});
  const auto& list = std::get<LinearKernel>(lowered).list;
  EXPECT_EQ(count(list, double_end), 0);
  EXPECT_EQ(count(list, is<Op::END>), 2);
}

TEST(LowerPasses, PrepareMergesLoopsThatAreOne) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  EXPECT_EQ(count(toposort(kernel_of(relu_sum, t)), is<Op::RANGE>), 1);
  EXPECT_EQ(count(toposort(kernel_of(
                      [](TensorOps& b) {
                        return b.contiguous(b.transpose(input(0, {5, 7}), 0, 1));
                      },
                      t)),
                  is<Op::RANGE>),
            2);
}

TEST(LowerPasses, EveryGateOfAnIndexGoesToItsLoad) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp r = range(16, 0, AxisType::WEAK), out = input(0, {16}), in = input(1, {16});
  const UOp inner = where(r % iconst(3) < iconst(2), r, invalid());
  const UOp place =
      make(Op::INDEX, DType::F32, {in, where(r % iconst(5) < iconst(3), inner, invalid())});
  const UOp store = make(Op::STORE, DType::Void, {make(Op::INDEX, DType::F32, {out, r}), place});
  const UOp ast = make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, r})});
  LowerOptions options;
  options.check = 1;
  const auto lowered = lower(ast, {}, Target{}, options);
  EXPECT_EQ(count(std::get<LinearKernel>(lowered).list, poison), 0);
}

// A loop whose last steps store nothing ends before them.
TEST(LowerPasses, PrepareShortensLoopsThatAreGated) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp r = range(16, 0, AxisType::WEAK), out = input(0, {16}), in = input(1, {16});
  const auto kernel = [&](UOp gate) {
    const UOp place = make(Op::INDEX, DType::F32, {out, gate ? where(gate, r, invalid()) : r});
    const UOp value = make(Op::INDEX, DType::F32, {in, r});
    const UOp store = make(Op::STORE, DType::Void, {place, value});
    return make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, r})});
  };
  const auto steps = [](UOp ast) {
    for (UOp u : toposort(ast))
      if (u.op() == Op::RANGE) return KernelSchedule::size(u);
    return int64_t{0};
  };
  EXPECT_EQ(steps(prepare(kernel(r < iconst(5))).ast), 5);
  EXPECT_EQ(count(toposort(prepare(kernel(r < iconst(5))).ast), poison), 0);
  EXPECT_EQ(steps(prepare(kernel(iconst(3) < r)).ast), 16);
  EXPECT_EQ(steps(prepare(kernel(UOp{})).ast), 16);
}

// Threads that each hold some neighbours load and store them together, where that is aligned.
TEST(LowerPasses, NeighboursAreOneAccess) {
  struct Row {
    Kernel kernel;
    const char* opts;
    int scalar_loads, vector_loads, scalar_stores, vector_stores;
  };
  const Row rows_of[] = {
      {[](TensorOps& t) {
         return t.contiguous(t.transpose(input(0, {8, 8}), 0, 1));
       },
       "UPCAST:0:4;UPCAST:1:4", 0, 4, 0, 4},
  };
  for (const Row& r : rows_of) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const auto lowered = lower(kernel_of(r.kernel, t), std::get<Opts>(parse_opts(r.opts)),
                               target_of("emulator:sm_80"));
    const auto& list = std::get<LinearKernel>(lowered).list;
    EXPECT_EQ(count(list, scalar<Op::LOAD>), r.scalar_loads) << print_linear(list);
    EXPECT_EQ(count(list, vector<Op::LOAD>), r.vector_loads);
    EXPECT_EQ(count(list, scalar<Op::STORE>), r.scalar_stores);
    EXPECT_EQ(count(list, vector<Op::STORE>), r.vector_stores);
  }
}

}  // namespace
}  // namespace beamline
