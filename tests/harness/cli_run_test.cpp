// `run`: one instance through compiled kernels, .npy files in and out.
#include <gtest/gtest.h>

#include "tests/harness/cli_runner.h"
#include "workloads/elements.h"
#include "workloads/npy.h"

namespace beamline::test {
namespace {

std::vector<std::byte> floats(const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * 4);
  for (size_t i = 0; i < values.size(); i++) workloads::store(bytes, DType::F32, i, values[i]);
  return bytes;
}

class RunCommand : public ::testing::Test {
 protected:
  CliRunner cli;
  std::string file = cli.file("w.toml", R"toml(
[[workload]]
name = "two"
params = { N = 3 }
inputs = { a = "f32[N]", b = "f32[N]" }
compute = '''
return softmax(a) + b, argmax(a, 0)
'''
[[workload]]
name = "types"
inputs = { x = "bf16[5, 7]", y = "fp8e4m3[7]", i = "i32[4]" }
compute = "return x * y, sin(cast(x, f32))[i % 5], cast(y, fp8e5m2), rand([3], 1)"
)toml");
};

TEST_F(RunCommand, ComputesFromFilesIntoFiles) {
  const std::vector<int64_t> shape = {3};
  const std::string a = cli.file("a.npy",
                                 workloads::npy_text(floats({1, 3, 1}), DType::F32, shape)),
                    out = cli.path("out");
  const CliResult r = cli.run({"run", file + ":two*", "--input", "a=" + a, "--output", out,
                               "--no-db", "--opts", "0=UPCAST:0:3", "--json"});
  // the first kernel is a reduction of one row: no axis to upcast
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(r.err.find("rejected"), std::string::npos) << r.err;

  const CliResult good =
      cli.run({"run", file + ":two*", "--input", "a=" + a, "--output", out, "--no-db", "--json"});
  ASSERT_EQ(good.code, 0) << good.err;
  const auto j = good.json();
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["checked_by"], "tensor evaluator");
  ASSERT_EQ(j["outputs"].size(), 2U);
  EXPECT_EQ(j["run"][0]["from"], "heuristic");
  for (const auto& o : j["outputs"]) EXPECT_TRUE(o["verified"].get<bool>());
  const auto index = workloads::read_npy(out + "/out1.npy", DType::I32, {});
  ASSERT_TRUE(std::holds_alternative<std::vector<std::byte>>(index))
      << std::get<std::string>(index);
  EXPECT_EQ(workloads::load(std::get<0>(index), DType::I32, 0), 1);
  EXPECT_TRUE(std::holds_alternative<std::vector<std::byte>>(
      workloads::read_npy(out + "/out0.npy", DType::F32, shape)));
}

TEST_F(RunCommand, EveryKindOfNumberRunsOnTheCpu) {
  const CliResult r = cli.run({"run", file + ":types", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json()["outputs"].size(), 4U);
}

// out[i] = a[i + n]: the variable of a kernel is an input of one element, within its bounds.
TEST_F(RunCommand, VariablesOfAKernelAreInputs) {
  const std::string kernel = cli.file("shifted.uop", R"(uop 1
%0=CONST:weakint()[value=8]
%1=STACK:weakint(%0)
%2=PARAM:f32(%1)[slot=0]
%3=RANGE:weakint(%0)[id=0,type=WEAK]
%4=INDEX:f32(%2,%3)
%5=CONST:weakint()[value=12]
%6=STACK:weakint(%5)
%7=PARAM:f32(%6)[slot=1]
%8=PARAM:weakint()[slot=-1,vmin=0,vmax=4,name="n",addrspace=alu]
%9=ADD:weakint(%3,%8)
%10=INDEX:f32(%7,%9)
%11=STORE:void(%4,%10)
%12=END:void(%11,%3)
%13=SINK:void(%12)
)");
  std::vector<double> a;
  for (int i = 0; i < 12; i++) a.push_back(i);
  const std::vector<int64_t> shape = {12}, one = {1};
  const std::string in = cli.file("a.npy", workloads::npy_text(floats(a), DType::F32, shape)),
                    out = cli.path("out");
  for (const char* device : {"cpu", "cpu:c"})
    for (const int64_t n : {0, 3, 4}) {
      std::vector<std::byte> value(8);
      workloads::store(value, DType::I64, 0, n);
      const std::string variable = cli.file("n.npy", workloads::npy_text(value, DType::I64, one));
      const CliResult r = cli.run({"run", kernel, "--device", device, "--no-db", "--input",
                                   "slot1=" + in, "--input", "n=" + variable, "--output", out});
      ASSERT_EQ(r.code, 0) << r.err;
      const auto got = workloads::read_npy(out + "/out0.npy", DType::F32, {{8}});
      ASSERT_TRUE(std::holds_alternative<std::vector<std::byte>>(got));
      for (size_t i = 0; i < 8; i++)
        EXPECT_EQ(workloads::load(std::get<0>(got), DType::F32, i),
                  static_cast<double>(i) + static_cast<double>(n));
    }
  EXPECT_EQ(cli.run({"run", kernel, "--no-db"}).code, 0);  // generated, within the bounds
}

TEST_F(RunCommand, MistakesAreUsageErrors) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{file}, "run executes one instance, 2 are given: two/N=3, types"},
      {{file + ":types", "--input", "z=a.npy"}, "types has no input 'z'; it has x, y, i"},
      {{file + ":types", "--input", "x"}, "NAME=FILE.npy is expected"},
      {{file + ":types", "--input", "x=" + cli.path("none.npy")}, "input x:"},
      {{file + ":types", "--opts", "UPCAST:0:4"}, "KERNEL=OPTS is expected"},
      {{file + ":types", "--opts", "nothing=UPCAST:0:4"}, "nothing"},
  };
  for (const auto& [arguments, message] : rows) {
    std::vector<std::string> all = arguments;
    all.insert(all.begin(), "run");
    const CliResult r = cli.run(all);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find(message), std::string::npos) << message << "\n" << r.err;
  }
}

}  // namespace
}  // namespace beamline::test
