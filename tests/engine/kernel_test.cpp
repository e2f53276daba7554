// From tensor graphs to linear kernels: what the interpreter computes for every kernel, without
// opts, with the heuristic's and with random legal opts, must be what the tensor-level evaluator
// computes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <span>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/actions.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/prepare.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/rules/rules.h"
#include "engine/tensor/tensor_ops.h"
#include "tests/engine/tensor_eval.h"

namespace beamline {
namespace {

UOp input(int64_t slot, Ints shape) {
  ParamArg a;
  a.slot = slot;
  return param(a, DType::F32, shape);
}

// Of an m x k matrix with a k x n one, prepared.
UOp matmul_ast(int64_t m, int64_t k, int64_t n) {
  TensorOps t;
  return make_kernels(make(Op::SINK, DType::Void, {t.matmul(input(0, {m, k}), input(1, {k, n}))}))
      .kernels[0]
      .ast;
}

UOp weights(int64_t slot, const Ints& shape) {
  ParamArg a;
  a.slot = slot, a.constant = true;
  return param(a, DType::F32, shape);
}

struct Program {
  const char* name;
  UOp (*build)(TensorOps&);
  size_t kernels;
};
const Program programs[] = {
    {"matmul",
     [](TensorOps& t) {
       return t.matmul(input(0, {7, 13}), input(1, {13, 19}));
     },
     1},
    {"matmul even",
     [](TensorOps& t) {
       return t.matmul(input(0, {8, 32}), input(1, {32, 32}));
     },
     1},
    {"matmul of transposed",
     [](TensorOps& t) {
       return t.matmul(input(0, {9, 37}), t.transpose(input(1, {11, 37}), 0, 1));
     },
     1},
    {"matrix times vector",
     [](TensorOps& t) {
       return t.matmul(input(0, {13, 40}), input(1, {40}));
     },
     1},
    {"transposed sum",
     [](TensorOps& t) {
       return t.add(t.transpose(input(0, {16, 24}), 0, 1), input(1, {24, 16}));
     },
     1},
    {"pairs",
     [](TensorOps& t) {
       return t.max(t.reshape(input(0, {3, 40}), {3, 20, 2}), {{2}, false}, false);
     },
     1},
    {"elementwise",
     [](TensorOps& t) {
       return t.relu(t.add(t.mul(input(0, {3, 50}), input(1, {3, 50})), input(2, {50})));
     },
     1},
    {"row sum",
     [](TensorOps& t) {
       return t.sum(input(0, {5, 37}), {{1}, false}, false);
     },
     1},
    {"column sum",
     [](TensorOps& t) {
       return t.sum(input(0, {37, 9}), {{0}, false}, false);
     },
     1},
    {"full max",
     [](TensorOps& t) {
       return t.max(input(0, {6, 7}), {{}, true}, false);
     },
     1},
    {"softmax",
     [](TensorOps& t) {
       return t.softmax(input(0, {4, 33}), {{-1}, false});
     },
     1},
    {"softmax of columns",
     [](TensorOps& t) {
       return t.softmax(input(0, {3, 20, 17}), {{1}, false});
     },
     1},
    {"log softmax",
     [](TensorOps& t) {
       return t.log_softmax(input(0, {2, 3, 40}), {{-1}, false});
     },
     1},
    {"distance from the mean",
     [](TensorOps& t) {
       const UOp x = input(0, {5, 48});
       const UOp d = t.sub(x, t.mean(x, {{1}, false}, true));
       return t.div(d, t.sum(t.mul(d, d), {{1}, false}, true));
     },
     1},
    {"window over a padded image",
     [](TensorOps& t) {
       TensorOps::Conv c;
       c.padding = {1, 1};
       return t.conv2d(input(0, {2, 3, 6, 8}), weights(1, {9, 3, 3, 3}), std::nullopt, c);
     },
     1},
    {"every other window",
     [](TensorOps& t) {
       TensorOps::Conv c;
       c.padding = {2, 2}, c.stride = {2, 2};
       return t.conv2d(input(0, {1, 2, 9, 32}), weights(1, {16, 2, 5, 5}), std::nullopt, c);
     },
     1},
    {"holes in the window",
     [](TensorOps& t) {
       TensorOps::Conv c;
       c.padding = {0, 2}, c.dilation = {1, 2};
       return t.conv2d(input(0, {1, 3, 5, 8}), weights(1, {8, 3, 2, 3}), std::nullopt, c);
     },
     1},
    {"product with weights",
     [](TensorOps& t) {
       return t.relu(t.matmul(input(0, {7, 13}), weights(1, {13, 19})));
     },
     1},
    {"transpose",
     [](TensorOps& t) {
       return t.contiguous(t.transpose(input(0, {11, 17}), 0, 1));
     },
     1},
    {"flip and pad",
     [](TensorOps& t) {
       return t.pad(t.flip(input(0, {5, 6}), {1}), {1, 2}, {0, 3}, fconst(0, DType::F32));
     },
     1},
    {"shrink and add",
     [](TensorOps& t) {
       return t.add(t.shrink(input(0, {9, 9}), {1, 2}, {8, 9}),
                    t.shrink(input(0, {9, 9}), {2, 0}, {9, 7}));
     },
     1},
    {"one element",
     [](TensorOps& t) {
       return t.add(input(0, {1, 1}), input(1, {1, 1}));
     },
     1},
    {"sum of nothing",
     [](TensorOps& t) {
       return t.sum(input(0, {3, 0}), {{1}, false}, false);
     },
     1},
    {"empty result",
     [](TensorOps& t) {
       return t.relu(input(0, {0, 5}));
     },
     0},
    {"mean of products",
     [](TensorOps& t) {
       return t.mean(t.mul(input(0, {3, 4, 5}), input(1, {4, 1})), {{0, 2}, false}, false);
     },
     1},
};

std::vector<test::Tensor> inputs_of(UOp sink, unsigned seed) {
  std::mt19937 g(seed);
  std::map<int64_t, test::Tensor> by_slot;
  for (UOp u : toposort(sink)) {
    if (u.op() != Op::PARAM) continue;
    test::Tensor t{Ints(u.shape().begin(), u.shape().end()), {}};
    for (int64_t i = 0; i < u.numel(); i++)
      t.data.push_back(static_cast<float>(static_cast<int>(g() % 401) - 200) / 64.0f);
    by_slot[u.param().slot] = t;
  }
  std::vector<test::Tensor> out;
  for (auto& [slot, t] : by_slot) out.push_back(std::move(t));
  return out;
}

// Runs every kernel with the opts that `choose` gives it; returns the first output. What is not an
// input holds NaN before.
template <class F>
std::vector<double> run(const KernelGraph& g, const std::vector<test::Tensor>& in,
                        const Target& target, F choose) {
  std::vector<InterpreterBuffer> memory;
  for (const BufferInfo& b : g.buffers)
    memory.push_back(make_buffer(b.dtype, static_cast<size_t>(std::max<int64_t>(1, b.elements))));
  for (InterpreterBuffer& b : memory) std::ranges::fill(b.floats, NAN);
  for (size_t i = 0; i < in.size(); i++) memory[i].floats = in[i].data;
  for (const KernelAst& k : g.kernels) {
    const Opts opts = choose(k.ast);
    LowerOptions checked;
    checked.check = 1;
    const auto lowered = lower(k.ast, opts, target, checked);
    EXPECT_TRUE(std::holds_alternative<LinearKernel>(lowered)) << opts_text(opts);
    if (!std::holds_alternative<LinearKernel>(lowered)) return {};
    const LinearKernel& linear = std::get<LinearKernel>(lowered);
    std::vector<InterpreterBuffer> args;
    for (size_t id : k.buffers) args.push_back(memory[id]);
    const auto error = interpret(linear, args);
    EXPECT_FALSE(error.has_value()) << *error << "\nopts " << opts_text(opts) << "\n"
                                    << print_linear(linear.list);
    for (size_t i = 0; i < k.buffers.size(); i++) memory[k.buffers[i]] = args[i];
  }
  return memory[g.outputs[0]].floats;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& want,
                  const std::string& what) {
  ASSERT_EQ(got.size(), std::max<size_t>(1, want.size())) << what;
  for (size_t i = 0; i < want.size(); i++)
    ASSERT_NEAR(got[i], want[i], 2e-4 * (1 + std::fabs(want[i]))) << what << " element " << i;
}

class Kernels : public testing::TestWithParam<Program> {};

TEST_P(Kernels, AgreeWithTheTensorGraph) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp root = GetParam().build(t);
  ASSERT_TRUE(t.ok()) << t.take_error();
  const UOp sink = make(Op::SINK, DType::Void, {root});
  const auto in = inputs_of(sink, 1);
  const std::vector<double> want = test::evaluate(sink, in)[0].data;
  const KernelGraph g = make_kernels(sink);
  EXPECT_EQ(g.kernels.size(), GetParam().kernels);
  Target target;
  target.threads = 3;
  expect_close(run(g, in, target, [](UOp) { return Opts{}; }), want, "unoptimised");
  expect_close(run(g, in, target, [&](UOp ast) { return cpu_heuristic(ast, target); }), want,
               "heuristic");
  std::mt19937 random(7);
  for (int round = 0; round < 25; round++) {
    std::string applied;
    const auto choose = [&](UOp ast) {
      Opts opts;
      for (size_t n = random() % 4; n > 0; n--) {
        const Opts next = legal_actions(ast, opts, target);
        if (next.empty()) break;
        opts.push_back(next[random() % next.size()]);
      }
      applied += " [" + opts_text(opts) + "]";
      return opts;
    };
    const std::vector<double> got = run(g, in, target, choose);
    expect_close(got, want, "opts" + applied);
    if (testing::Test::HasFailure()) return;
  }
}

// Random opts of targets whose threads come in groups, run thread by thread.
TEST_P(Kernels, AgreeOnTargetsWithGroups) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp sink = make(Op::SINK, DType::Void, {GetParam().build(t)});
  const auto in = inputs_of(sink, 1);
  const std::vector<double> want = test::evaluate(sink, in)[0].data;
  const KernelGraph g = make_kernels(sink);
  std::mt19937 random(11);
  std::map<OptKind, int> used;
  for (std::string_view name : emulated_targets()) {
    const Target target = *emulated_target(name);
    expect_close(run(g, in, target, [](UOp) { return Opts{}; }), want, "unoptimised");
    expect_close(run(g, in, target, [&](UOp ast) { return heuristic(ast, target); }), want,
                 "heuristic");
    for (int round = 0; round < 5; round++) {
      std::string applied;
      const auto choose = [&](UOp ast) {
        Opts opts;
        for (size_t n = 1 + random() % 5; n > 0; n--) {
          Opts next = legal_actions(ast, opts, target);
          if (next.empty()) break;
          // A kind first: there are many more amounts to split by than places to swap.
          std::vector<OptKind> kinds;
          for (const Opt& o : next)
            if (std::ranges::find(kinds, o.kind) == kinds.end()) kinds.push_back(o.kind);
          const OptKind chosen = kinds[random() % kinds.size()];
          std::erase_if(next, [&](const Opt& o) { return o.kind != chosen; });
          opts.push_back(next[random() % next.size()]);
          used[opts.back().kind]++;
        }
        applied += " [" + opts_text(opts) + "]";
        return opts;
      };
      const std::vector<double> got = run(g, in, target, choose);
      expect_close(got, want, std::string(name) + " opts" + applied);
      if (testing::Test::HasFailure()) return;
    }
  }
  if (GetParam().name != std::string("matmul even")) return;
  for (OptKind kind : {OptKind::UPCAST, OptKind::UNROLL, OptKind::LOCAL, OptKind::GROUP,
                       OptKind::GROUPTOP, OptKind::NOLOCALS, OptKind::PADTO, OptKind::SWAP})
    EXPECT_GT(used[kind], 0) << opt_kind_name(kind) << " was never tried";
}

TEST_P(Kernels, PrepareIsIdempotentAndTextReadsBack) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {GetParam().build(t)}));
  for (const KernelAst& k : g.kernels) {
    EXPECT_EQ(kernel_key(prepare(k.ast).ast), k.key);
    const std::string text = print_uops(k.ast);
    Arena other;
    const Arena::Scope inner(other);
    const auto back = parse_uops(text);
    ASSERT_TRUE(std::holds_alternative<UOp>(back));
    EXPECT_EQ(print_uops(std::get<UOp>(back)), text);
    EXPECT_EQ(kernel_key(std::get<UOp>(back)), k.key);
    // A list too, with as many nodes; their order is that of the graph.
    for (const Target& target : {Target{}, *emulated_target("emulator:metal")}) {
      const auto lowered =
          lower(std::get<UOp>(back), heuristic(std::get<UOp>(back), target), target);
      const std::string list = print_linear(std::get<LinearKernel>(lowered).list);
      const auto again = parse_uops(list);
      ASSERT_TRUE(std::holds_alternative<UOp>(again)) << std::get<ParseError>(again).message;
      const std::string graph = print_uops(std::get<UOp>(again));
      EXPECT_EQ(std::ranges::count(graph, '\n'), std::ranges::count(list, '\n'));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Kernels, testing::ValuesIn(programs), [](const auto& p) {
  std::string s = p.param.name;
  std::replace(s.begin(), s.end(), ' ', '_');
  return s;
});

TEST(Opts, TextReadsBackAndMistakesAreRefusedWithTheirPlace) {
  for (const char* text :
       {"", "UPCAST:0:4", "UPCAST:0:4;THREAD:0:2", "TC:0:(0,1,1);NOLOCALS;UNROLL:0:0",
        "STREAM;UPCAST:0:4", "PREFETCH;TILE:0:4", "UPCAST:0:4;LAYOUT:2", "PREFETCH:2;PREFETCH"}) {
    const auto o = parse_opts(text);
    ASSERT_TRUE(std::holds_alternative<Opts>(o)) << text;
    EXPECT_EQ(opts_text(std::get<Opts>(o)), text);
  }
  const std::pair<const char*, int> wrong[] = {{"UPCST:0:4", 1},
                                               {"UPCAST:0:4;", 12},
                                               {"UPCAST:0", 1},
                                               {"UPCAST:x:4", 1},
                                               {"UPCAST:0:4;UNROLL:0:-1", 12},
                                               {"NOLOCALS:1", 1},
                                               {"STREAM:0", 1},
                                               {"PREFETCH:0:1", 1},
                                               {"PREFETCH:x", 1},
                                               {"LAYOUT", 1},
                                               {"LAYOUT:1:2", 1},
                                               {"LAYOUT:x", 1},
                                               {"SKIP", 1},
                                               {"SKIP:1:2", 1},
                                               {"UPCAST:0:(1,2,3)", 1}};
  EXPECT_EQ(std::get<OptError>(parse_opts("SKIP")).message, "expected SKIP:axis, as in SKIP:1");
  EXPECT_EQ(std::get<OptError>(parse_opts("LAYOUT")).message,
            "expected LAYOUT:operand, as in LAYOUT:1");
  EXPECT_EQ(std::get<OptError>(parse_opts("PREFETCH:1:2")).message,
            "expected PREFETCH:operand, as in PREFETCH:1");
  EXPECT_EQ(opts_text(std::get<Opts>(parse_opts("PREFETCH:0"))), "PREFETCH");  // the results
  for (const auto& [text, position] : wrong) {
    const auto o = parse_opts(text);
    ASSERT_TRUE(std::holds_alternative<OptError>(o)) << text;
    EXPECT_EQ(std::get<OptError>(o).position, position) << text;
  }
}

TEST(Opts, SwapExchangesLoopsThatEndTogether) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = matmul_ast(6, 8, 10);
  const auto sizes = [&](const char* opts) {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), {});
    std::string text;
    if (const auto* r = std::get_if<OptRefusal>(&s)) return r->reason;
    for (UOp r : std::get<KernelSchedule>(s).axes())
      text += std::to_string(KernelSchedule::size(r)) + " ";
    return text;
  };
  EXPECT_EQ(sizes(""), "6 10 8 ");
  EXPECT_EQ(sizes("SWAP:0:1"), "10 6 8 ");
  EXPECT_EQ(sizes("SWAP:0:1;SWAP:0:1"), "6 10 8 ");
  EXPECT_EQ(sizes("SWAP:0:1;UPCAST:0:5"), "2 6 5 8 ");
  EXPECT_EQ(sizes("UPCAST:1:5;UPCAST:0:3;SWAP:0:1"), "2 2 5 3 8 ");
  EXPECT_EQ(sizes("SWAP:1:0"), "SWAP takes the outer axis first, not 1 and 0");
  EXPECT_EQ(sizes("SWAP:0:3"), "axis 3 does not exist, SWAP has 3 axes here");
  EXPECT_EQ(sizes("SWAP:0:2"),
            "SWAP exchanges two output loops or two reduce loops; axis 0 is WEAK, 2 is REDUCE");
}

TEST(Opts, TileAndPackSayWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = matmul_ast(6, 8, 10);
  const auto why = [&](const char* opts) {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), {});
    const auto* r = std::get_if<OptRefusal>(&s);
    return r ? r->reason : "legal";
  };
  EXPECT_EQ(why("UPCAST:0:8"), "legal");  // a whole vector, beyond the axis
  EXPECT_EQ(why("UPCAST:0:9"), "amount 9 exceeds the axis of 6");
  EXPECT_EQ(why("UNROLL:0:9"), "amount 9 exceeds the axis of 8");
  EXPECT_EQ(why("TILE:0:3"), "legal");
  EXPECT_EQ(why("PACK:2:0;STREAM"), "legal");
  EXPECT_EQ(why("STREAM;STREAM"), "STREAM was applied already");
  EXPECT_EQ(why("TILE:0:6"), "a tile of all 6 is the loop itself");
  EXPECT_EQ(why("UPCAST:0:2;TILE:2:2"), "axis 2 is UPCAST; TILE takes an output or a reduce loop");
  EXPECT_EQ(why("SWAP:0:1;PACK:2:1"), "legal");
  EXPECT_EQ(why("PACK:2:0;PACK:1:0"), "legal");
  EXPECT_EQ(why("PACK:2:1"), "legal");  // copied as it lies, read down its columns
  EXPECT_EQ(why("PACK:2:2"),
            "no output loop deeper than the packing reads the tile again, or in another order");
  EXPECT_EQ(why("PACK:0:0"), "operand 0 is written");
  EXPECT_EQ(why("PACK:3:0"), "PACK needs an operand that is read at one place; 3 is read at 0");
  EXPECT_EQ(why("PACK:2:3"), "there are 2 output loops, not 3");
  EXPECT_EQ(why("PACK:2:0;PACK:2:0"), "operand 2 is packed already");
  EXPECT_EQ(why("PACK:2:0;UPCAST:0:2"),
            "what splits or moves loops comes before PACK, LAYOUT and SKIP");
  const UOp big = matmul_ast(8, 2048, 2048);
  const auto s = apply_opts(big, {{OptKind::PACK, 2, {0}}}, {});
  EXPECT_EQ(std::get<OptRefusal>(s).reason,
            "a tile of 16777216 bytes exceeds the 1048576 that a thread has for it");
}

TEST(Opts, BlocksOfAReductionAndPrefetchSayWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  Target target;
  target.threads = 2;
  const auto refusal = [&](UOp ast, const char* opts, const Target& t) -> std::string {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), t);
    const auto* r = std::get_if<OptRefusal>(&s);
    return r ? r->reason : "legal";
  };
  const UOp ast = matmul_ast(6, 8, 10);
  const auto why = [&](const char* opts) { return refusal(ast, opts, target); };
  EXPECT_EQ(why("TILE:2:4"), "legal");
  EXPECT_EQ(why("TILE:2:3;UPCAST:2:8;THREAD:1:2;PACK:2:1"), "legal");
  EXPECT_EQ(why("TILE:2:8"), "a tile of all 8 is the loop itself");
  EXPECT_EQ(why("TILE:2:4;TILE:3:2"), "the reduction is in blocks already");
  const std::string blocks =
      "axis 0 is the loop over the blocks of the reduction; they follow in turn";
  EXPECT_EQ(why("TILE:2:2;TILE:0:2"), blocks);
  EXPECT_EQ(why("TILE:2:2;UPCAST:0:4"), blocks);
  EXPECT_EQ(why("TILE:2:2;THREAD:0:2"), blocks);
  EXPECT_EQ(why("TILE:2:2;STREAM"), "a reduction in blocks reads its result again: no STREAM");
  EXPECT_EQ(why("STREAM;TILE:2:2"), "a reduction in blocks reads its result again: no STREAM");
  EXPECT_EQ(refusal(ast, "TILE:2:4", *emulated_target("emulator:sm_80")),
            "a reduction in blocks is for a processor's caches; emulator:sm_80 has none");
  EXPECT_EQ(refusal(ast, "PREFETCH", *emulated_target("emulator:sm_80")),
            "PREFETCH is for a processor's caches; emulator:sm_80 has none");
  EXPECT_EQ(why("PREFETCH;UPCAST:0:2;TILE:3:4"), "legal");
  EXPECT_EQ(why("PREFETCH;PREFETCH"), "PREFETCH was applied already");
  const auto of = [&](auto build, const char* opts) {
    TensorOps t;
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {build(t)}));
    return refusal(g.kernels[0].ast, opts, target);
  };
  EXPECT_EQ(of(
                [](TensorOps& t) {
                  return t.relu(input(0, {6, 10}));
                },
                "PREFETCH"),
            "PREFETCH is for results of a reduction; here is none");
  const auto softmax = [](TensorOps& t) { return t.softmax(input(0, {4, 33}), {{-1}, false}); };
  EXPECT_EQ(of(softmax, "TILE:3:8"), "a reduction in blocks is not for kernels that keep rows");
  const auto half = [](TensorOps& t) {
    return t.cast(t.sum(input(0, {6, 32}), {{1}, false}, false), DType::F16);
  };
  EXPECT_EQ(of(half, "TILE:1:8"), "a sum of f32 cannot wait in a result of f16");
  const auto two = [](TensorOps& t) {
    const UOp x = input(0, {5, 32});
    return t.mul(t.sum(x, {{1}, false}, false), t.max(x, {{1}, false}, false));
  };
  EXPECT_EQ(
      of(two, "TILE:1:8"),
      "a reduction in blocks is for kernels of one store and one reduction; here are 1 and 2");
}

struct Line {
  UOp (*build)(TensorOps&);
  const char* opts;
};
// What is built, scheduled so, is what the tensor graph says.
void expect_agreement(std::span<const Line> lines, int threads) {
  Arena arena;
  const Arena::Scope scope(arena);
  Target target;
  target.threads = threads;
  for (const Line& l : lines) {
    TensorOps t;
    const UOp sink = make(Op::SINK, DType::Void, {l.build(t)});
    ASSERT_TRUE(t.ok()) << t.take_error();
    const auto in = inputs_of(sink, 1);
    const std::vector<double> want = test::evaluate(sink, in)[0].data;
    const Opts opts = std::get<Opts>(parse_opts(l.opts));
    expect_close(run(make_kernels(sink), in, target, [&](UOp) { return opts; }), want, l.opts);
  }
}

// A reduction in blocks: the first block does not read what the result held, tails are masked, and
// what follows the reduction happens once.
TEST(Opts, ReductionsInBlocksAgreeWithTheTensorGraph) {
  const auto product = [](TensorOps& t) {
    return t.matmul(input(0, {13, 14}), input(1, {14, 45}));
  };
  const auto layer = [](TensorOps& t) {
    return t.relu(t.add(t.matmul(input(0, {13, 14}), input(1, {14, 45})), input(2, {45})));
  };
  const auto convolution = [](TensorOps& t) {
    TensorOps::Conv conv;
    conv.padding = {1, 1};
    return t.conv2d(input(0, {1, 6, 9, 10}), input(1, {5, 6, 3, 3}), std::nullopt, conv);
  };
  const auto rows = [](TensorOps& t) { return t.max(input(0, {5, 37}), {{1}, false}, false); };
  const auto all = [](TensorOps& t) { return t.exp2(t.sum(input(0, {41}), {{}, true}, false)); };
  const auto factors = [](TensorOps& t) { return t.prod(input(0, {3, 9}), {{1}, false}, false); };
  const Line lines[] = {
      {product, "TILE:2:7"},
      {product, "TILE:2:4"},
      {product, "TILE:2:4;PREFETCH"},
      {product, "UPCAST:1:8;UPCAST:0:3;TILE:4:7;UNROLL:0:4;PREFETCH"},
      {product, "UPCAST:1:16;UPCAST:0:3;UNROLL:0:2;TILE:4:3;SWAP:0:1"},
      {product, "TILE:2:5;UPCAST:2:8;UPCAST:1:3;SWAP:1:2;PACK:2:1"},
      {product, "TILE:2:5;UPCAST:2:8;UPCAST:1:3;SWAP:1:2;PACK:2:2;PACK:1:1"},
      {product, "TILE:2:6;UPCAST:2:8;UPCAST:1:3;TILE:2:2;SWAP:0:2;PACK:2:1"},
      {product, "TILE:2:6;UPCAST:2:8;UPCAST:1:3;TILE:2:2;SWAP:1:3;PACK:2:3"},
      {product, "TILE:2:6;THREAD:1:3;UPCAST:2:8;PACK:2:1"},
      {product, "TILE:2:6;UNROLL:0:4;UPCAST:1:2;PREFETCH"},
      {layer, "TILE:2:4"},
      {layer, "UPCAST:1:16;UPCAST:0:4;TILE:4:4;THREAD:1:2;PREFETCH"},
      {convolution, "TILE:3:2"},
      {convolution, "UPCAST:2:8;TILE:4:4;UNROLL:1:3;UNROLL:1:3"},
      {rows, "TILE:1:9;UNROLL:0:8"},
      {rows, "UPCAST:0:3;TILE:2:16"},
      {all, "TILE:0:8"},
      {all, "TILE:0:16;UNROLL:0:8;PREFETCH"},
      {factors, "TILE:1:2"},
  };
  expect_agreement(lines, 3);
}

// SKIP: steps over padding are not taken, and what is summed is the same.
TEST(Opts, SkippedPaddingAgreesWithTheTensorGraph) {
  const auto image = [](TensorOps& t) {
    TensorOps::Conv conv;
    conv.padding = {1, 1};
    return t.conv2d(input(0, {1, 3, 5, 5}), weights(1, {16, 3, 3, 3}), std::nullopt, conv);
  };
  const auto apart = [](TensorOps& t) {  // some steps read nothing but padding at all
    TensorOps::Conv conv;
    conv.padding = {4, 6};
    conv.stride = {2, 1};
    conv.dilation = {2, 3};
    return t.conv2d(input(0, {1, 2, 5, 4}), input(1, {4, 2, 3, 3}), std::nullopt, conv);
  };
  const auto halves = [](TensorOps& t) {
    TensorOps::Conv conv;
    conv.padding = {2, 1};
    return t.conv2d(t.cast(input(0, {1, 3, 4, 5}), DType::F16),
                    t.cast(input(1, {4, 3, 5, 3}), DType::F16), std::nullopt, conv);
  };
  const auto pool = [](TensorOps& t) {
    TensorOps::Pool p;
    p.kernel = {3, 3};
    p.stride = {2, 2};
    p.padding = {1, 1};
    return t.max_pool2d(t.sub(input(0, {1, 2, 7, 8}), input(1, {1})), p);
  };
  const auto product = [](TensorOps& t) { return t.matmul(input(0, {5, 14}), input(1, {14, 9})); };
  const Line lines[] = {
      {image, "SKIP:4"},  // output axes 0 to 2, channels, rows and columns of the filter
      {image, "SKIP:5"},
      {image, "SKIP:4;SKIP:5"},
      {image, "UPCAST:0:8;UPCAST:2:5;SKIP:5"},
      {image, "UPCAST:0:8;UPCAST:2:5;UNROLL:2:3;SKIP:5;SKIP:6"},
      {image, "UPCAST:0:8;UPCAST:1:2;UPCAST:2:5;UNROLL:2:3;SKIP:7;LAYOUT:1"},
      {image, "UPCAST:0:8;UPCAST:1:5;UPCAST:1:5;UNROLL:1:3;UNROLL:1:3;SKIP:5;SKIP:6"},
      {image, "UPCAST:0:8;UPCAST:2:5;SWAP:4:5;SKIP:4;PACK:2:0"},
      {image, "UPCAST:0:8;UPCAST:2:5;UNROLL:2:3;PACK:2:0;SKIP:5;SKIP:6"},
      {image, "UPCAST:0:8;THREAD:1:2;UPCAST:2:5;UNROLL:2:3;SKIP:6;SKIP:7"},
      {image, "UPCAST:2:8;SKIP:4"},
      {image, "UPCAST:2:8;UNROLL:2:3;SKIP:4;SKIP:5"},  // along the lanes: nothing is known
      {apart, "SKIP:4;SKIP:5"},
      {apart, "UPCAST:0:4;UPCAST:1:3;SKIP:5"},
      {apart, "UPCAST:0:4;UPCAST:1:0;UNROLL:2:3;SKIP:4;SKIP:5"},
      {apart, "UPCAST:0:4;UPCAST:0:0;UPCAST:0:0;UNROLL:0:0;UNROLL:0:0;UNROLL:0:0;SKIP:4;SKIP:5"},
      {halves, "UPCAST:0:4;UPCAST:1:5;UNROLL:2:3;SKIP:4;SKIP:5"},
      {pool, "SKIP:3;SKIP:4"},
      {pool, "UPCAST:2:4;UNROLL:0:3;SKIP:3;SKIP:4"},
      {product, "TILE:2:4;SKIP:3"},
      {product, "TILE:2:4;UPCAST:2:8;UNROLL:0:3;SKIP:4"},
  };
  expect_agreement(lines, 2);
}

// Of a window that is written out, what reads one pixel stands together: a pixel is held for that
// long, and the weights of the steps are fewer than pixels would be.
TEST(Opts, WhatReadsOneElementStandsTogether) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp sink =
      make(Op::SINK, DType::Void,
           {t.conv2d(input(0, {1, 3, 6, 9}), weights(1, {16, 3, 3, 3}), std::nullopt, {})});
  const Opts opts = std::get<Opts>(parse_opts("UPCAST:0:16;UPCAST:1:7;UNROLL:2:3;LAYOUT:1"));
  const auto lowered = lower(make_kernels(sink).kernels[0].ast, opts, {});
  ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
  std::map<uint32_t, std::vector<int>> readers;  // by the id of a pixel's LOAD: which additions
  int additions = 0;
  for (UOp u : std::get<LinearKernel>(lowered).list) {
    if (u.op() != Op::ADD || u.dtype() != DType::F32) continue;
    const UOp product = u.src(0).op() == Op::MUL ? u.src(0) : u.src(1);
    ASSERT_EQ(product.op(), Op::MUL);
    for (UOp factor : product.srcs())
      if (factor.shape().empty()) readers[factor.id()].push_back(additions);
    additions++;
  }
  EXPECT_EQ(additions, 7 * 2 * 3);  // pixels, vectors of channels, steps
  EXPECT_EQ(readers.size(), 9U);
  for (const auto& [pixel, at] : readers)
    EXPECT_EQ(at.back() - at.front() + 1, static_cast<int>(at.size())) << pixel;
}

TEST(Opts, SkipSaysWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto why = [&](auto build, const char* opts, const Target& target = {}) -> std::string {
    TensorOps t;
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {build(t)}));
    const auto s = apply_opts(g.kernels[0].ast, std::get<Opts>(parse_opts(opts)), target);
    const auto* r = std::get_if<OptRefusal>(&s);
    return r ? r->reason : "legal";
  };
  const auto image = [](TensorOps& t) {
    TensorOps::Conv conv;
    conv.padding = {1, 0};
    return t.conv2d(input(0, {1, 3, 6, 6}), input(1, {8, 3, 3, 3}), std::nullopt, conv);
  };
  const auto nothing = [](int axis) {
    return fmt::format("nothing that axis {} reads is padded along it where it is known", axis);
  };
  EXPECT_EQ(why(image, "SKIP:4"), "legal");
  EXPECT_EQ(why(image, "SKIP:3"), nothing(3));             // channels
  EXPECT_EQ(why(image, "SKIP:5"), nothing(5));             // no padding there
  EXPECT_EQ(why(image, "UPCAST:1:2;SKIP:5"), nothing(5));  // one row of two needs the step
  EXPECT_EQ(why(image, "UNROLL:1:3;SKIP:5"), nothing(5));  // the row is a loop
  EXPECT_EQ(why(image, "UPCAST:1:6;UNROLL:1:3;SKIP:5"), "legal");
  EXPECT_EQ(why(image, "SKIP:0"), "axis 0 is WEAK; SKIP takes one of a reduction");
  EXPECT_EQ(why(image, "SKIP:6"), "axis 6 does not exist, SKIP has 6 axes here");
  Target products;
  products.instructions = "avx512bf16";
  products.vector_bytes = 64;
  const auto small = [](TensorOps& t) {
    return t.matmul(t.cast(input(0, {16, 32}), DType::BF16),
                    t.cast(input(1, {32, 16}), DType::BF16));
  };
  EXPECT_EQ(why(small, "TC:0:(-1,2,1);SKIP:3", products), "axis 3 is of a matrix product");
  EXPECT_EQ(why(image, "SKIP:4;SKIP:4"), "axis 4 skips padding already");
  EXPECT_EQ(why(image, "SKIP:4;UPCAST:0:2"),
            "what splits or moves loops comes before PACK, LAYOUT and SKIP");
  EXPECT_EQ(why(image, "SKIP:4", *emulated_target("emulator:sm_80")),
            "SKIP is for processors; emulator:sm_80 has groups of threads");
}

// PREFETCH: a hint for every vector of the tile, before its first product; none where the place of
// the result is not known yet.
TEST(Opts, PrefetchNamesTheTileBeforeItsReduction) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto hints = [&](UOp ast, const char* opts) {
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), {});
    const std::vector<UOp> list = std::get<LinearKernel>(lowered).list;
    int n = 0, products = 0;
    for (UOp u : list) {
      products += u.op() == Op::MUL && is_float(u.dtype());
      n += u.op() == Op::NOOP;
      if (u.op() == Op::NOOP) {
        EXPECT_EQ(products, 0) << opts;
        EXPECT_EQ(u.src(0).op(), Op::SHRINK) << opts;
      }
    }
    EXPECT_GT(products, 0);
    return n;
  };
  const UOp ast = matmul_ast(6, 8, 32);
  EXPECT_EQ(hints(ast, "UPCAST:1:16;UPCAST:0:3"), 0);
  EXPECT_EQ(hints(ast, "UPCAST:1:16;UPCAST:0:3;PREFETCH"), 6);  // 3 rows of two vectors of 8
  EXPECT_EQ(hints(ast, "UPCAST:1:16;UPCAST:0:3;TILE:4:4;PREFETCH"), 6);
  EXPECT_EQ(hints(ast, "UPCAST:1:16;UPCAST:0:3;UNROLL:0:0;PREFETCH"), 0);  // no loop to wait for
  TensorOps t;
  const KernelGraph g =
      make_kernels(make(Op::SINK, DType::Void, {t.softmax(input(0, {4, 33}), {{-1}, false})}));
  EXPECT_EQ(hints(g.kernels[0].ast, "UPCAST:1:16;PREFETCH"), 0);
}

// PREFETCH of an operand: during a reduction, of the next tile, a line for every tile of rows and
// step; nothing depends on it.
TEST(Opts, PrefetchFetchesTheNextTileOfAnOperand) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto hints = [&](UOp ast, const char* opts) {
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), {});
    EXPECT_TRUE(std::holds_alternative<LinearKernel>(lowered)) << opts;
    const auto& kernel = std::get<LinearKernel>(lowered);
    int n = 0, reductions = 0;
    for (UOp u : kernel.list) {
      if (u.op() == Op::RANGE) reductions += u.axis_type() == AxisType::REDUCE;
      if (u.op() == Op::END && u.src(1).axis_type() == AxisType::REDUCE) reductions--;
      if (u.op() != Op::NOOP) continue;
      n++;
      EXPECT_EQ(reductions, 1) << opts;
      EXPECT_EQ(memory_of(u.src(0)).param().slot, 2) << opts;
      EXPECT_FALSE(is_written(kernel, memory_of(u.src(0)))) << opts;
    }
    return n;
  };
  const UOp ast = matmul_ast(24, 16, 96);  // 4 tiles of rows, 3 of columns: 2 lines each
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;SWAP:0:1"), 0);
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;SWAP:0:1;PREFETCH:2"), 1);
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;SWAP:0:1;PACK:2:1;PREFETCH:2"), 1);
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;SWAP:0:1;UNROLL:0:2;PREFETCH:2"), 1);
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;SWAP:0:1;UNROLL:0:8;PREFETCH:2"), 4);
  EXPECT_EQ(hints(ast, "UPCAST:1:32;UPCAST:0:6;PREFETCH:2"), 2);  // no tile of rows inside
  // Runs of elements that begin in the middle of a line reach into one more.
  EXPECT_EQ(hints(matmul_ast(24, 16, 99), "UPCAST:1:32;UPCAST:0:6;PREFETCH:2"), 3);
  EXPECT_EQ(hints(matmul_ast(24, 16, 99), "UPCAST:0:6;PREFETCH:2"), 1);  // one element
}

// Where the hints of one tile point, all together: at every line of the next one, and beyond the
// last tile at lines of that.
TEST(Opts, PrefetchReachesEveryLineOfTheNextTile) {
  Arena arena;
  const Arena::Scope scope(arena);
  const UOp ast = matmul_ast(24, 8, 100);
  for (const char* opts : {"UPCAST:1:32;UPCAST:0:6;SWAP:0:1;PREFETCH:2",
                           "UPCAST:1:32;UPCAST:0:6;SWAP:0:1;UNROLL:0:4;PACK:2:1;PREFETCH:2",
                           "UPCAST:1:32;UPCAST:0:3;SWAP:0:1;UNROLL:0:2;PREFETCH:2"}) {
    const auto applied = apply_opts(ast, std::get<Opts>(parse_opts(opts)), {});
    const auto& schedule = std::get<KernelSchedule>(applied);
    ASSERT_EQ(schedule.prefetches().size(), 1U) << opts;
    std::vector<UOp> loops;
    for (UOp r : schedule.axes())
      if (r.axis_type() == AxisType::WEAK || r.axis_type() == AxisType::REDUCE) loops.push_back(r);
    std::map<int64_t, std::set<int64_t>> lines;  // by the tile of columns: elements / 16
    int64_t steps = 1;
    for (UOp r : loops) steps *= KernelSchedule::size(r);
    for (int64_t i = 0; i < steps; i++) {
      Substitution now;
      int64_t rest = i, tile = 0;
      for (size_t l = loops.size(); l-- > 0;) {
        const int64_t n = KernelSchedule::size(loops[l]);
        now.emplace(loops[l], iconst(rest % n));
        if (l == 0) tile = rest % n;  // columns are outermost
        rest /= n;
      }
      for (UOp at : schedule.prefetches()[0].at) {
        const UOp element = simplify(substitute(at, now));
        ASSERT_TRUE(element.is_const()) << opts;
        lines[tile].insert(element.ival() / 16);
      }
    }
    for (int64_t tile = 0; tile < 4; tile++)
      for (int64_t k = 0; k < 8; k++)
        for (int64_t j = 0; j < 32; j++) {
          const int64_t next = std::min<int64_t>(tile + 1, 3) * 32 + j;
          EXPECT_TRUE(next >= 100 || lines[tile].contains((k * 100 + next) / 16)) << opts;
        }
  }
}

TEST(Opts, PrefetchOfAnOperandSaysWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto why = [](UOp ast, const char* opts, const Target& target = {}) {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), target);
    const auto* r = std::get_if<OptRefusal>(&s);
    return r ? r->reason : "legal";
  };
  const UOp ast = matmul_ast(24, 16, 96);
  EXPECT_EQ(why(ast, "UPCAST:1:32;PREFETCH:2;PREFETCH;STREAM"), "legal");
  EXPECT_EQ(why(ast, "PREFETCH:2;PREFETCH:2"), "PREFETCH:2 was applied already");
  EXPECT_EQ(why(ast, "PREFETCH:3"),
            "PREFETCH needs an operand that is read at one place; 3 is read at 0");
  for (const char* late : {"PACK:2:1", "UPCAST:0:4", "SKIP:2"})
    EXPECT_EQ(why(ast, ("PREFETCH:2;" + std::string(late)).c_str()),
              "PREFETCH of an operand comes last");
  EXPECT_EQ(why(ast, "UPCAST:1:0;PREFETCH:2"), "no output loop moves operand 2 on to another tile");
  EXPECT_EQ(why(ast, "UNROLL:0:0;PREFETCH:2"), "no loop of a reduction moves operand 2");
  EXPECT_EQ(why(matmul_ast(24, 16, 16), "UPCAST:1:0;UPCAST:0:12;PREFETCH:1"),
            "12 lines would be fetched in 1 steps, more than 8 each");
  EXPECT_EQ(why(ast, "PREFETCH:2", *emulated_target("emulator:sm_80")),
            "PREFETCH is for a processor's caches; emulator:sm_80 has none");
  TensorOps t;
  const auto ast_of = [](UOp root) {
    return make_kernels(make(Op::SINK, DType::Void, {root})).kernels[0].ast;
  };
  TensorOps::Conv conv;
  conv.padding = {1, 1};
  const UOp image =
      ast_of(t.conv2d(input(0, {1, 3, 6, 6}), input(1, {8, 3, 3, 3}), std::nullopt, conv));
  EXPECT_EQ(why(image, "SKIP:4;PREFETCH:1"), "operand 1 is read by a loop that skips padding");
  EXPECT_EQ(why(image, "PREFETCH:1"), "legal");
}

// The last tile begins sooner instead of having masks; where that is no use they stay.
TEST(Opts, LastTilesOverlapTheOnesBefore) {
  const auto product = [](TensorOps& t) {
    return t.matmul(input(0, {13, 14}), input(1, {14, 45}));
  };
  const auto dots = [](TensorOps& t) {
    return t.matmul(input(0, {13, 37}), t.transpose(input(1, {45, 37}), 0, 1));
  };
  const auto image = [](TensorOps& t) {
    TensorOps::Conv conv;
    conv.padding = {1, 1};
    return t.conv2d(input(0, {1, 3, 6, 21}), weights(1, {9, 3, 3, 3}), std::nullopt, conv);
  };
  const auto sum = [](TensorOps& t) { return t.add(input(0, {5, 21}), input(1, {21})); };
  const auto turned = [](TensorOps& t) {
    return t.contiguous(t.transpose(input(0, {21, 27}), 0, 1));
  };
  const auto padded = [](TensorOps& t) {  // its gate looks like that of a tail
    return t.pad(t.exp2(input(0, {5, 4})), {0, 1}, {2, 1}, fconst(0, DType::F32));
  };
  const auto position = [](TensorOps& t) {  // a value that tells where it stands
    return t.mul(t.cast(t.arange(int64_t{0}, int64_t{21}, int64_t{1}), DType::F32), input(0, {21}));
  };
  struct Tail {
    UOp (*build)(TensorOps&);
    const char* opts;
    bool masks;
  };
  const Tail tails[] = {
      {product, "UPCAST:1:16", false},
      {product, "UPCAST:1:16;UPCAST:0:6", false},
      {product, "UPCAST:0:6;UPCAST:1:32;SWAP:0:1;PACK:2:1", false},
      {product, "UPCAST:1:8;TILE:1:3", false},
      {product, "UPCAST:1:8;TILE:1:3;SWAP:0:1;PACK:2:1", false},
      {product, "UPCAST:1:8;TILE:1:4", true},     // of loops
      {product, "UPCAST:1:16;THREAD:0:2", true},  // of the other thread's rows
      {product, "UPCAST:1:16;PREFETCH:2", false},
      {product, "UPCAST:1:16;STREAM", true},      // its vectors begin where lines do
      {product, "UPCAST:1:16;TILE:3:7", true},    // what is stored twice would be added twice
      {product, "UPCAST:1:16;THREAD:1:2", true},  // the last tile is the other thread's first
      {product, "UPCAST:1:12;THREAD:1:2", false},
      {product, "UPCAST:1:8;THREAD:1:2;PACK:2:1", false},
      {product, "THREAD:1:2;UPCAST:1:16", true},  // the elements of another thread
      {product, "UPCAST:1:48", true},             // there is no tile before
      {dots, "UPCAST:1:16;UPCAST:0:4;SWAP:0:1;PACK:2:1", false},
      {dots, "UPCAST:1:16;UPCAST:0:4;SWAP:0:1;UNROLL:0:4;PACK:2:1", true},  // of the reduction
      {dots, "UPCAST:1:8;PACK:2:0", false},
      {image, "UPCAST:2:8;UPCAST:0:4", true},  // of the image
      {image, "UPCAST:2:8;PACK:2:0;LAYOUT:1", true},
      {image, "UPCAST:2:8;PACK:2:1", true},
      {image, "UPCAST:0:4;UPCAST:2:8;UNROLL:2:3;SKIP:6", true},
      {sum, "UPCAST:0:2", false},
      {sum, "UPCAST:1:8", false},
      {turned, "UPCAST:1:8;UPCAST:0:8", false},
      {padded, "UPCAST:0:2", true},
      {padded, "UPCAST:0:5", true},
      {position, "UPCAST:0:8", true},
  };
  std::vector<Line> lines;
  for (const Tail& tail : tails) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {tail.build(t)}));
    Target target;
    target.threads = 2;
    const auto lowered = lower(g.kernels.back().ast, std::get<Opts>(parse_opts(tail.opts)), target);
    ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered))
        << tail.opts << ": " << std::get<OptRefusal>(lowered).reason;
    bool masks = false;
    for (UOp u : std::get<LinearKernel>(lowered).list)
      masks |= (u.op() == Op::LOAD || u.op() == Op::STORE) && u.nsrc() == 3;
    EXPECT_EQ(masks, tail.masks) << tail.opts;
    lines.push_back({tail.build, tail.opts});
  }
  expect_agreement(lines, 2);
}

// Tiled, reordered and packed products, with tails in every loop, are still the product.
TEST(Opts, TilesAndPackedOperandsAgreeWithTheTensorGraph) {
  const char* const all[] = {
      "UPCAST:1:8;UPCAST:0:3;SWAP:0:1;PACK:2:1",
      "UPCAST:1:8;UPCAST:0:3;UNROLL:0:4;TILE:1:2;SWAP:0:1;PACK:2:1",
      "UPCAST:1:8;UPCAST:0:3;UNROLL:0:5;TILE:0:2;SWAP:1:2;PACK:1:1",
      "TILE:0:2;TILE:1:4;SWAP:0:3;PACK:1:0;PACK:2:2",
      "THREAD:0:2;UPCAST:1:8;TILE:0:2;PACK:2:0",
      "UNROLL:0:8;UPCAST:0:2;PACK:1:1",
      "UPCAST:1:48;UPCAST:0:3;UNROLL:0:4;PACK:2:0",
      "UPCAST:0:16;UPCAST:0:9",
  };
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp sink = make(Op::SINK, DType::Void, {t.matmul(input(0, {13, 14}), input(1, {14, 45}))});
  const auto in = inputs_of(sink, 1);
  const std::vector<double> want = test::evaluate(sink, in)[0].data;
  const KernelGraph g = make_kernels(sink);
  Target target;
  target.threads = 2;
  for (const char* text : all) {
    const Opts opts = std::get<Opts>(parse_opts(text));
    expect_close(run(g, in, target, [&](UOp) { return opts; }), want, text);
  }
}

// An operand that is read with a stride is packed in the order of the lanes: read as vectors.
TEST(Opts, LanesOfAStridedOperandLieSideBySideOncePacked) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  TensorOps::Conv conv;
  conv.stride = {2, 2};
  conv.padding = {1, 1};
  const UOp sink =
      make(Op::SINK, DType::Void,
           {t.conv2d(input(0, {1, 4, 12, 12}), input(1, {5, 4, 3, 3}), std::nullopt, conv)});
  const auto in = inputs_of(sink, 1);
  const std::vector<double> want = test::evaluate(sink, in)[0].data;
  const KernelGraph g = make_kernels(sink);
  const Opts opts =
      std::get<Opts>(parse_opts("UPCAST:2:8;UPCAST:0:3;UNROLL:0:4;SWAP:0:1;PACK:2:1"));
  expect_close(run(g, in, {}, [&](UOp) { return opts; }), want, "strided");
  const auto lowered = lower(g.kernels[0].ast, opts, {});
  int reads = 0;
  for (UOp u : std::get<LinearKernel>(lowered).list) {
    if (u.op() != Op::LOAD || memory_of(u.src(0)).op() != Op::BUFFER) continue;
    reads++;
    EXPECT_EQ(u.src(0).op(), Op::SHRINK);
  }
  EXPECT_GT(reads, 0);
}

// Constant operands come in the order of the loops; images are padded in a copy, where a window's
// steps share their elements; results that lie across the lanes are transposed.
TEST(Opts, LaidOutWeightsAndPaddedImagesAgreeWithTheTensorGraph) {
  struct Shape {
    int64_t channels, h, w, filter, stride, padding, dilation;
  };
  const Shape shapes[] = {{4, 8, 8, 3, 1, 1, 1}, {3, 9, 32, 5, 2, 2, 1}, {2, 6, 12, 3, 1, 0, 2},
                          {5, 7, 7, 1, 2, 0, 1}, {3, 5, 14, 3, 2, 3, 1}, {1, 16, 16, 4, 3, 1, 1}};
  const char* const all[] = {
      "LAYOUT:1",
      "UPCAST:0:16;UPCAST:2:4;LAYOUT:1",
      "UPCAST:0:8;UPCAST:2:2;PACK:2:0;LAYOUT:1",
      "UPCAST:0:32;UPCAST:2:7;UNROLL:0:2;PACK:2:0;LAYOUT:1",
      "UPCAST:0:8;UPCAST:2:3;SWAP:0:1;LAYOUT:1;PACK:2:1",
      "UPCAST:0:16;UPCAST:2:5;TILE:0:2;LAYOUT:1;PACK:2:0",
      "UPCAST:2:16;UPCAST:0:3;PACK:2:0",
      "UPCAST:2:8;UPCAST:0:2;UNROLL:1:2;PACK:2:1;LAYOUT:1",
      "THREAD:0:2;UPCAST:2:4;PACK:2:0;LAYOUT:1",
  };
  int packed = 0, transposed = 0;
  for (const Shape& s : shapes) {
    Arena arena;
    const Arena::Scope scope(arena);
    TensorOps t;
    TensorOps::Conv conv;
    conv.stride = {s.stride, s.stride}, conv.padding = {s.padding, s.padding};
    conv.dilation = {s.dilation, s.dilation};
    const UOp sink =
        make(Op::SINK, DType::Void,
             {t.conv2d(input(0, {1, s.channels, s.h, s.w}),
                       weights(1, {19, s.channels, s.filter, s.filter}), std::nullopt, conv)});
    const auto in = inputs_of(sink, 1);
    const std::vector<double> want = test::evaluate(sink, in)[0].data;
    const KernelGraph g = make_kernels(sink);
    Target target;
    target.threads = 2;
    for (const char* text : all) {
      const Opts opts = std::get<Opts>(parse_opts(text));
      const auto applied = apply_opts(g.kernels[0].ast, opts, target);
      if (std::holds_alternative<OptRefusal>(applied)) continue;  // an axis of one, here
      for (const Packing& p : std::get<KernelSchedule>(applied).packings())
        packed += std::ranges::any_of(p.dims, [](const auto& d) { return d.ranges.size() > 1; });
      expect_close(run(g, in, target, [&](UOp) { return opts; }), want, text);
      const auto lowered = lower(g.kernels[0].ast, opts, target);
      bool runs = false;
      for (UOp u : std::get<LinearKernel>(lowered).list)
        if (u.op() == Op::STORE && memory_of(u.src(0)).op() == Op::PARAM)
          runs |= u.src(0).op() == Op::SHRINK && opts[0].axis == 0;
      transposed += runs;
    }
  }
  EXPECT_GE(packed, 8);
  EXPECT_GE(transposed, 10);
}

TEST(Opts, LayoutSaysWhyNot) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const auto ast_of = [](UOp root) {
    return make_kernels(make(Op::SINK, DType::Void, {root})).kernels[0].ast;
  };
  const UOp product = ast_of(t.matmul(input(0, {6, 8}), weights(1, {8, 10})));
  const auto why = [](UOp ast, const char* opts, const Target& target = {}) {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), target);
    const auto* r = std::get_if<OptRefusal>(&s);
    return r ? r->reason : "legal";
  };
  EXPECT_EQ(why(product, "LAYOUT:2"), "legal");
  EXPECT_EQ(why(product, "LAYOUT:1"), "operand 1 is no constant");
  EXPECT_EQ(why(product, "LAYOUT:0"), "operand 0 is written");
  EXPECT_EQ(why(product, "LAYOUT:3"),
            "LAYOUT needs an operand that is read at one place; 3 is read at 0");
  EXPECT_EQ(why(product, "LAYOUT:2;LAYOUT:2"), "operand 2 is laid out already");
  EXPECT_EQ(why(product, "LAYOUT:2;PACK:2:0"), "operand 2 is laid out already");
  EXPECT_EQ(why(product, "PACK:2:0;LAYOUT:2"), "operand 2 is packed already");
  EXPECT_EQ(why(product, "LAYOUT:2;UNROLL:0:2"),
            "what splits or moves loops comes before PACK, LAYOUT and SKIP");
  EXPECT_EQ(why(product, "LAYOUT:2", *emulated_target("emulator:sm_80")),
            "LAYOUT is for processors; emulator:sm_80 has groups of threads");
  TensorOps::Conv conv;
  const UOp windows =
      ast_of(t.conv2d(weights(0, {1, 2, 16, 16}), input(1, {3, 2, 5, 5}), std::nullopt, conv));
  const UOp gathered =
      ast_of(t.gather(weights(0, {9, 4}), t.cast(input(1, {5, 4}), DType::I32), 0));
  EXPECT_EQ(why(gathered, "LAYOUT:2"),
            "operand 2 is read where a variable or another operand says");
  const UOp large = ast_of(t.matmul(input(0, {2, 16384}), weights(1, {16384, 8193})));
  EXPECT_EQ(why(large, "LAYOUT:2"),
            "a layout of 536936448 bytes exceeds the 536870912 there are for each");
  EXPECT_EQ(why(windows, "LAYOUT:2"),
            "7200 elements or more are more than 4 times the operand's 512");
}

// What is read across the lanes is loaded along another axis and transposed in registers.
TEST(Opts, BlocksThatAreReadAcrossAreTransposed) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp sink =
      make(Op::SINK, DType::Void, {t.contiguous(t.transpose(input(0, {32, 24}), 0, 1))});
  const auto in = inputs_of(sink, 1);
  const std::vector<double> want = test::evaluate(sink, in)[0].data;
  const KernelGraph g = make_kernels(sink);
  for (const char* text :
       {"UPCAST:1:8;UPCAST:0:8", "UPCAST:1:8;UPCAST:0:24", "UPCAST:1:16;UPCAST:0:8",
        "UPCAST:1:4;UPCAST:0:4", "UPCAST:1:8;UPCAST:0:7"}) {
    const Opts opts = std::get<Opts>(parse_opts(text));
    expect_close(run(g, in, {}, [&](UOp) { return opts; }), want, text);
    const auto lowered = lower(g.kernels[0].ast, opts, {});
    int across = 0;
    for (UOp u : std::get<LinearKernel>(lowered).list)
      across += u.op() == Op::LOAD && u.src(0).op() == Op::INDEX;
    EXPECT_EQ(across == 0, std::string(text) != "UPCAST:1:8;UPCAST:0:7") << text;
  }
}

TEST(RenderKernel, RefusesWhatIsNoKernelAndWhatIsNotLegal) {
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const KernelGraph g =
      make_kernels(make(Op::SINK, DType::Void, {t.matmul(input(0, {8, 8}), input(1, {8, 8}))}));
  const std::string ast = print_uops(g.kernels[0].ast);
  const auto stage = [](const RenderRequest& r) {
    const auto k = render_kernel(r);
    return std::holds_alternative<Refusal>(k) ? std::get<Refusal>(k).stage : "ok";
  };
  EXPECT_EQ(stage({ast, "UPCAST:0:4", {}, false}), "ok");
  EXPECT_EQ(stage({ast, "UPCAST:9:4", {}, false}), "rejected");
  EXPECT_EQ(stage({ast, "UPCAST:0:9", {}, false}), "rejected");
  EXPECT_EQ(stage({ast, "LOCAL:0:4", {}, false}), "rejected");
  EXPECT_EQ(stage({ast, "no opts", {}, false}), "rejected");
  EXPECT_EQ(stage({"garbage", "", {}, false}), "compile_error");
  EXPECT_EQ(stage({"uop 1\n%0=CONST:f32()[value=0x1p+0]\n", "", {}, false}), "compile_error");
}

TEST(Keys, DifferInShapeDtypeAndAxisButNotInNames) {
  Arena arena;
  const Arena::Scope scope(arena);
  const auto key = [](auto build) {
    TensorOps t;
    return make_kernels(make(Op::SINK, DType::Void, {build(t)})).kernels[0].key;
  };
  const auto named = [](const char* name) {
    ParamArg a;
    a.slot = 0;
    a.name = name;
    const int64_t shape[] = {6, 6};
    return param(a, DType::F32, shape);
  };
  const auto sum = [](TensorOps& t) { return t.sum(input(0, {6, 6}), {{1}, false}, false); };
  EXPECT_EQ(key(sum), key([&](TensorOps& t) {
              return t.sum(named("weights"), {{1}, false}, false);
            }));
  EXPECT_NE(key(sum), key([](TensorOps& t) {
              return t.sum(input(0, {6, 6}), {{0}, false}, false);
            }));
  EXPECT_NE(key(sum), key([](TensorOps& t) {
              return t.sum(input(0, {6, 7}), {{1}, false}, false);
            }));
  EXPECT_NE(key(sum), key([](TensorOps& t) {
              return t.max(input(0, {6, 6}), {{1}, false}, false);
            }));
}

}  // namespace
}  // namespace beamline
