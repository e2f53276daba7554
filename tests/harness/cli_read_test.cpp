// Commands that measure nothing: their JSON shapes, and where mistakes are reported.
#include <gtest/gtest.h>

#include "cli_runner.h"

namespace beamline::test {
namespace {

const char* const small_workload = R"toml([[workload]]
name    = "scale"
params  = { N = [64, 128] }
inputs  = { x = "f32[N]" }
compute = "return x * 2 + 1"
weight  = 2.5
repeat  = 3

[[workload]]
name    = "rows"
inputs  = { x = "f32[32, 48]" }
compute = "return sum(x, axis=1)"
)toml";

class Read : public ::testing::Test {
 protected:
  CliRunner cli;
  std::string workload = cli.file("small.toml", small_workload);
};

TEST_F(Read, WorkloadsList) {
  CliResult r = cli.run({"workloads", "list", workload, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, workloads: [{workload_id: text, file: text, name: text, params: {N: "
            "integer}, "
            "weight: number, repeat: integer, content_hash: text}]}");
  EXPECT_EQ(r.json()["schema"], 1);
  EXPECT_EQ(r.json()["workloads"].size(), 3U);
  EXPECT_EQ(r.json()["workloads"][0]["name"], "scale/N=64");
  CliResult text = cli.run({"workloads", "list", workload + ":scale*"});
  EXPECT_NE(text.out.find("scale/N=128"), std::string::npos);
  EXPECT_EQ(text.out.find("rows"), std::string::npos);
}

TEST_F(Read, WorkloadsShow) {
  CliResult r = cli.run({"workloads", "show", workload, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, workloads: [{workload_id: text, file: text, name: text, params: {N: "
            "integer}, "
            "weight: number, repeat: integer, content_hash: text, inputs: [{name: text, dtype: "
            "text, shape: "
            "[integer], dist: text, const: bool, bytes: integer}], outputs: [{dtype: text, shape: "
            "[integer]}], "
            "compute: text, math: text, memory: {inputs: integer, outputs: integer, temporaries: "
            "integer, arena: integer}}]}");
  EXPECT_NE(cli.run({"workloads", "show", workload}).out.find("input   x f32[64]  uniform -1..1"),
            std::string::npos);
}

TEST_F(Read, WorkloadsCheck) {
  CliResult r = cli.run({"workloads", "check", workload, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.json().dump(), R"({"schema":1,"instances":3})");
  EXPECT_EQ(cli.run({"workloads", "check", workload}).out, "ok: 3 instances\n");
}

TEST_F(Read, MistakesNameFileLineColumn) {
  std::string shapes = cli.file("shapes.toml", R"([[workload]]
name    = "bad"
inputs  = { a = "f32[4, 5]", b = "f32[6, 7]" }
compute = "return a @ b"
)");
  std::string key = cli.file("key.toml", "[[workload]]\nname = \"x\"\nwieght = 2\n");
  for (const char* command : {"check", "show", "list"}) {
    if (std::string(command) == "list") continue;
    CliResult r = cli.run({"workloads", command, shapes, "--json"});
    EXPECT_EQ(r.code, 2) << command;
    EXPECT_EQ(r.out, "") << command;
    EXPECT_NE(r.err.find("shapes.toml:4:21"), std::string::npos) << r.err;
  }
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"workloads", "check"}, {"workloads", "list"}, {"kernels"}, {"tune"}, {"ir", "lower"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(key);
    CliResult r = cli.run(arguments);
    EXPECT_EQ(r.code, 2) << command[0];
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find("key.toml:3:1"), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("did you mean 'weight'?"), std::string::npos) << r.err;
  }
}

TEST_F(Read, Kernels) {
  CliResult r = cli.run({"kernels", workload, "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, kernels: [{kernel_key: text, name: text, ast: text, flops: number, "
            "bytes: number, "
            "shape: [integer], dtypes: text, count: integer, workloads: [text], lines: [text]}]}");
  auto kernels = r.json()["kernels"];
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0]["count"], 3);
  EXPECT_EQ(kernels[0]["flops"], 128.0);  // two operations an element
  EXPECT_EQ(kernels[0]["bytes"], 512.0);
  EXPECT_EQ(kernels[2]["dtypes"], "f32 <- f32");
  EXPECT_EQ(kernels[0]["kernel_key"].get<std::string>().size(), 64U);
}

TEST_F(Read, ParamsReplaceValues) {
  CliResult r = cli.run({"kernels", workload + ":scale*", "--param", "N=256", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  ASSERT_EQ(r.json()["kernels"].size(), 1U);
  EXPECT_EQ(r.json()["kernels"][0]["workloads"][0], "scale/N=256");
}

TEST_F(Read, AKernelFileHasTheSameKey) {
  CliResult lowered = cli.run({"ir", "lower", workload, "--kernel", "2", "--emit", "ast"});
  ASSERT_EQ(lowered.code, 0) << lowered.err;
  std::string file = cli.file("rows.uop", lowered.out);
  auto direct = cli.run({"kernels", workload, "--json"}).json()["kernels"][2];
  CliResult again = cli.run({"kernels", file, "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["kernels"][0]["kernel_key"], direct["kernel_key"]);
  EXPECT_EQ(again.json()["kernels"][0]["ast"], direct["ast"]);
  CliResult broken = cli.run({"kernels", cli.file("broken.uop", "uop 1\n%0=NOSUCH:f32()\n")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find("broken.uop:2:"), std::string::npos) << broken.err;
}

TEST_F(Read, Devices) {
  CliResult r = cli.run({"devices", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = r.json();
  EXPECT_EQ(j["schema"], 1);
  ASSERT_GE(j["devices"].size(), 1U);  // cpu:c too where there is clang
  EXPECT_EQ(j["devices"][0]["backend"], "cpu");
  EXPECT_EQ(j["devices"].size() + j["absent"].size(), 5U);
  j["devices"][0]["facts"] = nullptr;
  EXPECT_EQ(shape_of(j["devices"]),
            "[{device_id: text, name: text, backend: text, arch: text, facts: null, peak_gflops: "
            "null, peak_gbps: "
            "null, first_seen: null, last_seen: null}]");
  EXPECT_EQ(shape_of(j["absent"]), "[{backend: text, reason: text}]");
  EXPECT_EQ(cli.run({"devices", "--json"}).out, r.out);  // the identity is stable
}

TEST_F(Read, IrLowerStages) {
  for (const char* stage : {"ast", "axes", "linear", "source", "asm", "trace"}) {
    CliResult r = cli.run({"ir", "lower", workload, "--kernel", "0", "--emit", stage, "--json"});
    ASSERT_EQ(r.code, 0) << stage << r.err;
    EXPECT_EQ(shape_of(r.json()),
              "{schema: integer, kernel_key: text, name: text, device_id: text, opts: text, emit: "
              "text, text: text}");
    EXPECT_FALSE(r.json()["text"].get<std::string>().empty()) << stage;
    CliResult plain = cli.run({"ir", "lower", workload, "--kernel", "0", "--emit", stage});
    if (std::string_view(stage) == "trace") continue;  // it holds times
    EXPECT_EQ(plain.out, r.json()["text"].get<std::string>()) << stage;
  }
  CliResult asked =
      cli.run({"ir", "lower", workload, "--kernel", "0", "--opts", "UPCAST:0:0", "--json"});
  ASSERT_EQ(asked.code, 0) << asked.err;
  CliResult plain =
      cli.run({"ir", "lower", workload, "--kernel", "0", "--opts", "", "--emit", "source"});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(plain.out, asked.json()["text"].get<std::string>());
}

TEST_F(Read, IrSimplify) {
  CliResult r = cli.run({"ir", "simplify", "--vars", "a=0..7", "--json", "a // 8", "a * 1 + 0"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(shape_of(r.json()),
            "[{expr: text, simplified: text, vmin: integer, vmax: integer, ops_before: integer, "
            "ops_after: integer, "
            "rules: [text]}]");
  EXPECT_EQ(r.json()[0]["simplified"], "0");
  EXPECT_EQ(r.json()[1]["simplified"], "a");
  CliResult lines = cli.run({"ir", "simplify", "--vars", "a=0..7"}, "a // 8\n\n(a + 8) // 8\n");
  EXPECT_EQ(lines.out, "0\n1\n");
  CliResult bad = cli.run({"ir", "simplify", "--vars", "a=0..7", "--json"}, "a\na + nosuch\n");
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(bad.out, "");
  EXPECT_NE(bad.err.find("line 2, column 5"), std::string::npos) << bad.err;
}

TEST_F(Read, IrRules) {
  CliResult r = cli.run({"ir", "rules", "--json"});
  ASSERT_EQ(r.code, 0);
  EXPECT_EQ(shape_of(r.json()),
            "{schema: integer, rules: [{rule: text, table: text, family: text}]}");
  EXPECT_GT(r.json()["rules"].size(), 50U);
}

}  // namespace
}  // namespace beamline::test
