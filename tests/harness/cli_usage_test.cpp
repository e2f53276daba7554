// Wrong usage: exit code 2, a message on stderr, nothing on stdout; and help.
#include <gtest/gtest.h>

#include "cli_runner.h"

namespace beamline::test {
namespace {

struct UsageCase {
  std::vector<std::string> arguments;
  std::string message;  // that stderr has
};
class Usage : public ::testing::TestWithParam<UsageCase> {};

TEST_P(Usage, ExitsWith2) {
  CliRunner cli;
  CliResult r = cli.run(GetParam().arguments);
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find(GetParam().message), std::string::npos) << r.err;
}

const std::string quickstart = BEAMLINE_SOURCE_DIR "/workloads/quickstart.toml";

// clang-format off
INSTANTIATE_TEST_SUITE_P(All, Usage, ::testing::Values(
    UsageCase{{}, "a command is missing"},
    UsageCase{{"tun"}, "unknown command 'tun'; did you mean 'tune'?"},
    UsageCase{{"benhc", quickstart}, "unknown command 'benhc'; did you mean 'bench'?"},
    UsageCase{{"workloads"}, "needs a command: list, show, check or import"},
    UsageCase{{"workloads", "lst"}, "unknown command 'workloads lst'; did you mean 'list'?"},
    UsageCase{{"workloads", "import", "/nonexistent.onnx", "-o", "/tmp/x.toml"}, "/nonexistent.onnx: no such file or directory"},
    UsageCase{{"workloads", "import", quickstart}, "-o FILE.toml is needed"},
    UsageCase{{"workloads", "import", quickstart, "-o", "x.onnx"}, "-o x.onnx: a .toml file is expected"},
    UsageCase{{"workloads", "import", quickstart, "-o", "-"}, "not an ONNX model"},
    UsageCase{{"workloads", "import", quickstart, "-o", "-", "--weights", "none"}, "--weights 'none': data or generated"},
    UsageCase{{"db", "compact"}, "unknown command 'db compact'"},
    UsageCase{{"--jsn"}, "unknown option '--jsn'; did you mean '--json'?"},
    UsageCase{{"tune"}, "WORKLOAD... is missing"},
    UsageCase{{"tune", quickstart, "--strategy", "greedy"}, "--strategy: 'greedy' is none of"},
    UsageCase{{"tune", quickstart, "--device", "cuda:0"}, "--device: 'cuda:0' is not available"},
    UsageCase{{"tune", quickstart, "--device", "emulator:sm_80"}, "nothing to time"},
    UsageCase{{"ir", "lower", quickstart, "--device", "emulator:vax"}, "is none of emulator:sm_75"},
    UsageCase{{"ir", "lower", quickstart, "--tc", "maybe"}, "'maybe' is none of off, on, shape"},
    UsageCase{{"tune", quickstart, "--tc", "2"}, "'2' is none of off, on, shape"},
    UsageCase{{"tune", quickstart, "--budget", "soon"}, "--budget: 'soon'"},
    UsageCase{{"tune", quickstart, "--budget", "60"}, "--budget: '60'"},
    UsageCase{{"tune", quickstart, "--budget", "-5s"}, "--budget: '-5s'"},
    UsageCase{{"tune", quickstart, "--seed", "1.5"}, "--seed: '1.5' is not an integer"},
    UsageCase{{"tune", quickstart, "--workers", "0"}, "--workers: '0' is not an integer from 1"},
    UsageCase{{"tune", quickstart, "--timeout", "nan"}, "--timeout: 'nan'"},
    UsageCase{{"tune", quickstart, "--plant", "bug"}, "--plant: 'bug' is none of wrong, crash or hang"},
    UsageCase{{"tune", quickstart, "--width", "4"}, "unknown option '--width'"},
    UsageCase{{"tune", quickstart, "--label"}, "--label: a value is missing"},
    UsageCase{{"tune", quickstart, "--label", "--json"}, "--label: a value is missing"},
    UsageCase{{"tune", quickstart, "--seed", "1", "--seed", "2"}, "--seed is given more than once"},
    UsageCase{{"tune", quickstart, "--db", "a", "--db", "b"}, "give --db once"},
    UsageCase{{"tune", quickstart, "--param", "M"}, "--param M"},
    UsageCase{{"tune", quickstart, "--param", "NOSUCH=3"}, "NOSUCH"},
    UsageCase{{"tune", "/nonexistent.toml"}, "/nonexistent.toml"},
    UsageCase{{"kernels", quickstart + ":nothing*"}, "nothing*"},
    UsageCase{{"kernels", quickstart, "-x"}, "unknown option '-x'"},
    UsageCase{{"kernels", quickstart, "--color", "blue"}, "--color: 'blue'"},
    UsageCase{{"kernels", quickstart, "--quiet", "--verbose"}, "exclude each other"},
    UsageCase{{"best", "--db", "/nonexistent.db"}, "no database at /nonexistent.db"},
    UsageCase{{"best", "extra"}, "unexpected argument 'extra'"},
    UsageCase{{"db", "query"}, "SQL is missing"},
    UsageCase{{"db", "info", "--db", quickstart}, "quickstart.toml"},
    UsageCase{{"ir", "lower", quickstart}, "--kernel is needed"},
    UsageCase{{"ir", "lower", quickstart, "--kernel", "9"}, "no kernel is called '9'"},
    UsageCase{{"ir", "lower", quickstart, "--kernel", "0", "--emit", "sourc"}, "did you mean 'source'"},
    UsageCase{{"ir", "lower", quickstart, "--kernel", "0", "--opts", "UPCAST:0"}, "--opts, column 1"},
    UsageCase{{"ir", "lower", quickstart, "--kernel", "0", "--opts", "UPCAST:0:4;UPCAST:77:4"}, "opt 2 (UPCAST:77:4)"},
    UsageCase{{"ir", "lower", quickstart, "--kernel", "0", "--opts", "1=UPCAST:0:4"}, "is not the kernel"},
    UsageCase{{"ir", "simplify", "a +"}, "column"},
    UsageCase{{"ir", "simplify", "--vars", "a=7..0", "a"}, "--vars, column"},
    UsageCase{{"ir", "simplify", "1 // 0"}, "column"}));
// clang-format on

// Neither the user's mistake nor a kernel's: helpers that are not there, a full disk behind stdout.
TEST(InternalFailure, IsWhatTheWorldRefuses) {
  CliRunner cli;
  const std::string alone = cli.path("alone");
  std::filesystem::create_directory(alone);
  std::filesystem::copy(BEAMLINE_BIN_DIR "/beamline", alone);
  const std::string error = cli.path("error");
  const auto run = [&](const std::string& command) {
    const int status =
        std::system(("BEAMLINE_DB=" + cli.path("x.db") + " BEAMLINE_CACHE=" + cli.path("cache") +
                     " " + command + " 2>" + error)
                        .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(run(alone + "/beamline run --no-db " + quickstart + ":rowsum* >/dev/null"), 1);
  EXPECT_NE(read_file(error).find("internal failure: cannot start " + alone + "/beamline-compile"),
            std::string::npos)
      << read_file(error);
  EXPECT_EQ(run(BEAMLINE_BIN_DIR "/beamline ir rules >/dev/full"), 1);
  EXPECT_NE(read_file(error).find("cannot write to stdout"), std::string::npos);
}

TEST(Help, EveryCommandSaysWhatItPrints) {
  CliRunner cli;
  CliResult overview = cli.run({"--help"});
  EXPECT_EQ(overview.code, 0);
  EXPECT_EQ(overview.err, "");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"tune"},
                                             {"best"},
                                             {"kernels"},
                                             {"workloads", "list"},
                                             {"workloads", "show"},
                                             {"workloads", "check"},
                                             {"devices"},
                                             {"doctor"},
                                             {"bench"},
                                             {"run"},
                                             {"verdict"},
                                             {"accept"},
                                             {"pin"},
                                             {"unpin"},
                                             {"report", "html"},
                                             {"report", "markdown"},
                                             {"report", "json"},
                                             {"report", "junit"},
                                             {"db", "backup"},
                                             {"db", "prune"},
                                             {"db", "merge"},
                                             {"db", "migrate"},
                                             {"db", "explain-key"},
                                             {"db", "info"},
                                             {"db", "check"},
                                             {"db", "query"},
                                             {"ir", "lower"},
                                             {"ir", "simplify"},
                                             {"ir", "rules"}}) {
    std::string name = command[0] + (command.size() > 1 ? " " + command[1] : "");
    EXPECT_NE(overview.out.find("  " + name + " "), std::string::npos) << name;
    std::vector<std::string> ask = command;
    ask.push_back("--help");
    CliResult help = cli.run(ask);
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_TRUE(help.out.starts_with("usage: beamline " + name)) << help.out;
    EXPECT_NE(help.out.find("JSON"), std::string::npos) << name;
    EXPECT_NE(help.out.find("Global options:"), std::string::npos) << name;
  }
  EXPECT_NE(cli.run({"tune", "--help"}).out.find("Testing:\n  --plant FAULT"), std::string::npos);
}

TEST(Help, Groups) {
  CliRunner cli;
  CliResult r = cli.run({"db", "--help"});
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.out.find("db query"), std::string::npos);
  EXPECT_EQ(r.out.find("tune"), std::string::npos);
  EXPECT_EQ(cli.run({"help", "tune"}).out, cli.run({"tune", "-h"}).out);
}

TEST(Version, IsOneLine) {
  CliRunner cli;
  CliResult r = cli.run({"--version"});
  EXPECT_EQ(r.code, 0);
  EXPECT_TRUE(r.out.starts_with("beamline "));
  EXPECT_EQ(r.out.find('\n'), r.out.size() - 1);
}

TEST(GlobalOptions, MayStandAnywhere) {
  CliRunner cli;
  CliResult before =
      cli.run({"--json", "--color", "never", "workloads", "--quiet", "list", quickstart});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_EQ(before.out, cli.run({"workloads", "list", quickstart, "--json"}).out);
}

}  // namespace
}  // namespace beamline::test
