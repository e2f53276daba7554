// An instance whose tensor graph is unchanged is lowered once; any change that matters lowers
// again.
#include <gtest/gtest.h>

#include "harness/programs.h"
#include "tests/harness/cli_runner.h"

namespace beamline::test {
namespace {

struct Variant {
  const char* name;
  const char* inputs;
  const char* compute;
  const char* rest;
  bool lowered;  // anew
};

TEST(LoweringCache, ChangesThatMatterMiss) {
  // clang-format off
  const Variant variants[] = {
      {"first",            "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "", true},
      {"same",             "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "", false},
      {"names",            "x = \"f32[8, 16]\", y = \"f32[16, 4]\"", "h = x @ y\nreturn relu(h) * 2", "", false},
      {"contents",         "a = { dtype = \"f32[8, 16]\", dist = \"ones\" }, b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "weight = 3.0\nrepeat = 2\ntags = [\"t\"]", false},
      {"a shape",          "a = \"f32[9, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "", true},
      {"a type",           "a = \"f16[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "", true},
      {"a constant",       "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 3", "", true},
      {"an op",            "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return abs(a @ b) * 2", "", true},
      {"an axis",          "a = \"f32[16, 8]\", b = \"f32[16, 4]\"", "return relu(transpose(a) @ b) * 2", "", true},
      {"order of inputs",  "b = \"f32[16, 4]\", a = \"f32[8, 16]\"", "return relu(a @ b) * 2", "", true},
      {"const",            "a = \"f32[8, 16]\", b = { dtype = \"f32[16, 4]\", const = true }", "return relu(a @ b) * 2", "", true},
      {"math",             "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "math = \"relaxed\"", true},
      {"one more result",  "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "h = relu(a @ b) * 2\nreturn h, h", "", true},
      {"a boundary",       "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(contiguous(a @ b)) * 2", "", true},
      {"the first again",  "a = \"f32[8, 16]\", b = \"f32[16, 4]\"", "return relu(a @ b) * 2", "", false},
  };
  // clang-format on
  CliRunner cli;
  LoweringCache cache;
  std::string key;
  for (const Variant& v : variants) {
    SCOPED_TRACE(v.name);
    const std::string file =
        cli.file("w.toml", std::string("[[workload]]\nname = \"w\"\ninputs = { ") + v.inputs +
                               " }\ncompute = '''\n" + v.compute + "\n'''\n" + v.rest + "\n");
    const size_t before = cache.size(), hits = cache.hits();
    const KernelPrograms p = lower_workloads({file}, {}, &cache);
    ASSERT_TRUE(p.errors.empty()) << to_string(p.errors[0]);
    EXPECT_EQ(cache.size() - before, v.lowered ? 1u : 0u);
    EXPECT_EQ(cache.hits() - hits, v.lowered ? 0u : 1u);
    // What comes from the cache is what lowering gives.
    const KernelPrograms fresh = lower_workloads({file});
    ASSERT_EQ(p.list.at(0).kernels.size(), fresh.list.at(0).kernels.size());
    for (size_t k = 0; k < p.list[0].kernels.size(); k++) {
      EXPECT_EQ(p.list[0].kernels[k].ast, fresh.list[0].kernels[k].ast);
      EXPECT_EQ(p.list[0].kernels[k].buffers, fresh.list[0].kernels[k].buffers);
    }
    EXPECT_EQ(p.list[0].outputs, fresh.list[0].outputs);
  }
}

TEST(LoweringCache, RelaxedMathForgetsWhatNanWouldKeep) {
  CliRunner cli;
  const auto ast = [&](const char* math) {
    const std::string file =
        cli.file("w.toml", std::string("[[workload]]\nname = \"w\"\ninputs = { x = \"f32[8]\" }\n"
                                       "compute = \"return x * 0 + 1\"\nmath = \"") +
                               math + "\"\n");
    return lower_workloads({file}).list.at(0).kernels.at(0).ast;
  };
  EXPECT_NE(ast("strict").find("slot=1"), std::string::npos);
  EXPECT_EQ(ast("relaxed").find("slot=1"), std::string::npos) << ast("relaxed");
}

}  // namespace
}  // namespace beamline::test
