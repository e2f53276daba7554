// Opts of targets whose threads come in groups: what is legal, what they do, and what the
// interpreter refuses to run.
#include <gtest/gtest.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
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

}  // namespace
}  // namespace beamline
