// Which line of a workload became what: in the list of kernels, in each stage of a kernel, in its
// source. And `math = "relaxed"`, which changes what a line becomes.
#include <gtest/gtest.h>

#include "cli_runner.h"

namespace beamline::test {
namespace {

const char* const network = R"toml([[workload]]
name    = "layer"
inputs  = { x = "f32[32, 48]", w = "f32[48, 64]", b = "f32[64]" }
compute = """
h = x @ w
y = relu(h + b)
return softmax(y, axis=1)
"""
)toml";

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}

class Origins : public ::testing::Test {
 protected:
  std::string lower(std::initializer_list<std::string> more, const std::string& kernel = "0") {
    std::vector<std::string> a{"ir", "lower", workload, "--kernel", kernel};
    a.insert(a.end(), more);
    const CliResult r = cli.run(a);
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  }
  CliRunner cli;
  std::string workload = cli.file("network.toml", network);
};

TEST_F(Origins, KernelsNameTheirLines) {
  const CliResult r = cli.run({"kernels", workload, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto kernels = r.json()["kernels"];
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0]["lines"].dump(), R"(["5 @","6 +","6 relu"])");
  EXPECT_EQ(kernels[1]["lines"].dump(), R"(["7 softmax"])");
  const std::string text = cli.run({"kernels", workload}).out;
  EXPECT_NE(text.find("5 @, 6 +, relu"), std::string::npos) << text;
}
TEST_F(Origins, EveryStageSaysWhereItComesFrom) {
  const struct {
    std::string stage, device, comment;
  } stages[] = {{"ast", "cpu", "\n# "},
                {"linear", "cpu", "\n# "},
                {"source", "cpu", "\n  ; "},
                {"source", "cpu:c", "// "}};
  for (const auto& s : stages) {
    const std::string text = lower({"--emit", s.stage, "--device", s.device, "--origins"});
    for (const char* origin : {"5 @\n", "6 +\n", "6 relu\n"})
      EXPECT_GE(count(text, s.comment + origin), 1U) << s.stage << " " << origin << text;
    const std::string plain = lower({"--emit", s.stage, "--device", s.device});
    EXPECT_EQ(count(plain, " relu\n"), 0U) << "only when asked";
  }
}
TEST_F(Origins, CommentsChangeNothing) {
  const std::string ast = cli.file("ast.uop", lower({"--emit", "ast", "--origins"}));
  const CliResult a = cli.run({"kernels", ast, "--json"}),
                  b = cli.run({"kernels", workload, "--json"});
  ASSERT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(a.json()["kernels"][0]["kernel_key"], b.json()["kernels"][0]["kernel_key"]);
}
TEST_F(Origins, StagesWithoutLinesRefuse) {
  const CliResult r =
      cli.run({"ir", "lower", workload, "--kernel", "0", "--emit", "asm", "--origins"});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("--origins: for --emit ast, linear and source"), std::string::npos) << r.err;
}

TEST(Math, RelaxedDropsWhatOnlyNanNeeds) {
  const CliRunner cli;
  const auto ast = [&](const std::string& math) {
    const std::string file =
        cli.file("m.toml", "[[workload]]\nname = \"m\"\ninputs = { x = \"f32[64]\" }\nmath = \"" +
                               math + "\"\ncompute = \"return x * 0 + x / x\"\n");
    const CliResult r = cli.run({"ir", "lower", file, "--emit", "ast"});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  };
  const std::string strict = ast("strict"), relaxed = ast("relaxed");
  EXPECT_EQ(count(strict, "=INDEX:f32"), 2U) << "x is read, as it may be NaN\n" << strict;
  EXPECT_EQ(count(relaxed, "=INDEX:f32"), 1U) << "nothing is read\n" << relaxed;
  EXPECT_EQ(count(relaxed, "MUL:f32"), 0U);
}

}  // namespace
}  // namespace beamline::test
