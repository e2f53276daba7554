// `workloads import`, and an .onnx model in place of a workload.
#include <gtest/gtest.h>

#include "tests/harness/cli_runner.h"
#include "tests/workloads/onnx_models.h"

namespace beamline::test {
namespace {

class CliImport : public ::testing::Test {
 protected:
  CliRunner cli;
  std::string model = write_model("cli", R"(g (float[batch, 8] x, float[8, 8] w_1, float[8] w_1b,
   float[8, 8] w_2, float[8] w_2b, float[8, 8] w_3, float[8] w_3b) => (float[batch, 8] z) {
  a = Gemm(x, w_1, w_1b) b = Relu(a) c = Gemm(b, w_2, w_2b) d = Relu(c) e = Gemm(d, w_3, w_3b) z = Relu(e) })");
};

TEST_F(CliImport, WritesAWorkloadThatRuns) {
  const std::string file = cli.path("m.toml");
  const CliResult r =
      cli.run({"workloads", "import", model, "-o", file, "--name", "mlp", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, file: text, workload: text, params: [text], "
            "inputs: integer, weights: integer, statements: integer}");
  EXPECT_EQ(r.json()["weights"], 6);
  EXPECT_EQ(r.json()["params"], nlohmann::ordered_json({"batch"}));
  // The weights are found from where the file lies.
  const CliResult run = cli.run({"run", file, "--no-db", "--param", "batch=3", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["outputs"][0]["shape"], nlohmann::ordered_json({3, 8}));
  EXPECT_TRUE(run.json()["outputs"][0]["verified"].get<bool>());
  // The same from the model itself.
  const CliResult direct = cli.run({"run", model, "--no-db", "--param", "batch=3", "--json"});
  ASSERT_EQ(direct.code, 0) << direct.err;
  EXPECT_EQ(run.json()["outputs"][0]["max_err"], direct.json()["outputs"][0]["max_err"]);
}

TEST_F(CliImport, EqualLayersAreOneKernel) {
  const CliResult r = cli.run({"kernels", model, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  ASSERT_EQ(r.json()["kernels"].size(), 1U);
  EXPECT_EQ(r.json()["kernels"][0]["count"], 3);
}

TEST_F(CliImport, MistakesNameTheNode) {
  const std::string bad = write_model("bad", "g (float[2] x) => (float[2] z) { z = Det(x) }");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"workloads", "import", bad, "-o", cli.path("m.toml")},
        std::vector<std::string>{"kernels", bad}}) {
    const CliResult r = cli.run(command);
    EXPECT_EQ(r.code, 2);
    EXPECT_NE(r.err.find("node 0 (Det): operator Det is not supported"), std::string::npos)
        << r.err;
  }
  EXPECT_FALSE(std::filesystem::exists(cli.path("m.toml")));
  const CliResult r =
      cli.run({"workloads", "import", model, "-o", cli.path("m.toml"), "--param", "bach=2"});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("the model has no dim 'bach'; did you mean 'batch'?"), std::string::npos)
      << r.err;
}

}  // namespace
}  // namespace beamline::test
