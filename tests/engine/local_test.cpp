// Opts of targets whose threads come in groups: what is legal, what they do, and what the
// interpreter refuses to run.
#include <gtest/gtest.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/lower/passes.h"
#include "engine/rangeify/rangeify.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

class Local : public testing::Test {
 protected:
  UOp matmul(int64_t m, int64_t n, int64_t k) {
    const auto input = [](int64_t slot, Ints shape) {
      ParamArg a;
      a.slot = slot;
      return param(a, DType::F32, shape);
    };
    return make_kernels(make(Op::SINK, DType::Void, {t.matmul(input(0, {m, k}), input(1, {k, n}))}))
        .kernels[0]
        .ast;
  }
  std::string axes(UOp ast, const char* opts) {
    const auto s = apply_opts(ast, std::get<Opts>(parse_opts(opts)), target);
    if (const auto* r = std::get_if<OptRefusal>(&s)) return r->reason;
    std::string text;
    for (UOp r : std::get<KernelSchedule>(s).axes())
      text += std::to_string(KernelSchedule::size(r)) + " " +
              std::string(axis_type_name(r.axis_type())) + ", ";
    return text;
  }

  Arena arena;
  Arena::Scope scope{arena};
  TensorOps t;
  Target target = *emulated_target("emulator:sm_80");
};

TEST_F(Local, AxesAndWhyNot) {
  const UOp ast = matmul(64, 96, 256);
  const std::pair<const char*, const char*> cases[] = {
      {"", "64 GLOBAL, 96 GLOBAL, 256 REDUCE, "},
      {"LOCAL:0:16", "4 GLOBAL, 96 GLOBAL, 16 LOCAL, 256 REDUCE, "},
      {"LOCAL:0:0", "96 GLOBAL, 64 LOCAL, 256 REDUCE, "},
      {"LOCAL:0:16;LOCAL:1:32", "4 GLOBAL, 3 GLOBAL, 16 LOCAL, 32 LOCAL, 256 REDUCE, "},
      {"LOCAL:0:5", "5 does not divide 64"},
      {"LOCAL:2:4", "axis 2 is REDUCE; LOCAL takes an output axis"},
      {"LOCAL:0:64;LOCAL:0:32", "2048 threads exceed the 1024 of a group"},
      {"LOCAL:0:4;LOCAL:2:2", "axis 2 is LOCAL; LOCAL takes an output axis"},
      {"GROUP:0:16", "64 GLOBAL, 96 GLOBAL, 16 GROUP_REDUCE, 16 REDUCE, "},
      {"GROUPTOP:0:32", "64 GLOBAL, 96 GLOBAL, 32 GROUP_REDUCE, 8 REDUCE, "},
      {"GROUP:0:0", "64 GLOBAL, 96 GLOBAL, 256 GROUP_REDUCE, "},
      {"GROUP:1:4", "axis 1 does not exist, GROUP has 1 axes here"},
      {"LOCAL:0:64;GROUP:0:32", "2048 threads exceed the 1024 of a group"},
      {"GROUP:0:256;UPCAST:0:64", "65536 bytes of shared memory exceed the 49152 of a group"},
      {"UPCAST:0:64;GROUP:0:256", "65536 bytes of shared memory exceed the 49152 of a group"},
      {"NOLOCALS", "64 GLOBAL, 96 GLOBAL, 256 REDUCE, "},
      {"NOLOCALS;LOCAL:0:4", "NOLOCALS was applied, LOCAL needs them"},
      {"NOLOCALS;GROUP:0:4", "NOLOCALS was applied, GROUP needs them"},
      {"NOLOCALS;NOLOCALS", "NOLOCALS was applied already"},
      {"LOCAL:0:4;NOLOCALS", "NOLOCALS comes before LOCAL, GROUP and GROUPTOP"},
      {"STREAM", "STREAM is for stores past a processor's caches; emulator:sm_80 has none"},
      {"THREAD:0:2", "axis 0 is GLOBAL; THREAD takes an output loop"},
      {"PADTO:0:32", "64 is a multiple of 32 already"},
      {"PADTO:0:48", "96 GLOBAL, 96 GLOBAL, 256 REDUCE, "},
      {"PADTO:0:256", "64 would be padded to 256, fourfold or more"},
      {"PADTO:0:1", "an amount under 2 changes nothing"},
      {"UPCAST:0:64;PADTO:1:5", "axis 1 is UPCAST; PADTO takes a loop"},
  };
  for (const auto& [opts, expected] : cases) EXPECT_EQ(axes(ast, opts), expected) << opts;
}

TEST_F(Local, PaddedAxesCanBeSplit) {
  EXPECT_EQ(axes(matmul(63, 5, 7), "PADTO:0:32;LOCAL:0:32"),
            "2 GLOBAL, 5 GLOBAL, 32 LOCAL, 7 REDUCE, ");
  EXPECT_EQ(axes(matmul(63, 5, 7), "LOCAL:0:32"), "32 does not divide 63");
}

TEST_F(Local, TargetsWithoutGroupsSayWhatIsMissing) {
  target = Target{};
  EXPECT_EQ(axes(matmul(8, 8, 8), "LOCAL:0:4"),
            "LOCAL needs a target with local memory, cpu has none");
  EXPECT_EQ(axes(matmul(8, 8, 8), "PADTO:0:32"),
            "PADTO is not needed here: amounts need not divide");
}

TEST_F(Local, GridAndGroupAreTold) {
  const auto k = lower(matmul(64, 96, 256),
                       std::get<Opts>(parse_opts("LOCAL:0:16;UPCAST:1:4;GROUP:0:8")), target);
  const auto& linear = std::get<LinearKernel>(k);
  EXPECT_EQ(linear.grid.global, (std::vector<int64_t>{24, 4}));
  EXPECT_EQ(linear.grid.local, (std::vector<int64_t>{8, 16}));
  int barriers = 0, shared = 0;
  for (UOp u : linear.list) {
    barriers += u.op() == Op::BARRIER;
    if (u.op() == Op::BUFFER && u.addrspace() == AddrSpace::Local) shared += u.numel();
  }
  EXPECT_EQ(barriers, 1);
  EXPECT_EQ(shared, 16 * 8 * 4);
}

// out0[g] = sum_k a[g, k] and out1[g, i] = sum_k b[g, i, k]: the loop over i is none of the grid.
UOp two_stores(int64_t m, int64_t n, int64_t k) {
  const auto memory = [](int64_t slot, int64_t elements) {
    ParamArg a;
    a.slot = slot;
    const int64_t shape[] = {elements};
    return param(a, DType::F32, shape);
  };
  const UOp g = range(m, 0, AxisType::WEAK), i = range(n, 1, AxisType::WEAK),
            k0 = range(k, 2, AxisType::REDUCE), k1 = range(k, 3, AxisType::REDUCE);
  const auto at = [](UOp p, UOp index) { return make(Op::INDEX, p.dtype(), {p, index}); };
  const auto sum = [](UOp v, UOp r) {
    const UOp over[] = {r};
    return reduce(Op::ADD, v, over, 0);
  };
  const UOp row = g * iconst(n) + i;
  const UOp first = make(Op::STORE, DType::Void,
                         {at(memory(0, m), g), sum(at(memory(2, m * k), g * iconst(k) + k0), k0)}),
            second = make(Op::STORE, DType::Void,
                          {at(memory(1, m * n), row),
                           sum(at(memory(3, m * n * k), row * iconst(k) + k1), k1)});
  const UOp body = make(Op::GROUP, DType::Void, {first, make(Op::END, DType::Void, {second, i})});
  return make(Op::SINK, DType::Void, {make(Op::END, DType::Void, {body, g})});
}

// The steps of such a loop share memory: nobody writes to it again before all have read.
TEST_F(Local, AGroupInALoopWaitsAtItsEnd) {
  constexpr int64_t m = 3, n = 5, k = 8;
  const UOp ast = two_stores(m, n, k);
  EXPECT_EQ(axes(ast, ""), "5 WEAK, 3 GLOBAL, 8 REDUCE, 8 REDUCE, ");
  EXPECT_EQ(axes(ast, "PACK:3:1"), "PACK is for kernels of one store; here are 2");
  const auto run = [&](const char* opts, std::vector<std::string> skip, int barriers) {
    LowerOptions options;
    options.skip = std::move(skip);
    const auto lowered = lower(ast, std::get<Opts>(parse_opts(opts)), target, options);
    if (const auto* r = std::get_if<OptRefusal>(&lowered)) return r->reason;
    const auto& linear = std::get<LinearKernel>(lowered);
    EXPECT_EQ(std::ranges::count(linear.list, Op::BARRIER, &UOp::op), barriers) << opts;
    std::vector<InterpreterBuffer> memory;
    for (const int64_t size : {m, m * n, m * k, m * n * k})
      memory.push_back(make_buffer(DType::F32, static_cast<size_t>(size)));
    for (size_t p : {2, 3})
      for (size_t e = 0; e < memory[p].size(); e++)
        memory[p].floats[e] = static_cast<double>(e % 7);
    if (auto error = interpret(linear.list, memory, {1, linear.grid.global, linear.grid.local}))
      return *error;
    for (size_t p : {0, 1})
      for (size_t e = 0; e < memory[p].size(); e++) {
        double want = 0;
        for (size_t x = 0; x < k; x++) want += memory[p + 2].floats[e * k + x];
        EXPECT_EQ(memory[p].floats[e], want) << opts;
      }
    return std::string("ran");
  };
  EXPECT_EQ(run("", {}, 0), "ran");
  EXPECT_EQ(run("GROUP:0:4", {}, 1), "ran");  // outside of the loop
  EXPECT_EQ(run("GROUP:1:4", {}, 2), "ran");  // within
  EXPECT_EQ(run("GROUPTOP:1:0", {}, 2), "ran");
  EXPECT_EQ(run("GROUP:0:4;GROUP:1:4", {}, 3), "ran");
  EXPECT_EQ(run("GROUP:1:4", {"implicit barriers"}, 1),
            "LOAD: shared element 0 is read without a barrier after its write");
}

// What two reductions leave in shared memory is there at once.
TEST_F(Local, SharedMemoryOfAllReductionsCounts) {
  const UOp ast = two_stores(4, 4, 8192);
  EXPECT_EQ(axes(ast, "GROUP:0:1024;GROUP:1:1024"), "1048576 threads exceed the 1024 of a group");
  target.shared_bytes = 300;
  EXPECT_EQ(axes(ast, "GROUP:0:8"), "4 WEAK, 4 GLOBAL, 8 GROUP_REDUCE, 1024 REDUCE, 8192 REDUCE, ");
  EXPECT_EQ(axes(ast, "GROUP:0:8;GROUP:1:8"),
            "512 bytes of shared memory exceed the 300 of a group");
}

// Kernels that are wrong on purpose: a thread of a group of four stores to, and reads from, shared
// memory.
class Faulty : public testing::Test {
 protected:
  UOp special(const char* name, int64_t n) {
    return make(Op::SPECIAL, DType::I64, {iconst(n, DType::I64)}, 0, intern(std::string(name)));
  }
  UOp at(UOp memory, UOp i) { return make(Op::INDEX, DType::F32, {memory, i}); }
  UOp store(UOp place, UOp v) { return make(Op::STORE, DType::Void, {place, v}); }
  UOp load(UOp place) { return make(Op::LOAD, DType::F32, {place}); }
  std::string run(UOp sink) {
    std::vector<InterpreterBuffer> memory{make_buffer(DType::F32, 4)};
    const std::vector<UOp> list = toposort(make(Op::SINK, DType::Void, {sink}));
    return interpret(list, memory, {1, {}, {4}}).value_or("ran");
  }

  Arena arena;
  Arena::Scope scope{arena};
  UOp me = special("lidx0", 4);
  UOp out = [] {
    ParamArg a;
    const int64_t shape[] = {4};
    return param(a, DType::F32, shape);
  }();
  UOp shared = [] {
    ParamArg a;
    a.addrspace = AddrSpace::Local;
    const int64_t shape[] = {4};
    return buffer(a, DType::F32, shape);
  }();
  UOp zero = iconst(0, DType::I64), one = fconst(1, DType::F32);
  UOp after(UOp dep) { return make(Op::AFTER, DType::F32, {shared, dep}); }
};

TEST_F(Faulty, IsFound) {
  const UOp put = store(at(shared, me), one);
  const UOp barrier = make(Op::BARRIER, DType::Void, {put});
  EXPECT_EQ(run(store(at(out, me), load(at(after(barrier), zero)))), "ran");
  EXPECT_EQ(run(store(at(out, me), load(at(after(put), me)))), "ran");  // its own
  EXPECT_EQ(run(store(at(out, me), load(at(after(put), zero)))),
            "LOAD: shared element 0 is read without a barrier after its write");
  EXPECT_EQ(run(store(at(out, me), load(at(shared, me)))),
            "LOAD: shared element 0 is read before it is written");
  EXPECT_EQ(run(store(at(shared, zero), one)),
            "STORE: shared element 0 is touched by another thread too");
  EXPECT_EQ(run(store(at(out, zero), one)),
            "STORE: element 0 of PARAM 0 is written by two threads of a group");
  EXPECT_EQ(run(store(at(out, special("lidx1", 4)), one)), "SPECIAL: the grid has no lidx1");
  EXPECT_EQ(run(store(at(shared, iconst(4, DType::I64)), one)),
            "STORE: element 4 of BUFFER 0 with 4 elements");
}

// Two loops, one in the other. What the inner one waits for, the outer one need not.
TEST_F(Faulty, LoopsWaitWhereTheyHaveTo) {
  const auto loop = [](int64_t id) {
    return make(Op::RANGE, DType::I64, {iconst(3, DType::I64)},
                range(3, id, AxisType::LOOP).node()->val);
  };
  const UOp i = loop(0), j = loop(1), last = iconst(3, DType::I64);
  const auto number = [](UOp u) { return make(Op::CAST, DType::F32, {u}); };
  const auto behind = [](UOp end) { return make(Op::BARRIER, DType::Void, {end}); };
  const auto barriers = [&](UOp body, std::vector<UOp> loops) {
    loops.insert(loops.begin(), body);
    const UOp sink = make(Op::SINK, DType::Void, {make(Op::END, DType::Void, loops)});
    const std::vector<UOp> list = linearize(add_implicit_barriers(sink));
    std::vector<InterpreterBuffer> memory{make_buffer(DType::F32, 4)};
    EXPECT_EQ(interpret(list, memory, {1, {}, {4}}).value_or("ran"), "ran");
    return std::ranges::count(list, Op::BARRIER, &UOp::op);
  };
  const UOp from_last = last + me * iconst(-1, DType::I64);
  const auto exchanged = [&](UOp value) {
    return load(at(after(behind(store(at(shared, me), value))), from_last));
  };
  const auto put = [&](UOp v) { return store(at(out, me), v); };
  EXPECT_EQ(barriers(put(exchanged(number(i))), {i}), 2);
  EXPECT_EQ(barriers(put(exchanged(number(i) + number(j))), {i, j}), 2);
  EXPECT_EQ(barriers(put(exchanged(number(i)) + number(j)), {i, j}), 2);  // the outer one waits
  const UOp inner = make(Op::END, DType::Void, {put(exchanged(number(i) + number(j))), j});
  EXPECT_EQ(barriers(inner, {i}), 2);
  EXPECT_EQ(barriers(put(exchanged(one) + number(j)), {j}), 1);  // written before the loop
}

}  // namespace
}  // namespace beamline
