// The interpreter is the specification: machine code compiled by LLVM, and from C by clang, must
// compute what it computes, for kernels without opts, with the heuristic's opts and with random
// legal ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "devices/cpu/blob.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/actions.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/c_style.h"
#include "engine/render/render_kernel.h"
#include "engine/tensor/tensor_ops.h"
#include "tests/devices/run_rendered.h"

namespace beamline {
namespace {

UOp input(int64_t slot, Ints shape) {
  ParamArg a;
  a.slot = slot;
  return param(a, DType::F32, shape);
}
UOp weights(int64_t slot, const Ints& shape) {
  ParamArg a;
  a.slot = slot, a.constant = true;
  return param(a, DType::F32, shape);
}

struct Program {
  const char* name;
  UOp (*build)(TensorOps&);
};
const Program programs[] = {
    {"matmul",
     [](TensorOps& t) {
       return t.matmul(input(0, {13, 21}), input(1, {21, 35}));
     }},
    {"matmul_of_transposed",
     [](TensorOps& t) {
       return t.matmul(input(0, {9, 37}), t.transpose(input(1, {11, 37}), 0, 1));
     }},
    {"matrix_times_vector",
     [](TensorOps& t) {
       return t.matmul(input(0, {13, 40}), input(1, {40}));
     }},
    {"layer",
     [](TensorOps& t) {
       return t.relu(t.add(t.matmul(input(0, {10, 33}), input(1, {33, 40})), input(2, {40})));
     }},
    {"transposed_sum",
     [](TensorOps& t) {
       return t.add(t.transpose(input(0, {16, 24}), 0, 1), input(1, {24, 16}));
     }},
    {"convolution_of_weights",
     [](TensorOps& t) {
       TensorOps::Conv c;
       c.padding = {1, 1};
       return t.conv2d(input(0, {1, 3, 8, 28}), weights(1, {32, 3, 3, 3}), std::nullopt, c);
     }},
    {"every_other_window",
     [](TensorOps& t) {
       TensorOps::Conv c;
       c.padding = {3, 3}, c.stride = {2, 2};
       return t.conv2d(input(0, {2, 2, 9, 32}), weights(1, {16, 2, 7, 7}), std::nullopt, c);
     }},
    {"pairs",
     [](TensorOps& t) {
       return t.max(t.reshape(input(0, {3, 40}), {3, 20, 2}), {{2}, false}, false);
     }},
    {"elementwise",
     [](TensorOps& t) {
       return t.mul(t.relu(t.add(input(0, {3, 50}), input(1, {50}))),
                    t.sqrt(t.abs(input(0, {3, 50}))));
     }},
    {"row_sum",
     [](TensorOps& t) {
       return t.sum(input(0, {5, 77}), {{1}, false}, false);
     }},
    {"column_max",
     [](TensorOps& t) {
       return t.max(input(0, {37, 9}), {{0}, false}, false);
     }},
    {"softmax",
     [](TensorOps& t) {
       return t.softmax(input(0, {4, 33}), {{-1}, false});
     }},
    {"transpose",
     [](TensorOps& t) {
       return t.contiguous(t.transpose(input(0, {11, 17}), 0, 1));
     }},
    {"pad",
     [](TensorOps& t) {
       return t.pad(t.flip(input(0, {5, 6}), {1}), {1, 2}, {0, 3}, fconst(0, DType::F32));
     }},
};

bool legal(UOp ast, const Opts& opts, const Target& target) {
  return std::holds_alternative<KernelSchedule>(apply_opts(ast, opts, target));
}
// TILE of a reduce axis before all that is in opts, where that leaves them legal.
void block_reduction(UOp ast, const Target& target, std::mt19937& random, Opts& opts) {
  const std::vector<UOp> axes = KernelSchedule(ast, target).axes();
  for (size_t i = 0; i < axes.size(); i++) {
    if (axes[i].axis_type() != AxisType::REDUCE) continue;
    Opts tiled = opts;
    tiled.push_back(
        {OptKind::TILE, static_cast<int64_t>(i), {static_cast<int64_t>(2 + random() % 15)}});
    std::ranges::rotate(tiled, tiled.end() - 1);
    if (legal(ast, tiled, target)) opts = tiled;
  }
}

class Agreement : public testing::TestWithParam<std::tuple<Program, const char*>> {};

TEST_P(Agreement, MachineCodeComputesWhatTheInterpreterComputes) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const auto& [program, backend] = GetParam();
  const UOp root = program.build(t);
  ASSERT_TRUE(t.ok()) << t.take_error();
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {root}));
  Target target;
  target.name = backend;
  target.threads = 2;
  std::mt19937 random(3);
  for (const KernelAst& k : g.kernels) {
    for (int round = 0; round < 6; round++) {
      Opts opts;
      if (round == 1) opts = cpu_heuristic(k.ast, target);
      for (int n = 1; n < round && round > 1; n++) {
        const Opts next = legal_actions(k.ast, opts, target);
        if (next.empty()) break;
        opts.push_back(next[random() % next.size()]);
      }
      // Offered for large kernels only, right for any.
      if (round >= 4) block_reduction(k.ast, target, random, opts);
      if (round % 2 == 1) {
        opts.push_back({round < 4 ? OptKind::STREAM : OptKind::PREFETCH, 0, {}});
        if (!legal(k.ast, opts, target)) opts.pop_back();
      }
      const std::string text = opts_text(opts);
      const auto rendered = render_kernel({print_uops(k.ast), text, target, false});
      ASSERT_TRUE(std::holds_alternative<RenderedKernel>(rendered))
          << std::get<Refusal>(rendered).reason;
      const auto& source = std::get<RenderedKernel>(rendered);
      std::vector<InterpreterBuffer> want;
      std::vector<std::vector<float>> got;
      std::vector<void*> pointers;
      for (size_t id : k.buffers) {
        const auto n = static_cast<size_t>(g.buffers[id].elements);
        InterpreterBuffer b = make_buffer(g.buffers[id].dtype, n);
        std::vector<float> values(n);
        for (size_t i = 0; i < n; i++)
          b.floats[i] = values[i] =
              static_cast<float>(static_cast<int>(random() % 257) - 100) / 32.0f;
        want.push_back(std::move(b));
        got.push_back(std::move(values));
      }
      for (auto& v : got) pointers.push_back(v.data());
      ASSERT_EQ(test::run_rendered(source, target, pointers), "");
      const auto lowered = lower(k.ast, opts, target);
      ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
      const auto error = interpret(std::get<LinearKernel>(lowered), want);
      ASSERT_FALSE(error.has_value()) << *error;
      for (size_t b = 0; b < got.size(); b++)
        for (size_t i = 0; i < got[b].size(); i++)
          ASSERT_NEAR(got[b][i], want[b].floats[i], 1e-5 * (10 + std::fabs(want[b].floats[i])))
              << "opts " << text << " buffer " << b << " element " << i << "\n"
              << source.source;
    }
  }
}

// Products by lanes as plain C, without any instruction of their own.
TEST(ProductsByLane, AgreeAsPlainC) {
  if (clang_toolchain().empty()) GTEST_SKIP() << "there is no clang";
  Target target;
  target.instructions = "sse2 fma f16c avx2 avx512vnni avx512bf16";
  for (DType in : {DType::BF16, DType::I8}) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const DType out = in == DType::BF16 ? DType::F32 : DType::I32;
    const auto factor = [&](int64_t slot, Ints shape) {
      ParamArg a;
      a.slot = slot;
      return t.cast(param(a, in, shape), out);
    };
    const UOp product = t.matmul(factor(0, {7, 21}), factor(1, {21, 19}));
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {product}));
    for (const char* opts : {"TC:0:(-1,2,1)", "TC:0:(-1,2,1);UPCAST:1:8;UPCAST:0:2",
                             "TC:0:(-1,2,1);UPCAST:1:8;UNROLL:0:2;SWAP:0:1;PACK:2:1"}) {
      const auto lowered = lower(g.kernels.at(0).ast, std::get<Opts>(parse_opts(opts)), target);
      ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered))
          << std::get<OptRefusal>(lowered).reason;
      const auto& kernel = std::get<LinearKernel>(lowered);
      EXPECT_TRUE(std::ranges::find(kernel.list, Op::WMMA, &UOp::op) != kernel.list.end());
      std::string error;
      const std::string source = render_c(kernel, clang_dialect, "entry", error);
      ASSERT_FALSE(source.empty()) << error;
      EXPECT_EQ(render_c(kernel, opencl_dialect, "entry", error), "");
      EXPECT_NE(error.find("no code for tensor core x86"), error.npos) << error;
      const auto compiled = compile_c(source, "entry");
      ASSERT_TRUE(std::holds_alternative<CompiledBlob>(compiled))
          << std::get<CompileError>(compiled).reason << source;
      const auto& blob = std::get<CompiledBlob>(compiled);
      const auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
      ASSERT_TRUE(std::holds_alternative<CodeBlob>(mapped));
      std::vector<InterpreterBuffer> want{make_buffer(out, 7 * 19), make_buffer(in, 7 * 21),
                                          make_buffer(in, 21 * 19)};
      std::vector<int32_t> got(7 * 19);
      std::vector<uint16_t> words[2];
      std::vector<int8_t> bytes[2];
      std::mt19937 random(3);
      for (size_t i : {0U, 1U})
        for (size_t e = 0; e < want[i + 1].size(); e++) {
          const int v = static_cast<int>(random() % 17) - 8;
          if (is_float(in))
            want[i + 1].floats[e] = v;
          else
            want[i + 1].ints[e] = v;
          words[i].push_back(static_cast<uint16_t>(float_to_bits(DType::BF16, v)));
          bytes[i].push_back(static_cast<int8_t>(v));
        }
      void* const pointers[] = {got.data(), is_float(in) ? (void*)words[0].data() : bytes[0].data(),
                                is_float(in) ? (void*)words[1].data() : bytes[1].data()};
      std::get<CodeBlob>(mapped).entry()(pointers, 0);
      const auto failed = interpret(kernel.list, want, {1});
      ASSERT_FALSE(failed.has_value()) << *failed;
      for (size_t e = 0; e < got.size(); e++)
        ASSERT_EQ(is_float(in) ? static_cast<double>(std::bit_cast<float>(got[e])) : got[e],
                  is_float(in) ? want[0].floats[e] : static_cast<double>(want[0].ints[e]))
            << opts << " element " << e << "\n"
            << source;
    }
  }
}

// STREAM: only where every store is a whole vector, and never at an address that is not aligned.
TEST(Streaming, NeedsWholeVectorsAndAlignedMemory) {
  struct Line {
    Ints shape;
    const char* opts;
    bool streams;
  };
  const Line lines[] = {{{16, 64}, "UPCAST:0:16;STREAM", true},
                        {{16, 64}, "UPCAST:0:16", false},
                        {{16, 65}, "UPCAST:0:16;STREAM", true},
                        {{5, 13}, "UPCAST:0:16;STREAM", false},
                        {{16, 64}, "STREAM", false},
                        {{16, 64}, "UPCAST:0:12;STREAM", false}};
  for (const Line& l : lines) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const KernelGraph g =
        make_kernels(make(Op::SINK, DType::Void, {t.add(input(0, l.shape), input(1, l.shape))}));
    const auto rendered = render_kernel({print_uops(g.kernels[0].ast), l.opts, {}, false});
    ASSERT_TRUE(std::holds_alternative<RenderedKernel>(rendered));
    const auto& source = std::get<RenderedKernel>(rendered);
    EXPECT_EQ(source.source.find("nontemporal") != std::string::npos, l.streams) << l.opts;
    const auto compiled = compile_ir(source.source, source.entry);
    ASSERT_TRUE(std::holds_alternative<CompiledBlob>(compiled)) << source.source;
    const auto& blob = std::get<CompiledBlob>(compiled);
    const auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
    ASSERT_TRUE(std::holds_alternative<CodeBlob>(mapped));
    const auto n = static_cast<size_t>(l.shape[0] * l.shape[1]);
    for (const size_t offset : {0, 1, 8}) {  // in floats, from a multiple of 64 bytes
      struct alignas(64) Line64 {
        float f[16];
      };
      std::vector<std::vector<Line64>> memory(3, std::vector<Line64>(n / 16 + 2));
      std::vector<float*> at;
      std::vector<void*> pointers;
      for (auto& m : memory) at.push_back(m[0].f + offset), pointers.push_back(at.back());
      for (size_t i = 0; i < n; i++)
        at[1][i] = static_cast<float>(i), at[2][i] = static_cast<float>(3 * i);
      std::get<CodeBlob>(mapped).entry()(pointers.data(), 0);
      for (size_t i = 0; i < n; i++)
        ASSERT_EQ(at[0][i], static_cast<float>(4 * i)) << l.opts << " offset " << offset;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Agreement, testing::Combine(testing::ValuesIn(programs), testing::Values("cpu", "cpu:c")),
    [](const auto& p) {
      const std::string backend = std::get<1>(p.param);
      return std::string(std::get<0>(p.param).name) + (backend == "cpu" ? "_llvm" : "_c");
    });

}  // namespace
}  // namespace beamline
