// Kernels that keep a row: how they look and what schedules may do to them. What they compute is
// among the programs of kernel_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/rangeify.h"
#include "engine/rules/verify.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

using testing::HasSubstr;

UOp input(int64_t slot, std::vector<int64_t> shape, DType t = DType::F32) {
  ParamArg a;
  a.slot = slot;
  return param(a, t, shape);
}
size_t count(UOp ast, Op op) {
  size_t n = 0;
  for (UOp u : toposort(ast)) n += u.op() == op;
  return n;
}
UOp kernel_of(UOp result) {
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {result}));
  EXPECT_EQ(g.kernels.size(), 1u);
  return g.kernels.at(0).ast;
}
UOp softmax_of(std::vector<int64_t> shape, int64_t axis, DType t = DType::F32) {
  TensorOps ops;
  return kernel_of(ops.softmax(input(0, std::move(shape), t), {{axis}, false}));
}
std::vector<AxisType> types(const KernelSchedule& s) {
  std::vector<AxisType> out;
  for (UOp r : s.axes()) out.push_back(r.axis_type());
  return out;
}

class Rows : public testing::Test {
 protected:
  Arena arena_;
  Arena::Scope scope_{arena_};
  Target avx512_ = [] {
    Target t;
    t.vector_bytes = 64, t.vector_registers = 32;
    return t;
  }();
};

TEST_F(Rows, TheExponentialsOfARowAreKeptAndReadTwice) {
  const UOp ast = softmax_of({6, 40}, 1);
  EXPECT_EQ(count(ast, Op::STAGE), 1u);
  EXPECT_EQ(count(ast, Op::EXP2), 1u);
  EXPECT_EQ(count(ast, Op::REDUCE), 2u);
  EXPECT_EQ(prepare(ast).ast.src(0), ast.src(0)) << "preparing is idempotent";
  EXPECT_EQ(verify(ast, Stage::Kernel, 2), std::nullopt);
  using enum AxisType;
  EXPECT_EQ(types(KernelSchedule(ast, avx512_)), (std::vector{WEAK, WEAK, LOOP, REDUCE, REDUCE}));
}

TEST_F(Rows, WhatIsCheapIsComputedAgain) {
  TensorOps t;
  const UOp x = input(0, {6, 40});
  const UOp mean = t.mean(x, {{1}, false}, true);
  EXPECT_EQ(count(kernel_of(t.sub(x, mean)), Op::STAGE), 0u);
  // One loop over the row needs the logarithm, the other does not.
  const UOp logs = t.log(t.mul(x, x));
  EXPECT_EQ(count(kernel_of(t.div(x, t.sum(logs, {{1}, false}, true))), Op::STAGE), 0u);
}

TEST_F(Rows, LoopsOverRowsGoOutside) {
  const UOp ast = softmax_of({3, 40, 7}, 1);  // the columns are the middle dim
  const KernelSchedule s(ast, avx512_);
  std::vector<int64_t> sizes;
  for (UOp r : s.axes()) sizes.push_back(KernelSchedule::size(r));
  EXPECT_EQ(sizes, (std::vector<int64_t>{3, 7, 40, 40, 40, 40}));
}

TEST_F(Rows, GroupsOfThreadsComputeARowAgain) {
  const Target group = *emulated_target("emulator:sm_80");
  const UOp ast = softmax_of({6, 40}, 1);
  const KernelSchedule s(ast, group);
  EXPECT_EQ(count(s.ast(), Op::STAGE), 0u);
  EXPECT_EQ(count(s.ast(), Op::EXP2), 2u);
  using enum AxisType;
  EXPECT_EQ(types(s), (std::vector{WEAK, GLOBAL, REDUCE, REDUCE}))
      << "columns are no axis of the grid: their threads would each reduce the row";
}

TEST_F(Rows, TheHeuristicGivesEveryLoopOverTheRowItsLanes) {
  const UOp ast = softmax_of({64, 512}, 1);
  const Opts opts = cpu_heuristic(ast, avx512_);
  const auto s = apply_opts(ast, opts, avx512_);
  ASSERT_TRUE(std::holds_alternative<KernelSchedule>(s));
  int written_out = 0;
  for (AxisType t : types(std::get<KernelSchedule>(s)))
    written_out += t == AxisType::UPCAST || t == AxisType::UNROLL;
  EXPECT_EQ(written_out, 4) << opts_text(opts);
  const auto lowered = lower(ast, opts, avx512_);
  ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
  size_t exponentials = 0;
  for (UOp u : std::get<LinearKernel>(lowered).list) {
    const bool power = u.op() == Op::BITCAST && u.dtype() == DType::F32;
    exponentials += power;
    if (!power && u.op() != Op::LOAD) continue;
    EXPECT_EQ(u.shape().size(), 1u) << op_name(u.op());
  }
  EXPECT_GT(exponentials, 0u);
}

struct Refused {
  const char* opts;
  const char* reason;
};
TEST_F(Rows, WhatDoesNotFitIsRefused) {
  const UOp ast = softmax_of({64, 4096, 32}, 1);
  const Refused rows[] = {
      // axes: 64, 32, 4096 columns, the kept row, two reductions
      {"THREAD:3:2", "THREAD takes an output loop"},
      {"TILE:3:2", "TILE takes an output or a reduce loop"},
      {"SWAP:2:3", "SWAP exchanges two output loops"},
      {"UPCAST:1:0;UPCAST:0:4", "kept rows of 2097152 bytes exceed the 1048576"},
  };
  for (const Refused& r : rows) {
    const auto opts = std::get<Opts>(parse_opts(r.opts));
    Target t = avx512_;
    t.threads = 2, t.masked_tails = true;
    const auto s = apply_opts(ast, opts, t);
    ASSERT_TRUE(std::holds_alternative<OptRefusal>(s)) << r.opts;
    EXPECT_THAT(std::get<OptRefusal>(s).reason, HasSubstr(r.reason)) << r.opts;
  }
}

TEST_F(Rows, DamagedRowsAreNamed) {
  const std::string text = print_uops(softmax_of({6, 40}, 1));
  const auto damaged = [&](const std::string& from, const std::string& to) {
    std::string t = text;
    const size_t at = t.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    t.replace(at, from.size(), to);
    const auto parsed = parse_uops(t);
    if (const auto* e = std::get_if<ParseError>(&parsed)) return e->message;
    return verify(std::get<UOp>(parsed), Stage::Kernel, 1).value_or("");
  };
  const size_t at = text.find("=STAGE:f32(");
  ASSERT_NE(at, std::string::npos);
  const std::string stage = text.substr(at, text.find('\n', at) - at);
  const std::string value = stage.substr(0, stage.find(','));
  EXPECT_THAT(damaged(stage, value + ",%0)"), HasSubstr("row-stage")) << "no range";
  const size_t other = text.rfind('\n', text.find("type=REDUCE")) + 1;
  const std::string reduce_range = text.substr(other, text.find('=', other) - other);
  EXPECT_THAT(damaged(stage, value + "," + reduce_range + ")"), HasSubstr("row-stage"))
      << "a range that the value does not depend on";
  // By name: the row, its range, the places it is read at.
  const std::string row = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
  const std::string range = stage.substr(value.size() + 1, stage.size() - value.size() - 2);
  const size_t range_at = text.find(range + "=RANGE");
  const std::string range_line = text.substr(range_at, text.find('\n', range_at) - range_at);
  const auto with_type = [&](const char* type) {
    std::string line = range_line;
    return line.replace(line.find("LOOP"), 4, type);
  };
  EXPECT_THAT(damaged(range_line, with_type("THREAD")), HasSubstr("row-range"));
  const std::string read = "=INDEX:f32(" + row + ",";
  const size_t first = text.find(read);
  const std::string read_line = text.substr(first, text.find('\n', first) - first);
  EXPECT_THAT(damaged(read_line, "=INDEX:f32(" + row + ")"), HasSubstr("index-shape"));
  EXPECT_THAT(damaged(read_line, "=MUL:f32(" + row + "," + row + ")"), HasSubstr("row-read"));
  EXPECT_THAT(damaged(read_line, read + "%0)"), HasSubstr("row-bounds"));
  const size_t end = text.find("=END:");
  const std::string end_line = text.substr(end, text.find('\n', end) - end);
  EXPECT_NE(damaged(end_line, end_line.substr(0, end_line.size() - 1) + "," + range + ")"), "");
}

// However many values of a row are dear, a thread keeps no more of them than it has memory for.
TEST_F(Rows, ManyLongRowsAreNotAllKept) {
  TensorOps t;
  const UOp x = input(0, {17, 65000}), most = t.max(x, {{1}, false}, true);
  UOp sum, all;
  for (int i = 0; i < 24; i++) {
    const UOp e = t.exp(t.sub(t.mul(x, fconst(1 + i / 8.0, DType::F32)), most));
    const UOp part = t.div(e, t.sum(e, {{1}, false}, true));
    all = i == 0 ? part : t.add(all, part);
  }
  const UOp ast = kernel_of(all);
  int64_t bytes = 0;
  for (UOp u : toposort(ast))
    if (u.op() == Op::STAGE) bytes += u.numel() * 4;
  EXPECT_GT(bytes, 0);
  EXPECT_LE(bytes, int64_t{512} << 10);
  EXPECT_EQ(verify(ast, Stage::Kernel, 2), std::nullopt);
}

// What a split that does not divide clamps is within bounds, and seen to be.
TEST_F(Rows, ClampedPlacesAreInBounds) {
  TensorOps t;
  const UOp ast = kernel_of(t.matmul(input(0, {13, 7}), input(1, {7, 11})));
  const Target group = *emulated_target("emulator:sm_80");
  for (const char* opts : {"PADTO:0:8", "PADTO:1:4", "PADTO:2:4"}) {
    LowerOptions options;
    options.check = 2;
    EXPECT_TRUE(std::holds_alternative<LinearKernel>(
        lower(ast, std::get<Opts>(parse_opts(opts)), group, options)))
        << opts;
  }
}

}  // namespace
}  // namespace beamline
