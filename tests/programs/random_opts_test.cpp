// Random programs with random legal opts give the evaluator's values: as machine code by LLVM and
// by clang from C, and on every emulated target thread by thread. BEAMLINE_FUZZ_SEED and
// BEAMLINE_FUZZ_COUNT choose other programs; a failure prints the smallest program and the fewest
// opts found that still fail.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "devices/cpu/clang_compiler.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/ir/arena.h"
#include "engine/ir/tensor_core.h"
#include "tests/programs/generator.h"
#include "tests/programs/loops.h"
#include "tests/programs/machine.h"
#include "tests/programs/opencl_device.h"
#include "tests/programs/settings.h"

namespace beamline::fuzz {
namespace {

void run(const Target& target, uint64_t count, Program (*make)(uint64_t) = random_loops,
         bool fused = false) {
  const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1);
  count = setting("BEAMLINE_FUZZ_COUNT", count);
  RunFacts facts;
  Coverage seen;
  facts.coverage = &seen;
  size_t opts = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    const Program p = make(seed);
    Plan plan{Plan::Kind::Random, target, seed, {}, {}, fused, fused && seed % 2 == 0};
    if (count == 1) fmt::print(stderr, "{}{}", p.header(), p.text());
    if (disagreement(p, plan, &facts))
      FAIL() << "BEAMLINE_FUZZ_SEED=" << seed << " BEAMLINE_FUZZ_COUNT=1: " << shrunk(p, plan);
  }
  for (const auto& [kind, n] : seen.opts) opts += n;
  fmt::print("{}: {} programs, {} kernels, {} opts\n", target.name, count, facts.kernels, opts);
}

TEST(RandomOpts, AgreeThroughLlvm) {
  Target target;
  target.threads = 4;
  run(target, programs / 2);
}

// Products by lanes in vectors of each width, where this processor has the instructions.
class ByLane : public testing::TestWithParam<int> {};

TEST_P(ByLane, RandomOptsAgreeThroughLlvm) {
  Target target = cpu_target(read_cpu_model(), read_topology());
  if (target.vector_bytes < GetParam()) GTEST_SKIP() << "SKIPPED: no vectors of so many bytes";
  target.vector_bytes = GetParam();
  target.vector_registers = GetParam() == 64 ? 32 : 16;
  target.threads = 4;
  ASSERT_FALSE(tensor_cores(target).empty());
  run(target, programs / 4, random_products);
}

INSTANTIATE_TEST_SUITE_P(All, ByLane, testing::Values(16, 32, 64));

// Machine code for older processors: vectors of 32 bytes, and of 16 without masks, fused products
// or conversions of f16.
class Older : public testing::TestWithParam<const char*> {};

TEST_P(Older, RandomOptsAgreeThroughLlvm) {
  CpuModel model, here = read_cpu_model();
  model.isa = processor_features(GetParam());
  for (const std::string& f : model.isa)
    if (!here.has(f)) GTEST_SKIP() << "SKIPPED: this processor has no " << f;
  Target target = cpu_target(model, CpuTopology{}, 1);
  target.cpu = GetParam();
  target.threads = 4;
  run(target, programs / 8);
  run(target, programs / 8, random_products);
}

INSTANTIATE_TEST_SUITE_P(All, Older, testing::Values("haswell", "x86-64"), [](const auto& p) {
  return std::string_view(p.param) == "haswell" ? "haswell" : "x86_64";
});

// Kernels of two stores each, of which all loops but one are in one of the stores only; every other
// kernel has a variable.
TEST(RandomOpts, FusedKernelsAgreeThroughLlvm) {
  Target target;
  target.threads = 4;
  run(target, programs / 8, random_pairs, true);
}

TEST(RandomOpts, AgreeThroughC) {
  if (clang_toolchain().empty()) GTEST_SKIP() << "there is no clang";
  Target target;
  target.name = "cpu:c";
  target.threads = 4;
  run(target, programs / 4);
}

// The texts for GPUs: what the interpreter computes, and nothing that clang refuses.
class AsText : public testing::TestWithParam<const char*> {};

TEST_P(AsText, RandomOptsAgree) {
  if (clang_toolchain().empty()) GTEST_SKIP() << "there is no clang";
  const std::string renderer = GetParam();
  Target target = *emulated_target(renderer == "metal" ? "emulator:metal" : "emulator:sm_80");
  target.tensor_cores = TensorCoreUse::Off;  // the CPU has no such instruction
  target.local_max = 64;                     // each is a thread of this system
  const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1),
                 count = setting("BEAMLINE_FUZZ_COUNT", programs / 80);
  for (uint64_t seed = first; seed < first + count; seed++) {
    const bool pairs = seed % 3 == 0;
    const Program p = pairs ? random_pairs(seed) : random_loops(seed);
    const Plan plan{Plan::Kind::Random, target, seed, {}, renderer, pairs, seed % 2 == 0};
    const auto wrong = disagreement(p, plan);
    if (wrong && wrong->find("no code for dtype f64") == wrong->npos)
      FAIL() << "BEAMLINE_FUZZ_SEED=" << seed << " BEAMLINE_FUZZ_COUNT=1: " << shrunk(p, plan);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AsText, testing::Values("opencl", "cuda", "hip", "metal"),
                         [](const auto& p) { return std::string(p.param); });

// OpenCL C by a real implementation, which makes loops of the threads of a group.
TEST(RandomOpts, AgreeThroughOpenClOnTheCpu) {
  if (const std::string why = no_opencl_cpu(); !why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  Target target = *emulated_target("emulator:sm_80");
  target.tensor_cores = TensorCoreUse::Off;  // OpenCL has no name for them
  const uint64_t first = setting("BEAMLINE_FUZZ_SEED", 1),
                 count = setting("BEAMLINE_FUZZ_COUNT", programs / 40);
  uint64_t agreed = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    const bool pairs = seed % 3 == 0;
    const Program p = pairs ? random_pairs(seed) : random_loops(seed);
    const Plan plan{Plan::Kind::Random, target, seed,          {},
                    "opencl",           pairs,  seed % 2 == 0, /*on_device=*/true};
    const auto wrong = disagreement(p, plan);
    if (wrong && wrong->find(no_halves) == wrong->npos)
      FAIL() << *wrong << "\nBEAMLINE_FUZZ_SEED=" << seed
             << " BEAMLINE_FUZZ_COUNT=1: " << shrunk(p, plan);
    agreed += !wrong;
  }
  fmt::print("{} of {} programs agree, the others have f16\n", agreed, count);
  EXPECT_GE(agreed, count / 5);
}

class OnEmulator : public testing::TestWithParam<std::string_view> {};

TEST_P(OnEmulator, RandomOptsAgree) { run(*emulated_target(GetParam()), programs / 10); }
// With what else the language has, and with dims of zero.
TEST_P(OnEmulator, RandomProgramsAgree) {
  run(*emulated_target(GetParam()), programs / 20,
      [](uint64_t seed) { return Generator(seed).program(); });
}

// Reductions across a group within a loop: shared memory is written again and again.
TEST_P(OnEmulator, FusedKernelsAgree) {
  run(*emulated_target(GetParam()), programs / 20, random_pairs, true);
}

INSTANTIATE_TEST_SUITE_P(All, OnEmulator, testing::ValuesIn(emulated_targets()), [](const auto& p) {
  return std::string(p.param.substr(p.param.find(':') + 1));
});

// On a CPU and on an emulated GPU: every kind of opt, and every pass did something. Nothing is run,
// so that as many are affordable in every build.
TEST(RandomOpts, CoverEveryOptAndPass) {
  constexpr uint64_t lowered = 300;
  Coverage seen;
  Target cpu;
  cpu.threads = 4;
  for (const Target& target : {cpu, *emulated_target("emulator:sm_90")})
    for (uint64_t seed = 1; seed <= lowered; seed++)
      cover(random_loops(seed), {Plan::Kind::Random, target, seed, {}, {}}, seen);
  for (uint64_t seed = 1; seed <= lowered; seed++)
    cover(
        random_pairs(seed),
        {Plan::Kind::Random, *emulated_target("emulator:sm_90"), seed, {}, {}, true, seed % 2 == 0},
        seen);
  for (const auto& [what, counts] :
       {std::pair("ops", seen.ops), {"opts", seen.opts}, {"passes", seen.passes}}) {
    fmt::print("{}:", what);
    for (const auto& [name, n] : counts) fmt::print(" {} {},", name, n);
    fmt::print("\n");
  }
  for (int k = 0; k < static_cast<int>(OptKind::Count); k++)
    EXPECT_GT(seen.opts[std::string(opt_kind_name(static_cast<OptKind>(k)))], 0U)
        << opt_kind_name(static_cast<OptKind>(k));
  EXPECT_GT(seen.opts["TILE of a reduction"], 0U);
  EXPECT_GT(seen.opts["PREFETCH of an operand"], 0U);
  for (std::string_view pass : pass_names()) EXPECT_GT(seen.passes[std::string(pass)], 0U) << pass;
}

TEST(ShrinkOpts, LeavesWhatTheFailureNeeds) {
  const auto opts = [](const char* text) { return std::get<Opts>(parse_opts(text)); };
  struct Case {
    const char* from;
    bool (*fails)(const Opts&);
    const char* expected;
  };
  const Case cases[] = {
      {"UPCAST:0:16;SWAP:0:1;UNROLL:0:4;PACK:1:0",
       [](const Opts& o) {
         return std::ranges::any_of(o, [](const Opt& x) { return x.kind == OptKind::SWAP; });
       },
       "SWAP:0:1"},
      {"UPCAST:0:16;SWAP:0:1;UNROLL:0:12",
       [](const Opts& o) { return o.size() >= 2 && o.back().amount() >= 5; },
       "SWAP:0:1;UNROLL:0:5"},
      {"UPCAST:0:16;UPCAST:0:2", [](const Opts&) { return true; }, ""},
      {"NOLOCALS;UPCAST:0:3", [](const Opts& o) { return o.size() == 2; }, "NOLOCALS;UPCAST:0:2"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(opts_text(shrink_opts(opts(c.from), c.fails)), c.expected) << c.from;
}

// A program whose values are what the evaluator gives fails once a kernel gets opts that are not
// legal; the report keeps those and drops the others.
TEST(ShrinkOpts, AFailingProgramIsToldWithItsOpts) {
  Program p;
  const TensorValue v(DType::F32, Ints{8, 16});
  p.inputs = {{"x0", v}};
  p.statements = {{"t0", "x0 + 1", {}}, {"t1", "sum(t0, axis=1)", {}}};
  p.results = {"t1"};
  Plan plan;
  plan.kind = Plan::Kind::Listed;
  plan.listed = {"UPCAST:0:2;UNROLL:0:4"};
  EXPECT_EQ(disagreement(p, plan), std::nullopt);
  plan.listed = {"UNROLL:0:2;UPCAST:0:4;LOCAL:0:4"};
  EXPECT_EQ(shrunk(p, plan).substr(0, 20), "cpu, opts 'LOCAL:0:2");
}

}  // namespace
}  // namespace beamline::fuzz
