// Planted candidates, from IR text through the real compile worker to the real runner: each ends as
// the outcome of its kind, and the run goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/messages.h"
#include "harness/process_pool.h"

namespace beamline {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::chrono::seconds kLong(120);
constexpr int kElements = 1000;

// out[i] = f(in[i]) over %n elements; `body` computes float %r from float %v at index %i.
std::string loop(const std::string& body, int n = kElements, const std::string& before = "") {
  return R"(
define void @kernel(ptr %buffers, i64 %core) {
entry:
  %out = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %in = load ptr, ptr %slot
)" + before +
         R"(
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %in, i64 %i
  %v = load float, ptr %p
)" + body +
         R"(
  %q = getelementptr float, ptr %out, i64 %i
  store float %r, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, )" +
         std::to_string(n) + R"(
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
)";
}

const char* const kTwice = "  %r = fadd float %v, %v\n";

template <class T>
std::string bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

std::vector<float> inputs() {
  std::vector<float> in(kElements);
  for (int i = 0; i < kElements; i++)
    in[static_cast<size_t>(i)] = std::sin(static_cast<float>(i + 1));
  return in;
}

SetupRequest doubling() {
  SetupRequest s;
  BufferSpec out, in;
  out.dtype = "f32", out.elements = kElements, out.role = "out", out.expected_dtype = "f64",
  out.rtol = 1e-6;
  std::vector<double> want;
  for (const float v : inputs()) want.push_back(2.0 * static_cast<double>(v));
  out.expected.bytes = bytes_of(want);
  in.dtype = "f32", in.elements = kElements, in.init.bytes = bytes_of(inputs());
  s.buffers = {out, in};
  return s;
}

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : compiler(options("beamline-compile")), runner(options("beamline-runner")) {}

  static WorkerOptions options(const std::string& name) {
    WorkerOptions o;
    o.command = {helper_path(name)};
    return o;
  }

  CompileReply compile(const std::string& ir) {
    const Outcome o = compiler.call(to_frame(CompileIrRequest{ir, "kernel", "", false}), kLong);
    EXPECT_TRUE(o.ok()) << o.error;
    const auto reply = read_message<CompileReply>(o.reply);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(CompileReply{});
  }

  template <class Answer, class Message>
  Answer ask(const Message& m) {
    const Outcome o = runner.call(to_frame(m), kLong);
    EXPECT_TRUE(o.ok()) << o.error;
    const auto reply = read_message<Answer>(o.reply);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(Answer{});
  }

  void setup(const SetupRequest& s) {
    const Reply r = ask<Reply>(s);
    ASSERT_EQ(r.status, "ok") << r.error;
  }
  void load(const std::string& id, const std::string& ir, int threads = 1) {
    const CompileReply c = compile(ir);
    ASSERT_EQ(c.status, "ok") << c.error;
    const Reply r = ask<Reply>(LoadRequest{id, c.code, c.entry_offset, threads});
    ASSERT_EQ(r.status, "ok") << r.error;
  }
  CheckReply check(const std::string& id, double mistrust = 0) {
    return ask<CheckReply>(CheckRequest{id, mistrust});
  }

  // A fresh runner with a good kernel: the run goes on.
  void expect_alive() {
    setup(doubling());
    load("good", loop(kTwice));
    EXPECT_EQ(check("good").status, "ok");
  }

  Worker compiler, runner;
};

// What it is given is turned around ahead of time; the kernel doubles what it finds.
TEST_F(RunnerTest, AnOperandIsLaidOutOnceForTheKernelsThatWantIt) {
  const CompileReply twice = compile(loop(kTwice));
  const std::string reversed = R"(
  %back = sub i64 999, %i
  %at = getelementptr float, ptr %in, i64 %back
  %r = load float, ptr %at
)";
  const CompileReply turn = compile(loop(reversed));
  ASSERT_EQ(turn.status, "ok") << turn.error;
  const LayoutCode turned{1, kElements * sizeof(float), turn.code, turn.entry_offset};
  SetupRequest s = doubling();
  std::vector<float> back = inputs();
  std::ranges::reverse(back);
  s.buffers[1].init.bytes = bytes_of(back);
  setup(s);
  EXPECT_EQ(ask<Reply>(LoadRequest{"plain", twice.code, twice.entry_offset, 1}).status, "ok");
  EXPECT_EQ(ask<Reply>(LoadRequest{"laid", twice.code, twice.entry_offset, 1, {turned}}).status,
            "ok");
  EXPECT_EQ(check("plain").status, "wrong_result");
  EXPECT_EQ(check("laid").status, "ok") << check("laid").error;
  for (const char* mode : {"warm", "cold"}) {
    TimeRequest t;
    t.ids = {"laid"};
    t.sweeps = 3;
    t.mode = mode;
    EXPECT_EQ(ask<TimeReply>(t).contestants.at(0).ns.size(), 3u);
  }
  const RunReply ran = ask<RunReply>(RunRequest{"laid"});
  ASSERT_EQ(ran.status, "ok") << ran.error;
  float first = 0;
  std::memcpy(&first, ran.outputs.at(0).data(), sizeof first);
  EXPECT_FLOAT_EQ(first, 2 * inputs()[0]);
  setup(doubling());  // the other way round: it is laid out anew
  EXPECT_EQ(check("laid").status, "wrong_result");
  EXPECT_EQ(check("plain").status, "ok");
}

TEST_F(RunnerTest, ALayoutThatIsNoneIsAnError) {
  setup(doubling());
  const CompileReply twice = compile(loop(kTwice));
  const LayoutCode beyond{7, 64, twice.code, twice.entry_offset}, empty{1, 64, "", 0},
      short_of{1, 64, twice.code, twice.entry_offset},
      endless{1, SIZE_MAX - 64, twice.code, twice.entry_offset},
      no_memory{1, size_t{1} << 55, twice.code, twice.entry_offset};
  const CompileReply copy = compile(loop("  %r = fadd float %v, 0.0\n"));
  const LayoutCode copied{1, kElements * sizeof(float), copy.code, copy.entry_offset};
  ask<Reply>(LoadRequest{"good", twice.code, twice.entry_offset, 1, {copied}});
  const pid_t pid = runner.pid();
  for (const auto& [layout, why] : {std::pair(beyond, "layout of buffer 7: there are 2"),
                                    {empty, "layout of buffer 1"},
                                    {short_of, "wrote outside of the layout of buffer 1"},
                                    {endless, "mmap of a buffer"},
                                    {no_memory, "mmap of a buffer"}}) {
    ask<Reply>(LoadRequest{"a", twice.code, twice.entry_offset, 1, {layout}});
    for (int again = 0; again < 2; again++) {
      const CheckReply r = check("a");
      EXPECT_NE(r.status, "ok");
      EXPECT_THAT(r.error, HasSubstr(why));
    }
    EXPECT_EQ(check("good").status, "ok") << "after " << why;
  }
  EXPECT_EQ(runner.pid(), pid);
}

// The next kernel reads the same memory.
TEST_F(RunnerTest, NobodyWritesWhatIsLaidOut) {
  const CompileReply twice = compile(loop(kTwice)),
                     spoil = compile(loop("  %r = fadd float %v, %v\n"
                                          "  store float 0.0, ptr %p\n")),
                     behind = compile(loop(kTwice, kElements,
                                           "  %far = getelementptr float, ptr %in, i64 1000\n"
                                           "  store float 1.0, ptr %far\n")),
                     copy = compile(loop("  %r = fadd float %v, 0.0\n"));
  const LayoutCode copied{1, kElements * sizeof(float), copy.code, copy.entry_offset};
  for (const CompileReply& wrong : {spoil, behind}) {
    setup(doubling());
    const auto load_both = [&] {
      ask<Reply>(LoadRequest{"x", wrong.code, wrong.entry_offset, 1, {copied}});
      ask<Reply>(LoadRequest{"good", twice.code, twice.entry_offset, 1, {copied}});
    };
    load_both();
    EXPECT_EQ(check("good").status, "ok");
    EXPECT_STREQ(runner.call(to_frame(CheckRequest{"x", 0}), kLong).status(), "crashed");
    setup(doubling());
    load_both();
    EXPECT_EQ(check("good").status, "ok");
  }
}

TEST_F(RunnerTest, AGoodKernelIsCheckedAndTimed) {
  SetupRequest s = doubling();
  const Reply placed = ask<Reply>(s);
  ASSERT_EQ(placed.status, "ok") << placed.error;
  EXPECT_EQ(placed.facts.at("mxcsr"), 0x1F80);
  for (const auto& b : placed.facts.at("buffers")) EXPECT_EQ(b.at("address_mod_2m"), 0);

  load("a", loop(kTwice));
  load("b", loop("  %r = fmul float %v, 2.0\n"));
  const CheckReply a = check("a"), b = check("b");
  EXPECT_EQ(a.status, "ok") << a.error;
  EXPECT_LT(a.max_err, 1e-6);
  EXPECT_EQ(a.output_hash.size(), 64u);
  EXPECT_EQ(a.output_hash, b.output_hash);
  for (const char* mode : {"warm", "cold"}) {
    TimeRequest t;
    t.ids = {"a", "b", "a"};  // the second handle of a is the A/A control
    t.sweeps = 6;
    t.mode = mode;
    const TimeReply r = ask<TimeReply>(t);
    ASSERT_EQ(r.status, "ok") << r.error;
    ASSERT_EQ(r.contestants.size(), 3u);
    for (const TimedContestant& c : r.contestants) {
      EXPECT_EQ(c.status, "ok") << c.error;
      EXPECT_EQ(c.ns.size(), 6u);
      for (const double ns : c.ns) EXPECT_GT(ns, 0);
    }
    EXPECT_EQ(r.session.at("mode"), mode);
    EXPECT_TRUE(r.session.contains("timer_overhead_ns"));
  }
  EXPECT_EQ(check("a").status, "ok");  // also after the timing
}

TEST_F(RunnerTest, KillsTheSlowEarly) {
  setup(doubling());
  load("a", loop(kTwice));
  check("a");
  TimeRequest t;
  t.ids = {"a"};
  t.kill_factor = 2, t.limit_ns = 1e-3;
  const TimeReply r = ask<TimeReply>(t);
  EXPECT_TRUE(r.contestants.at(0).killed);
  EXPECT_EQ(r.contestants.at(0).ns.size(), 2u);
}

struct Wrong {
  const char* what;
  std::string ir;
  const char* error;
};

TEST_F(RunnerTest, WrongCandidatesAreToldSo) {
  const std::string again = "  %again = load float, ptr %p\n";
  const Wrong wrongs[] = {
      {"three times", loop("  %r = fmul float %v, 3.0\n"), "1000 of 1000 elements differ"},
      {"zeros", loop("  %r = fmul float 0.0, 0.0\n"), "elements differ"},
      {"nothing", "define void @kernel(ptr %b, i64 %c) { ret void }", "1000 never written"},
      {"half of it", loop(kTwice, 500),
       "500 of 1000 elements differ (500 never written), first [500]"},
      {"slightly off",
       loop("  %t = fadd float %v, %v\n  %r = fmul float %t, 1.00002384185791015625\n"), "differ"},
      {"one nan",
       loop("  %c = icmp eq i64 %i, 77\n  %t = fadd float %v, %v\n"
            "  %r = select i1 %c, float 0x7FF8000000000000, float %t\n"),
       "first [77]: got nan"},
      {"behind the end",
       loop(kTwice, kElements,
            "  %far = getelementptr float, ptr %out, i64 1000\n"
            "  store float 1.0, ptr %far\n"),
       "outside of buffer 0 (4000 bytes) at byte 4000"},
      {"before the start",
       loop(kTwice, kElements,
            "  %far = getelementptr i8, ptr %in, i64 -8\n"
            "  store i8 1, ptr %far\n"),
       "outside of buffer 1 (4000 bytes) at byte -8"},
      {"its input", loop("  %r = fadd float %v, %v\n  store float 0.0, ptr %p\n"),
       "wrote to input buffer 1"},
  };
  setup(doubling());
  for (const Wrong& w : wrongs) {
    load("x", w.ir);
    const CheckReply r = check("x");
    EXPECT_EQ(r.status, "wrong_result") << w.what;
    EXPECT_THAT(r.error, HasSubstr(w.error)) << w.what;
    const TimeReply t = ask<TimeReply>(TimeRequest{{"x"}});
    EXPECT_EQ(t.status, "launch_error") << "a wrong kernel has no time: " << w.what;
    // The next candidate finds inputs, outputs and canaries as they should be.
    load("good", loop(kTwice));
    EXPECT_EQ(check("good").status, "ok") << "after " << w.what;
  }
}

TEST_F(RunnerTest, CrashesCostTheRunnerOnly) {
  const std::pair<const char*, std::string> crashes[] = {
      {"null",
       "define void @kernel(ptr %b, i64 %c) {\n  store volatile i64 1, ptr null\n  ret void\n}"},
      {"trap",
       "declare void @llvm.trap()\ndefine void @kernel(ptr %b, i64 %c) {\n  call void "
       "@llvm.trap()\n  ret void\n}"},
      {"far",
       loop(kTwice, kElements,
            "  %far = getelementptr i8, ptr %out, i64 1073741824\n  store i8 1, ptr %far\n")},
      {"through the canary", loop(kTwice, 100'000'000)},
      {"division",
       "define void @kernel(ptr %b, i64 %c) {\n  %r = sdiv i64 1, %c\n"
       "  store volatile i64 %r, ptr %b\n  ret void\n}"},
      {"no end", "define void @kernel(ptr %b, i64 %c) { unreachable }"},
  };
  for (const auto& [what, ir] : crashes) {
    setup(doubling());
    load("x", ir);
    const pid_t pid = runner.pid();
    const Outcome o = runner.call(to_frame(CheckRequest{"x", 0}), kLong);
    EXPECT_STREQ(o.status(), "crashed") << what;
    EXPECT_FALSE(o.error.empty());
    expect_alive();
    EXPECT_NE(runner.pid(), pid);
  }
}

TEST_F(RunnerTest, EndlessLoopsMeetTheirDeadline) {
  const std::pair<const char*, std::string> loops[] = {
      {"in one thread",
       "define void @kernel(ptr %b, i64 %c) {\nentry:\n  br label %l\nl:\n  br label %l\n}"},
      {"in the second",
       "define void @kernel(ptr %b, i64 %c) {\nentry:\n  %first = icmp eq i64 %c, 0\n"
       "  br i1 %first, label %done, label %l\nl:\n  br label %l\ndone:\n  ret void\n}"},
  };
  for (const auto& [what, ir] : loops) {
    setup(doubling());
    load("x", ir, 2);
    const Outcome o = runner.call(to_frame(CheckRequest{"x", 0}), milliseconds(500));
    EXPECT_STREQ(o.status(), "timeout") << what;
    expect_alive();
  }
}

TEST_F(RunnerTest, ZerosWhereInputsMightHaveCollapsedAreMistrusted) {
  SetupRequest s = doubling();
  s.buffers[0].expected.bytes = bytes_of(std::vector<double>(kElements, 0.0));
  setup(s);
  load("zero", loop("  %r = fmul float %v, 0.0\n"));
  const CheckReply r = check("zero");
  EXPECT_EQ(r.status, "mistrusted");
  EXPECT_TRUE(r.all_zero);
  s.buffers[0].zero_ok = true;
  setup(s);
  EXPECT_EQ(check("zero").status, "ok");
}

TEST_F(RunnerTest, AnErrorFarAboveThePlainKernelsIsMistrusted) {
  SetupRequest s = doubling();
  s.buffers[0].rtol = 1e-3;
  setup(s);
  load("off", loop("  %t = fadd float %v, %v\n  %r = fmul float %t, 1.0001220703125\n"));
  EXPECT_EQ(check("off").status, "ok");
  const double err = check("off").max_err;
  EXPECT_EQ(check("off", err / 2).status, "mistrusted");
  EXPECT_EQ(check("off", err * 2).status, "ok");
}

TEST_F(RunnerTest, EachThreadIsCalledWithItsNumber) {
  SetupRequest s;
  BufferSpec out;
  out.dtype = "i64", out.elements = 5, out.role = "out";
  out.expected.bytes = bytes_of(std::vector<int64_t>{1, 2, 3, 4, 5});
  s.buffers = {out};
  setup(s);
  load("ids", R"(
define void @kernel(ptr %buffers, i64 %core) {
  %out = load ptr, ptr %buffers
  %p = getelementptr i64, ptr %out, i64 %core
  %n = add i64 %core, 1
  store i64 %n, ptr %p
  ret void
})",
       5);
  const CheckReply r = check("ids");
  EXPECT_EQ(r.status, "ok") << r.error;
  TimeRequest t;
  t.ids = {"ids"};
  t.sweeps = 3;
  EXPECT_EQ(ask<TimeReply>(t).contestants.at(0).ns.size(), 3u);
}

TEST_F(RunnerTest, DenormalsAreNumbers) {
  SetupRequest s = doubling();
  std::vector<float> in(kElements, 0x1p-140f);
  s.buffers[1].init.bytes = bytes_of(in);
  s.buffers[0].expected.bytes = bytes_of(std::vector<double>(kElements, 0x1p-139));
  setup(s);
  load("a", loop(kTwice));
  EXPECT_EQ(check("a").status, "ok");
}

TEST_F(RunnerTest, RunGivesTheOutputs) {
  SetupRequest s = doubling();
  s.buffers[0].expected = {};  // the reference itself has nothing to compare with
  setup(s);
  load("a", loop(kTwice));
  const RunReply r = ask<RunReply>(RunRequest{"a"});
  ASSERT_EQ(r.status, "ok") << r.error;
  ASSERT_EQ(r.outputs.size(), 1u);
  std::vector<float> got(kElements);
  ASSERT_EQ(r.outputs[0].size(), got.size() * 4);
  std::memcpy(got.data(), r.outputs[0].data(), r.outputs[0].size());
  EXPECT_EQ(got[3], 2 * inputs()[3]);
  EXPECT_EQ(check("a").status, "launch_error");  // a check needs something to compare with
}

TEST_F(RunnerTest, AnInOutBufferStartsAsItWas) {
  SetupRequest s = doubling();
  s.buffers[0].role = "inout";
  s.buffers[0].init.bytes = bytes_of(inputs());
  setup(s);
  // out += in, and both start equal; a second check must not see the first one's sum.
  load("add", loop("  %o = getelementptr float, ptr %out, i64 %i\n  %w = load float, ptr %o\n"
                   "  %r = fadd float %v, %w\n"));
  EXPECT_EQ(check("add").status, "ok");
  EXPECT_EQ(check("add").status, "ok");
}

TEST_F(RunnerTest, ContentsMayBeFiles) {
  const auto path =
      std::filesystem::temp_directory_path() / ("beamline-data-" + std::to_string(getpid()));
  SetupRequest s = doubling();
  std::ofstream(path, std::ios::binary) << s.buffers[1].init.bytes;
  s.buffers[1].init = {path.string(), ""};
  setup(s);
  load("a", loop(kTwice));
  EXPECT_EQ(check("a").status, "ok");
  s.buffers[1].elements--;
  const Reply r = ask<Reply>(s);
  EXPECT_EQ(r.status, "launch_error");
  EXPECT_THAT(r.error, HasSubstr("4000 bytes instead of 3996"));
  std::filesystem::remove(path);
  const Reply absent = ask<Reply>(s);
  EXPECT_THAT(absent.error, HasSubstr("No such file"));
}

TEST_F(RunnerTest, NewBuffersMeanANewCheck) {
  setup(doubling());
  load("a", loop(kTwice));
  EXPECT_EQ(check("a").status, "ok");
  setup(doubling());
  EXPECT_EQ(ask<TimeReply>(TimeRequest{{"a"}}).status, "launch_error");
  EXPECT_EQ(check("a").status, "ok");
  EXPECT_EQ(ask<Reply>(UnloadRequest{"a"}).status, "ok");
  EXPECT_EQ(check("a").status, "launch_error");
}

TEST_F(RunnerTest, NonsenseIsRefused) {
  EXPECT_EQ(check("a").status, "launch_error");  // nothing set up
  EXPECT_EQ(ask<Reply>(LoadRequest{"a", "", 0, 1}).status, "launch_error");
  EXPECT_EQ(ask<Reply>(LoadRequest{"a", "\xC3", 5, 1}).status, "launch_error");
  EXPECT_EQ(ask<Reply>(LoadRequest{"a", "\xC3", 0, 0}).status, "launch_error");
  SetupRequest s = doubling();
  s.buffers[0].dtype = "f31";
  EXPECT_THAT(ask<Reply>(s).error, HasSubstr("unknown dtype f31"));
  s = doubling();
  s.buffers[0].role = "sideways";
  EXPECT_THAT(ask<Reply>(s).error, HasSubstr("sideways"));
  s = doubling();
  s.buffers[0].elements = -1;
  EXPECT_EQ(ask<Reply>(s).status, "launch_error");
  const Outcome o = runner.call({{{"kind", "dance"}}, {}}, kLong);
  EXPECT_EQ(o.reply.kind(), "error");
  EXPECT_EQ(runner.started(), 1);
}

// ---- the compile worker ----

TEST_F(RunnerTest, BadTextIsACompileErrorAndTheWorkerLives) {
  const CompileReply bad = compile("define void @kernel(ptr %b, i64 %c) { nonsense }");
  EXPECT_EQ(bad.status, "compile_error");
  EXPECT_THAT(bad.error, HasSubstr("nonsense"));
  // LLVM gives up on this one with a fatal error of its own.
  const CompileReply fatal = compile(R"(
declare <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(<16 x i32>, <16 x i32>, <16 x i32>)
define void @kernel(ptr %b, i64 %c) "target-features"="-avx512f" {
  %x = load <16 x i32>, ptr %b
  %r = call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(<16 x i32> %x, <16 x i32> %x, <16 x i32> %x)
  store <16 x i32> %r, ptr %b
  ret void
})");
  EXPECT_EQ(fatal.status, "compile_error");
  EXPECT_FALSE(fatal.error.empty());
  const CompileReply good = compile(loop(kTwice)), again = compile(loop(kTwice));
  EXPECT_EQ(good.status, "ok") << good.error;
  EXPECT_EQ(good.code_hash, again.code_hash);
  EXPECT_EQ(good.code_hash.size(), 64u);
  EXPECT_EQ(good.source_hash, again.source_hash);
  EXPECT_THAT(good.toolchain, HasSubstr("llvm 19"));
  EXPECT_GE(good.compile_ms, 0);
  EXPECT_EQ(compiler.started(), 1);
}

TEST_F(RunnerTest, RequestsForTheEngineAreRefusedWithItsReason) {
  CompileRequest r;
  r.ast = "this is no kernel";
  r.target = "name=cpu;vector_bytes=-1";
  const auto bad_target = read_message<CompileReply>(compiler.call(to_frame(r), kLong).reply);
  EXPECT_EQ(bad_target->status, "rejected");
  EXPECT_THAT(bad_target->error, HasSubstr("unreadable target"));
  r.target = "";
  const auto bad_text = read_message<CompileReply>(compiler.call(to_frame(r), kLong).reply);
  EXPECT_EQ(bad_text->status, "compile_error");
  EXPECT_FALSE(bad_text->error.empty());
  EXPECT_EQ(compiler.started(), 1);
}

}  // namespace
}  // namespace beamline
