// Bounded variables of a kernel are its arguments behind the buffers, in the order of their names.
#include <gtest/gtest.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/rangeify/prepare.h"
#include "engine/render/render_kernel.h"

namespace beamline {
namespace {

constexpr int64_t rows = 12, wide = 16;

UOp memory(int64_t slot, int64_t elements) {
  ParamArg a;
  a.slot = slot;
  const int64_t shape[] = {elements};
  return param(a, DType::F32, shape);
}

// out[i] = sum_k a[i + start, k] * (k < width) + scale, rows of a beyond those of out are skipped.
UOp kernel() {
  const UOp start = variable("start", 0, 3), width = variable("width", 1, wide),
            scale = variable("scale", -5, 5, DType::I32);
  const UOp i = range(rows, 0, AxisType::WEAK), k = range(wide, 1, AxisType::REDUCE);
  const UOp a =
      make(Op::INDEX, DType::F32, {memory(1, (rows + 3) * wide), (i + start) * iconst(wide) + k});
  const UOp over[] = {k};
  const UOp sum = reduce(Op::ADD, where(k < width, a, fconst(0, DType::F32)), over, 0) +
                  cast(scale, DType::F32);
  const UOp store =
      make(Op::STORE, DType::Void, {make(Op::INDEX, DType::F32, {memory(0, rows), i}), sum});
  return prepare(make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {store, i})})).ast;
}

TEST(NumberParams, VariablesAreArguments) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = kernel();
  std::vector<std::string> names;
  for (UOp v : kernel_variables(ast)) names.push_back(v.param().name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "start", "width"}));
  Target cpu;
  const Target gpu = *emulated_target("emulator:sm_80");
  const std::tuple<Target, const char*, DType> cases[] = {
      {cpu, "", DType::I64},
      {cpu, "UPCAST:0:8;UNROLL:0:4", DType::I64},
      {cpu, "UNROLL:0:16", DType::I64},
      {gpu, "", DType::I32},
      {gpu, "LOCAL:0:4;GROUP:0:4", DType::I32},
      {gpu, "UPCAST:0:3", DType::I32},
  };
  for (const auto& [target, opts, index] : cases) {
    SCOPED_TRACE(target.name + " " + opts);
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), target);
    ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered))
        << std::get<OptRefusal>(lowered).reason;
    const auto& linear = std::get<LinearKernel>(lowered);
    ASSERT_EQ(linear.args.size(), 5u);
    const DType types[] = {DType::F32, DType::F32, DType::I32, index, index};
    for (size_t a = 0; a < 5; a++) {
      EXPECT_EQ(dtype_name(linear.args[a].dtype), dtype_name(types[a])) << a;
      EXPECT_EQ(linear.args[a].written, a == 0);
    }
    for (const int64_t start : {0, 2, 3})
      for (const int64_t width : {1, 7, 16}) {
        std::vector<InterpreterBuffer> buffers;
        for (const LinearArg& a : linear.args)
          buffers.push_back(make_buffer(a.dtype, static_cast<size_t>(a.elements)));
        for (size_t e = 0; e < buffers[1].size(); e++)
          buffers[1].floats[e] = static_cast<double>(e % 11);
        buffers[2].ints = {-4}, buffers[3].ints = {start}, buffers[4].ints = {width};
        const auto error = interpret(linear.list, buffers,
                                     {linear.grid.threads, linear.grid.global, linear.grid.local});
        ASSERT_EQ(error.value_or("ran"), "ran");
        for (int64_t i = 0; i < rows; i++) {
          double want = -4;
          for (int64_t k = 0; k < width; k++)
            want += static_cast<double>(((i + start) * wide + k) % 11);
          ASSERT_EQ(buffers[0].floats[static_cast<size_t>(i)], want) << i;
        }
      }
    const auto rendered = render_kernel({print_uops(ast), opts, target});
    ASSERT_TRUE(std::holds_alternative<RenderedKernel>(rendered))
        << std::get<Refusal>(rendered).reason;
    EXPECT_EQ(std::get<RenderedKernel>(rendered).args.size(), 5u);
  }
}

}  // namespace
}  // namespace beamline
