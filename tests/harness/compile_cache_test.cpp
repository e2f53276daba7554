// The cache of compiled programs through the real compiler and the real commands.
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/compilers.h"
#include "harness/messages.h"
#include "harness/programs.h"
#include "tests/harness/cli_runner.h"

namespace beamline::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds patience(120);
namespace fs = std::filesystem;

class CompileCache : public testing::Test {
 protected:
  // With a helper of its own, as after a restart.
  CompileReply compile(const CompileRequest& request) {
    Worker worker(compiler_options({cli.path("programs"), 1 << 20}, use));
    const Outcome o = worker.call(to_frame(request), patience);
    EXPECT_TRUE(o.ok()) << o.error;
    return read_message<CompileReply>(o.reply).value_or(CompileReply{});
  }
  std::string ast(const std::string& compute) {
    const std::string file = cli.file(
        "w.toml", "[[workload]]\nname = \"w\"\ninputs = { x = \"f32[64, 64]\" }\ncompute = '''\n" +
                      compute + "\n'''\n");
    return lower_workloads({file}).list.at(0).kernels.at(0).ast;
  }
  fs::path only_file() const { return fs::directory_iterator(cli.path("programs"))->path(); }

  CliRunner cli;
  std::vector<std::string> warnings;
  CacheUse use{[this](const std::string& w) { warnings.push_back(w); }};
};

TEST_F(CompileCache, AProgramIsCompiledOnce) {
  const CompileRequest request{
      .ast = ast("return sum(x * 2, 1)"), .opts = "UNROLL:0:8", .target = "name=cpu"};
  const CompileReply first = compile(request), second = compile(request);
  ASSERT_EQ(first.status, "ok") << first.error;
  EXPECT_FALSE(first.cached);
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(second.code, first.code);
  EXPECT_EQ(second.code_hash, first.code_hash);
  EXPECT_EQ(second.source_hash, first.source_hash);
  EXPECT_EQ(second.entry_offset, first.entry_offset);
  EXPECT_EQ(second.opts, first.opts);
  EXPECT_EQ(second.args.size(), 2u);
  EXPECT_EQ(second.flops, first.flops);
  // What it took when it was made: a record of a hit tells the same as one of a miss.
  EXPECT_EQ(second.compile_ms, first.compile_ms);
  EXPECT_EQ(second.lower_ms, first.lower_ms);
  EXPECT_GT(second.compile_ms, 0);
  EXPECT_EQ(use.text(), "1 of 2 programs came from the cache");
  EXPECT_TRUE(warnings.empty());
}

TEST_F(CompileCache, WhatChangesTheCodeMisses) {
  const CompileRequest request{
      .ast = ast("return sum(x * 2, 1)"), .opts = "", .target = "name=cpu"};
  const std::string without_avx = "name=cpu;cpu=native;features=-avx512f";
  const auto with = [&](auto change) {
    CompileRequest r = request;
    change(r);
    return r;
  };
  const CompileRequest variants[] = {
      request,
      with([](CompileRequest& r) { r.opts = "UNROLL:0:8"; }),
      with([&](CompileRequest& r) { r.target = without_avx; }),
      with([](CompileRequest& r) { r.target = "name=cpu:c"; }),
      with([](CompileRequest& r) { r.reference = true; }),
      with([&](CompileRequest& r) { r.ast = ast("return sum(x * 3, 1)"); }),
  };
  for (const bool again : {false, true})
    for (const CompileRequest& r : variants) {
      const CompileReply reply = compile(r);
      EXPECT_EQ(reply.status, "ok") << reply.error;
      EXPECT_EQ(reply.cached, again) << r.opts << ' ' << r.target;
    }
  // Who wants to see the code, or does not trust what is there, gets it made.
  EXPECT_FALSE(compile(with([](CompileRequest& r) { r.want_source = true; })).cached);
  EXPECT_FALSE(compile(with([](CompileRequest& r) { r.want_assembly = true; })).cached);
  EXPECT_FALSE(compile(with([](CompileRequest& r) { r.fresh = true; })).cached);
  EXPECT_TRUE(compile(request).cached);
}

TEST_F(CompileCache, FailuresAreNotKept) {
  const CompileRequest illegal{
      .ast = ast("return sum(x * 2, 1)"), .opts = "LOCAL:0:8", .target = "name=cpu"};
  for (int i = 0; i < 2; i++) {
    const CompileReply r = compile(illegal);
    EXPECT_EQ(r.status, "rejected");
    EXPECT_FALSE(r.cached);
  }
  EXPECT_EQ(use.programs(), 0);
}

TEST_F(CompileCache, ADamagedProgramIsCompiledAgain) {
  const CompileRequest request{.ast = ast("return x + 1"), .opts = "", .target = "name=cpu"};
  const CompileReply first = compile(request);
  const fs::path file = only_file();
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const CompileReply second = compile(request);
  EXPECT_FALSE(second.cached);
  EXPECT_EQ(second.code, first.code);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], testing::AllOf(HasSubstr(file.string()), HasSubstr("damaged")));
  EXPECT_TRUE(compile(request).cached);
}

// Whatever lies where a program should: it is taken away, and what it was is told.
TEST_F(CompileCache, WhatIsNoProgramIsCompiledAgain) {
  const CompileRequest request{.ast = ast("return x + 1"), .opts = "", .target = "name=cpu"};
  const CompileReply first = compile(request);
  const fs::path file = only_file();
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(compile(request).code, first.code);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("damaged"));
  fs::resize_file(file, uint64_t{1} << 42);  // sparse
  EXPECT_EQ(compile(request).code, first.code);
  EXPECT_TRUE(compile(request).cached);
}

class CacheCommands : public testing::Test {
 protected:
  CliRunner cli;
  std::string file = cli.file("w.toml",
                              "[[workload]]\nname = \"w\"\ninputs = { x = \"f32[64, 64]\" }\n"
                              "compute = \"return softmax(x)\"\n");
  CliResult run(std::vector<std::string> more) {
    std::vector<std::string> all{"run", file, "--no-db", "--verbose"};
    all.insert(all.end(), more.begin(), more.end());
    return cli.run(all);
  }
};

TEST_F(CacheCommands, RunSaysWhatCameFromTheCache) {
  const CliResult first = run({}), second = run({}), without = run({"--no-cache"});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("0 of 1 programs came from the cache"));
  EXPECT_THAT(second.err, HasSubstr("1 of 1 programs came from the cache"));
  EXPECT_THAT(without.err, HasSubstr("0 of 1 programs came from the cache"));
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(without.out, first.out);
}

TEST_F(CacheCommands, TuneAndBenchUseIt) {
  const std::string one = cli.file("one.toml",
                                   "[[workload]]\nname = \"one\"\ninputs = { x = \"f32[64, 64]\" "
                                   "}\ncompute = \"return x + 1\"\n");
  const auto tune = [&] {
    return cli.run({"tune", one, "--strategy", "heuristic", "--retune", "--budget", "2s"});
  };
  const CliResult first = tune(), second = tune();
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.err, testing::ContainsRegex("[1-9][0-9]* of [0-9]+ programs came from"));
  const CliResult bench = cli.run({"bench", one, "--verbose", "--json", "--",
                                   "--benchmark_repetitions=1", "--benchmark_min_time=1e-7"});
  EXPECT_EQ(bench.code, 0) << bench.err;
  EXPECT_THAT(bench.err, testing::ContainsRegex("[1-9][0-9]* of [0-9]+ programs came from"));
}

TEST_F(CacheCommands, AFolderThatCannotBeUsedIsAWarning) {
  cli.file("programs", "no folder");
  const CliResult r = run({});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("compiled programs: " + cli.path("programs") + " is no folder"));
  EXPECT_THAT(run({"--no-cache"}).err, Not(HasSubstr("compiled programs:")));
}

TEST_F(CacheCommands, SizesAreRead) {
  EXPECT_EQ(run({"--cache-size", "64M"}).code, 0);
  for (const char* bad : {"", "0", "x", "-1", "64T", "1.5G", "99999999999999999999"})
    EXPECT_EQ(run({"--cache-size", bad}).code, 2) << bad;
  EXPECT_EQ(run({"--cache-size", "64M", "--no-cache"}).code, 2);
}

}  // namespace
}  // namespace beamline::test
