// What kernels get without a search, on a machine with 32 registers of 16 lanes: one row a shape.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "engine/ir/arena.h"
#include "engine/lower/estimates.h"
#include "engine/opt/actions.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

UOp input(int64_t slot, const Ints& shape) {
  ParamArg a;
  a.slot = slot;
  return param(a, DType::F32, shape);
}

UOp product(TensorOps& t, const Ints& a, const Ints& b, bool ta = false) {
  const UOp x = input(0, a);
  return t.matmul(ta ? t.transpose(x, 0, 1) : x, input(1, b));
}

UOp weights(const Ints& shape, bool constant) {
  ParamArg a;
  a.slot = 1, a.constant = constant;
  return param(a, DType::F32, shape);
}

// a times the transposed b.
UOp dots(TensorOps& t, const Ints& a, const Ints& b, bool constant = false) {
  return t.matmul(input(0, a), t.transpose(weights(b, constant), 0, 1));
}

UOp conv(TensorOps& t, int64_t in, int64_t out, int64_t size, int64_t filter, int64_t stride,
         bool constant = false, std::optional<int64_t> padding = {}) {
  TensorOps::Conv c;
  c.stride = {stride, stride};
  const int64_t around = padding.value_or(filter / 2);
  c.padding = {around, around};
  return t.conv2d(input(0, {1, in, size, size}), weights({out, in, filter, filter}, constant),
                  std::nullopt, c);
}
UOp depthwise(TensorOps& t, int64_t channels, int64_t size, int64_t filter, int64_t stride) {
  TensorOps::Conv c;
  c.stride = {stride, stride};
  c.padding = {filter / 2, filter / 2};
  c.groups = channels;
  return t.conv2d(input(0, {1, channels, size, size}), weights({channels, 1, filter, filter}, true),
                  std::nullopt, c);
}

struct Line {
  const char* name;
  std::function<UOp(TensorOps&)> build;
  const char* opts;
};

TEST(Heuristic, GivesEachShapeItsSchedule) {
  // clang-format off
  const Line lines[] = {
      {"square",            [](TensorOps& t) { return product(t, {512, 512}, {512, 512}); },           "UPCAST:1:64;UPCAST:0:6"},
      {"small square",      [](TensorOps& t) { return product(t, {256, 256}, {256, 256}); },           "UPCAST:1:64;UPCAST:0:6"},
      {"blocks of both",    [](TensorOps& t) { return product(t, {2048, 2048}, {2048, 2048}); },       "UPCAST:1:64;UPCAST:0:6;SWAP:0:1;PACK:2:1"},
      {"few rows",          [](TensorOps& t) { return product(t, {35, 2048}, {2048, 700}); },          "UPCAST:1:64;UPCAST:0:5;TILE:4:128;SWAP:1:2;PREFETCH"},
      {"two tiles across",  [](TensorOps& t) { return product(t, {1760, 1760}, {1760, 128}); },        "UPCAST:1:64;UPCAST:0:6"},
      {"one tile across",   [](TensorOps& t) { return product(t, {2560, 2560}, {2560, 64}); },         "UPCAST:1:64;UPCAST:0:6"},
      {"across, two tiles", [](TensorOps& t) { return product(t, {1760, 1760}, {1760, 128}, true); },  "UPCAST:1:32;UPCAST:0:8;TILE:4:32;PREFETCH"},
      {"packed blocks",     [](TensorOps& t) { return product(t, {1024, 1024}, {1024, 1024}); },       "UPCAST:1:64;UPCAST:0:6;TILE:1:2;SWAP:0:1;PACK:2:1"},
      {"odd",               [](TensorOps& t) { return product(t, {127, 131}, {131, 129}); },           "UPCAST:1:48;UPCAST:0:8"},
      {"sixteen columns",   [](TensorOps& t) { return product(t, {1024, 512}, {512, 16}); },           "UPCAST:1:16;UPCAST:0:16;UNROLL:0:4"},
      {"two columns",       [](TensorOps& t) { return product(t, {1024, 512}, {512, 2}); },            "UPCAST:1:2;UPCAST:0:14;UNROLL:0:4"},
      {"one column",        [](TensorOps& t) { return product(t, {4096, 4096}, {4096, 1}); },          "UNROLL:0:32;UPCAST:0:4"},
      {"across, narrow",    [](TensorOps& t) { return product(t, {2048, 2048}, {2048, 32}, true); },   "UPCAST:1:32;UPCAST:0:8;TILE:3:32;PREFETCH"},
      {"across, wide",      [](TensorOps& t) { return product(t, {1024, 1024}, {1024, 1024}, true); }, "UPCAST:1:48;UPCAST:0:8;TILE:4:128;PACK:2:1;PREFETCH"},
      {"from memory",       [](TensorOps& t) { return product(t, {35, 4096}, {4096, 8457}); },         "UPCAST:1:64;UPCAST:0:5;TILE:4:32;SWAP:1:2;PREFETCH"},
      {"in parts",          [](TensorOps& t) { return product(t, {1024, 50000}, {50000, 8}); },        "UPCAST:2:8;UPCAST:1:14;UNROLL:0:4;SWAP:0:1"},
      {"3x3, two vectors",  [](TensorOps& t) { return conv(t, 128, 128, 28, 3, 1); },                  "UPCAST:2:32;UPCAST:0:13;SWAP:0:1;PACK:2:1"},
      {"3x3, one vector",   [](TensorOps& t) { return conv(t, 256, 256, 14, 3, 1); },                  "UPCAST:2:16;UPCAST:1:7;UPCAST:0:4;SWAP:0:1;PACK:2:1"},
      {"3x3, half of one",  [](TensorOps& t) { return conv(t, 512, 512, 7, 3, 1); },                   "UPCAST:2:8;UPCAST:1:7;UPCAST:0:4;UNROLL:0:4;PACK:2:0"},
      {"3x3, every other",  [](TensorOps& t) { return conv(t, 128, 128, 56, 3, 2); },                  "UPCAST:2:32;UPCAST:0:13;SWAP:0:1;PACK:2:1"},
      {"1x1, flat",         [](TensorOps& t) { return conv(t, 256, 64, 56, 1, 1); },                   "UPCAST:1:48;UPCAST:0:8;SWAP:0:1;UNROLL:0:2;PREFETCH:2"},
      {"1x1, near",         [](TensorOps& t) { return conv(t, 64, 256, 56, 1, 1, true); },             "UPCAST:1:64;UPCAST:0:6;SWAP:0:1;UNROLL:0:4;LAYOUT:1;PREFETCH:2"},
      {"3x3 of weights",    [](TensorOps& t) { return conv(t, 64, 64, 56, 3, 1, true); },              "UPCAST:0:32;UPCAST:2:14;PACK:2:0;LAYOUT:1"},
      {"no room for it",    [](TensorOps& t) { return conv(t, 128, 128, 56, 3, 2, true); },            "UPCAST:0:32;UPCAST:2:14;SWAP:0:1;PACK:2:1;LAYOUT:1"},
      {"few channels",      [](TensorOps& t) { return conv(t, 3, 64, 224, 7, 2, true); },              "UPCAST:0:32;UPCAST:2:14;PACK:2:0;LAYOUT:1"},
      {"seven pixels",      [](TensorOps& t) { return conv(t, 512, 512, 7, 3, 1, true); },             "UPCAST:0:48;UPCAST:2:7;UNROLL:2:3;SKIP:5;SKIP:6;LAYOUT:1"},
      {"1x1 of weights",    [](TensorOps& t) { return conv(t, 1024, 256, 14, 1, 1, true); },           "UPCAST:0:64;UPCAST:1:6;LAYOUT:1"},
      {"flat all the same", [](TensorOps& t) { return conv(t, 256, 64, 56, 1, 1, true); },             "UPCAST:1:48;UPCAST:0:8;SWAP:0:1;UNROLL:0:2;LAYOUT:1;PREFETCH:2"},
      {"few steps of pairs", [](TensorOps& t) { return conv(t, 1, 64, 161, 5, 2, true, 0); },          "UPCAST:2:48;UPCAST:0:8;LAYOUT:1"},
      {"dots",              [](TensorOps& t) { return dots(t, {4, 1024}, {1024, 1024}); },             "UNROLL:0:16;UPCAST:1:4;UPCAST:0:4"},
      {"of many rows",      [](TensorOps& t) { return dots(t, {16, 1024}, {1024, 1024}); },            "UPCAST:1:48;UPCAST:0:8;SWAP:0:1;PACK:2:1"},
      {"of few columns",    [](TensorOps& t) { return dots(t, {512, 512}, {16, 512}); },               "UPCAST:1:16;UPCAST:0:16;UNROLL:0:4;PACK:2:0"},
      {"of weights",        [](TensorOps& t) { return dots(t, {8, 1024}, {1024, 1024}, true); },       "UPCAST:1:48;UPCAST:0:8;LAYOUT:2"},
      {"deep",              [](TensorOps& t) { return product(t, {256, 11008}, {11008, 1024}); },      "UPCAST:1:64;UPCAST:0:6;TILE:4:2752;SWAP:1:2;PACK:2:2;PREFETCH"},
      {"deep dots",         [](TensorOps& t) { return dots(t, {256, 11008}, {1024, 11008}); },         "UPCAST:1:64;UPCAST:0:6;TILE:4:2752;SWAP:1:2;PACK:2:2;PREFETCH"},
      {"prime depth",       [](TensorOps& t) { return product(t, {128, 11003}, {11003, 512}); },       "UPCAST:1:64;UPCAST:0:6;TILE:4:3668;SWAP:1:2;PACK:2:2;SKIP:5;PREFETCH"},
      {"weights, product",  [](TensorOps& t) { return t.matmul(input(0, {1024, 1024}), weights({1024, 1024}, true)); }, "UPCAST:1:64;UPCAST:0:6;TILE:1:2;SWAP:0:1;LAYOUT:2"},
      {"every other pixel", [](TensorOps& t) { return conv(t, 256, 512, 56, 1, 2, true); },            "UPCAST:0:32;UPCAST:2:14;PACK:2:0;LAYOUT:1"},
      {"depthwise",         [](TensorOps& t) { return depthwise(t, 144, 56, 3, 1); },                  "UPCAST:2:32;UPCAST:1:7;UNROLL:0:3;UNROLL:0:3"},
      {"depthwise, small",  [](TensorOps& t) { return depthwise(t, 576, 14, 3, 1); },                  "UPCAST:2:16;UPCAST:1:14;UNROLL:0:3;UNROLL:0:3"},
      {"depthwise, 5x5",    [](TensorOps& t) { return depthwise(t, 240, 56, 5, 2); },                  "UPCAST:2:32;UPCAST:1:7;UNROLL:0:5;UNROLL:0:5"},
      {"row sum",           [](TensorOps& t) { return t.sum(input(0, {4096, 4096}), {{1}, false}, false); },           "UNROLL:0:64"},
      {"column sum",        [](TensorOps& t) { return t.sum(input(0, {4096, 4096}), {{0}, false}, false); },           "TILE:1:8;UPCAST:1:64;UNROLL:0:8"},
      {"few columns",       [](TensorOps& t) { return t.sum(input(0, {4096, 256}), {{0}, false}, false); },            "UPCAST:0:256"},
      {"middle axis",       [](TensorOps& t) { return t.sum(input(0, {32, 256, 1024}), {{1}, false}, false); },        "TILE:2:8;SWAP:0:1;UPCAST:2:64;UNROLL:0:8"},
      {"prime rows",        [](TensorOps& t) { return t.sum(input(0, {131, 4096}), {{0}, false}, false); },            "UPCAST:0:256"},
      {"rows past caches",  [](TensorOps& t) { return t.softmax(input(0, {4096, 1024}), {{-1}, false}); },             "UPCAST:1:32;UPCAST:2:32;UNROLL:0:64;UNROLL:1:64;STREAM"},
      {"transpose",         [](TensorOps& t) { return t.contiguous(t.transpose(input(0, {4096, 4096}), 0, 1)); }, "UPCAST:1:16;UPCAST:0:32;STREAM;SWAP:0:1"},
      {"small transpose",   [](TensorOps& t) { return t.contiguous(t.transpose(input(0, {512, 512}), 0, 1)); }, "UPCAST:1:16;UPCAST:0:32;TILE:1:8;SWAP:0:1"},
      {"large sum",         [](TensorOps& t) { return t.add(input(0, {4096, 4096}), input(1, {4096, 4096})); }, "UPCAST:0:32;STREAM"},
      {"small sum",         [](TensorOps& t) { return t.add(input(0, {512, 512}), input(1, {512, 512})); }, "UPCAST:0:32"},
  };
  // clang-format on
  Target target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  for (const Line& l : lines) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {l.build(t)}));
    const Opts opts = cpu_heuristic(g.kernels.at(0).ast, target);
    EXPECT_EQ(opts_text(opts), l.opts) << l.name;
    EXPECT_TRUE(std::holds_alternative<KernelSchedule>(apply_opts(g.kernels[0].ast, opts, target)))
        << l.name;
  }
}

// What a search starts from besides: other lanes, other places of the operands, smaller tiles; each
// is legal and there once.
TEST(Heuristic, HasOtherAnswersForOtherProcessors) {
  Target target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  const auto variants = [&](auto build) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {build(t)}));
    const UOp ast = g.kernels.at(0).ast;
    std::set<std::string> out;
    for (const Opts& opts : heuristic_variants(ast, target)) {
      EXPECT_TRUE(std::holds_alternative<KernelSchedule>(apply_opts(ast, opts, target)));
      EXPECT_TRUE(out.insert(opts_text(opts)).second) << opts_text(opts);
    }
    EXPECT_FALSE(out.contains(opts_text(heuristic(ast, target))));
    return out;
  };
  const auto image = variants([](TensorOps& t) { return conv(t, 128, 512, 28, 1, 1, true); });
  for (const char* opts :
       {"UPCAST:1:48;UPCAST:0:9;SWAP:0:1;LAYOUT:1",
        "UPCAST:0:64;UPCAST:1:6;SWAP:0:1;LAYOUT:1;PREFETCH:2", "UPCAST:1:32;UPCAST:0:14;LAYOUT:1"})
    EXPECT_TRUE(image.contains(opts)) << opts;
  const auto square = variants([](TensorOps& t) { return product(t, {512, 512}, {512, 512}); });
  for (const char* opts :
       {"UPCAST:1:64;UPCAST:0:6;SWAP:0:1;PACK:2:1", "UPCAST:1:32;UPCAST:0:14",
        "UPCAST:1:64;UPCAST:0:6;TILE:1:4;SWAP:0:1;PACK:2:1", "UPCAST:1:64;UPCAST:0:6;SWAP:0:1"})
    EXPECT_TRUE(square.contains(opts)) << opts;
  const auto copied = [](TensorOps& t) { return t.add(input(0, {64, 64}), input(1, {64, 64})); };
  EXPECT_EQ(variants(copied), (std::set<std::string>{"UPCAST:0:32;STREAM"}));
  target = *emulated_target("emulator:sm_80");
  EXPECT_TRUE(variants(copied).empty());
}

// Products of small types: by the instructions of a processor that has them, unless they are
// switched off. Few rows do not make up for the sum that bytes of one sign need.
TEST(Heuristic, UsesTheProductsByLaneOfAProcessor) {
  struct Small {
    const char* name;
    DType type;
    Ints a, b;
    const char* opts;
    const char* off;
  };
  // clang-format off
  const Small lines[] = {
      {"bf16",           DType::BF16, {512, 512}, {512, 512}, "TC:0:(0,1,1);UPCAST:1:64;UPCAST:0:6;SWAP:0:1;PACK:2:1", "UPCAST:1:64;UPCAST:0:6"},
      {"bytes",          DType::I8,   {512, 512}, {512, 512}, "TC:0:(1,1,1);UPCAST:1:64;UPCAST:0:6;SWAP:0:1;PACK:2:1", "UPCAST:1:64;UPCAST:0:6"},
      {"few rows",       DType::I8,   {4, 512},   {512, 512}, "TC:0:(2,1,1);UPCAST:1:64;UPCAST:0:4;UNROLL:0:4", "UPCAST:1:64;UPCAST:0:4;UNROLL:0:4"},
      {"i16",            DType::I16,  {64, 64},   {64, 64},   "TC:0:(2,1,1);UPCAST:1:64;UPCAST:0:6;PACK:2:0",          "UPCAST:1:64;UPCAST:0:6"},
      {"does not divide", DType::BF16, {64, 63},  {63, 64},   "UPCAST:1:64;UPCAST:0:6",                                           "UPCAST:1:64;UPCAST:0:6"},
      {"f16",            DType::F16,  {64, 64},   {64, 64},   "UPCAST:1:64;UPCAST:0:6",                                "UPCAST:1:64;UPCAST:0:6"},
  };
  // clang-format on
  Target target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  target.instructions = "sse2 fma f16c avx2 avx512bw avx512vnni avx512bf16";
  Target off = target;
  off.tensor_cores = TensorCoreUse::Off;
  for (const Small& l : lines) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const auto factor = [&](int64_t slot, const Ints& shape) {
      ParamArg a;
      a.slot = slot;
      return param(a, l.type, shape);
    };
    const UOp product = t.matmul(factor(0, l.a), factor(1, l.b));
    const UOp ast = make_kernels(make(Op::SINK, DType::Void, {product})).kernels.at(0).ast;
    EXPECT_EQ(opts_text(cpu_heuristic(ast, target)), l.opts) << l.name;
    EXPECT_EQ(opts_text(cpu_heuristic(ast, off)), l.off) << l.name;
    // A search may use them too.
    const auto starts = [&](const Target& on) {
      return std::ranges::any_of(legal_actions(ast, {}, on),
                                 [](const Opt& o) { return o.kind == OptKind::TC; });
    };
    EXPECT_EQ(starts(target), l.type != DType::F16) << l.name;
    EXPECT_FALSE(starts(off)) << l.name;
  }
}

// Without masks amounts divide; without fused products steps are not written out.
TEST(Heuristic, SuitsSmallerMachines) {
  struct Machine {
    const char* name;
    UOp (*build)(TensorOps&);
    const char *avx2, *sse;
  };
  // clang-format off
  const Machine lines[] = {
      {"square",   [](TensorOps& t) { return product(t, {512, 512}, {512, 512}); },  "UPCAST:1:16;UPCAST:0:6", "UPCAST:1:8;UPCAST:0:4"},
      {"odd",      [](TensorOps& t) { return product(t, {127, 131}, {131, 129}); },  "UPCAST:1:24;UPCAST:0:4", "UPCAST:1:3"},
      {"dot",      [](TensorOps& t) { return t.matmul(input(0, {512, 512}), t.transpose(input(1, {512, 512}), 0, 1)); }, "UPCAST:1:16;UPCAST:0:6;SWAP:0:1;PACK:2:1", "UPCAST:1:8;UPCAST:0:4;SWAP:0:1;PACK:2:1"},
  };
  // clang-format on
  Target avx2, sse;
  avx2.instructions = "sse2 fma f16c avx2";
  sse.instructions = "sse2";
  sse.vector_bytes = 16;
  sse.masked_tails = false;
  for (const Machine& l : lines) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const UOp ast = make_kernels(make(Op::SINK, DType::Void, {l.build(t)})).kernels.at(0).ast;
    EXPECT_EQ(opts_text(cpu_heuristic(ast, avx2)), l.avx2) << l.name;
    EXPECT_EQ(opts_text(cpu_heuristic(ast, sse)), l.sse) << l.name;
  }
}

// What nobody tuned is split over threads where there is enough to do.
TEST(CpuHeuristic, WorkIsSplitOverThreads) {
  struct Split {
    const char* name;
    UOp (*build)(TensorOps&);
    int threads;
    const char* opts;
  };
  // clang-format off
  const Split lines[] = {
      {"matmul",        [](TensorOps& t) { return t.matmul(input(0, {512, 512}), input(1, {512, 512})); }, 2, "UPCAST:1:64;UPCAST:0:6;THREAD:1:2"},
      {"small matmul",  [](TensorOps& t) { return t.matmul(input(0, {64, 64}), input(1, {64, 64})); }, 2, "UPCAST:1:64;UPCAST:0:6"},
      {"eight of 64",    [](TensorOps& t) { return t.matmul(input(0, {128, 512}), input(1, {512, 128})); }, 64, "UPCAST:1:64;UPCAST:0:6;THREAD:0:8"},
      {"flat",          [](TensorOps& t) { return t.relu(input(0, {4096, 1024})); }, 4, "UPCAST:0:32;STREAM;THREAD:0:4"},
      {"rows",          [](TensorOps& t) { return t.softmax(input(0, {64, 16384}), {{-1}, false}); }, 2, "UPCAST:1:32;UPCAST:2:32;UNROLL:0:64;UNROLL:1:64;THREAD:0:2"},
      {"one row",       [](TensorOps& t) { return t.softmax(input(0, {4096}), {{-1}, false}); }, 2, "UPCAST:0:32;UPCAST:1:32;UNROLL:0:64;UNROLL:1:64"},
      {"laid out",      [](TensorOps& t) { return conv(t, 256, 64, 56, 1, 1, true); }, 2, "UPCAST:1:48;UPCAST:0:8;SWAP:0:1;UNROLL:0:2;THREAD:0:2;LAYOUT:1;PREFETCH:2"},
      {"skipped",       [](TensorOps& t) { return conv(t, 512, 512, 7, 3, 1, true); }, 2, "UPCAST:0:48;UPCAST:2:7;UNROLL:2:3;THREAD:0:2;SKIP:6;SKIP:7;LAYOUT:1"},
      {"packed",        [](TensorOps& t) { return t.matmul(input(0, {1024, 1024}), input(1, {1024, 1024})); }, 4, "UPCAST:1:64;UPCAST:0:6;TILE:1:2;SWAP:0:1;THREAD:0:4;PACK:2:1"},
  };
  // clang-format on
  Target target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  for (const Split& l : lines) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    target.threads = l.threads;
    const UOp ast = make_kernels(make(Op::SINK, DType::Void, {l.build(t)})).kernels.at(0).ast;
    const Estimates work = estimate(ast);
    const Opts opts =
        across_threads(ast, cpu_heuristic(ast, target), target, work.flops, work.bytes);
    EXPECT_EQ(opts_text(opts), l.opts) << l.name;
    EXPECT_TRUE(std::holds_alternative<KernelSchedule>(apply_opts(ast, opts, target))) << l.name;
  }
}

// Where the threads' loop is one of those around a copy, the copy stays inside of the others.
TEST(CpuHeuristic, ThreadsLeaveACopyWhereItIs) {
  Target target;
  target.vector_bytes = 64;
  target.vector_registers = 32;
  target.threads = 2;
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp ast = make_kernels(make(Op::SINK, DType::Void, {product(t, {512, 512}, {512, 512})}))
                      .kernels[0]
                      .ast;
  const auto split = [&](const char* opts) {
    return opts_text(across_threads(ast, std::get<Opts>(parse_opts(opts)), target, 2.7e8, 3.1e6));
  };
  EXPECT_EQ(split("UPCAST:1:64;UPCAST:0:6;TILE:1:4;SWAP:0:1;PACK:2:1"),
            "UPCAST:1:64;UPCAST:0:6;TILE:1:4;SWAP:0:1;THREAD:0:2;PACK:2:0");
  EXPECT_EQ(split("UPCAST:1:64;UPCAST:0:6;TILE:1:2;SWAP:0:1;PACK:2:1"),
            "UPCAST:1:64;UPCAST:0:6;TILE:1:2;SWAP:0:1;THREAD:0:2;PACK:2:1");
}

}  // namespace
}  // namespace beamline
