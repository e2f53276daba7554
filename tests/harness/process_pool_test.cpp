#include "harness/process_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace beamline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr seconds kLong(120);        // never reached in a passing test
constexpr milliseconds kShort(300);  // for requests that hang for ever

WorkerOptions fake(std::vector<std::string> arguments = {}) {
  WorkerOptions o;
  o.command = {helper_path("fake_worker")};
  o.command.insert(o.command.end(), arguments.begin(), arguments.end());
  return o;
}

Frame ask(const std::string& what, int n = 0) { return {{{"do", what}, {"n", n}}, {}}; }

// Gone, or a zombie that only its reaper still sees.
bool gone(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(in, line)) return true;
  return line.substr(line.rfind(')') + 2, 1) == "Z";
}
bool soon_gone(pid_t pid) {
  for (int i = 0; i < 3000 && !gone(pid); i++) std::this_thread::sleep_for(milliseconds(10));
  return gone(pid);
}

TEST(Worker, AnswersAgainAndAgainInOneProcess) {
  Worker w(fake());
  EXPECT_EQ(w.pid(), -1);
  pid_t pid = -1;
  for (int i = 0; i < 100; i++) {
    const Outcome o = w.call(ask("echo", i), kLong);
    ASSERT_TRUE(o.ok()) << o.error;
    EXPECT_EQ(o.reply.header.at("n"), i);
    if (i == 0) pid = w.pid();
    EXPECT_EQ(w.pid(), pid);
  }
  EXPECT_EQ(w.hello().at("start"), "ok");
  EXPECT_EQ(w.started(), 1);
  w.restart();
  EXPECT_TRUE(soon_gone(pid));
  EXPECT_TRUE(w.call(ask("echo"), kLong).ok());
  EXPECT_NE(w.pid(), pid);
}

TEST(Worker, LargePayloadsTravelBothWays) {
  Worker w(fake());
  Frame f = ask("echo");
  f.payload.assign(size_t{20} << 20, 'p');
  f.payload[12345] = '\0';
  const Outcome o = w.call(f, kLong);
  ASSERT_TRUE(o.ok()) << o.error;
  EXPECT_EQ(o.reply.payload, f.payload);
}

struct Misdeed {
  const char* what;
  Outcome::Kind kind;
  const char* error;  // a part of it
};

// clang-format off
const Misdeed kMisdeeds[] = {
    {"hang",            Outcome::Kind::Timeout, "no answer within 300 ms"},
    {"spin",            Outcome::Kind::Timeout, "no answer"},
    {"stubborn",        Outcome::Kind::Timeout, "no answer"},
    {"stall midframe",  Outcome::Kind::Timeout, "no answer"},
    {"crash",           Outcome::Kind::Crashed, "about to crash"},
    {"exit",            Outcome::Kind::Crashed, "exit code 7"},
    {"garbage",         Outcome::Kind::Crashed, "garbled"},
    {"early garbage",   Outcome::Kind::Crashed, "garbled"},
    {"midframe",        Outcome::Kind::Crashed, "within a frame"},
    {"huge",            Outcome::Kind::Crashed, "too long"},
    {"no json",         Outcome::Kind::Crashed, "no JSON"},
    {"close",           Outcome::Kind::Crashed, ""},
};
// clang-format on

TEST(Worker, EveryMisdeedIsAnOutcomeAndTheNextCallWorks) {
  Worker w(fake());
  for (const Misdeed& m : kMisdeeds) {
    const bool hangs = m.kind == Outcome::Kind::Timeout;
    ASSERT_TRUE(w.call(ask("echo"), kLong).ok());
    const pid_t pid = w.pid();
    const Outcome o = w.call(ask(m.what), hangs ? milliseconds(kShort) : milliseconds(kLong));
    EXPECT_EQ(o.kind, m.kind) << m.what << ": " << o.error;
    EXPECT_THAT(o.error, HasSubstr(m.error)) << m.what;
    EXPECT_TRUE(soon_gone(pid)) << m.what;
    const Outcome next = w.call(ask("echo", 5), kLong);
    ASSERT_TRUE(next.ok()) << m.what << ": " << next.error;
    EXPECT_EQ(next.reply.header.at("n"), 5);
  }
}

TEST(Worker, ASecondAnswerDoesNotBecomeTheNextOnes) {
  Worker w(fake());
  w.call(ask("twice", 1), kLong);
  for (int n = 2; n < 5; n++) {
    const Outcome o = w.call(ask("echo", n), kLong);
    EXPECT_TRUE(!o.ok() || o.reply.header.at("n") == n);
  }
  EXPECT_EQ(w.call(ask("echo", 9), kLong).reply.header.at("n"), 9);
}

TEST(Worker, TheSignalIsTold) {
  Worker w(fake());
  const Outcome o = w.call(ask("crash"), kLong);
  EXPECT_EQ(o.signal, SIGSEGV);
  EXPECT_STREQ(o.status(), "crashed");
}

TEST(Worker, AHandlersExceptionIsAnAnswer) {
  Worker w(fake());
  const Outcome o = w.call(ask("throw"), kLong);
  ASSERT_TRUE(o.ok());
  EXPECT_EQ(o.reply.kind(), "error");
  EXPECT_EQ(o.reply.header.at("error"), "the handler threw");
}

TEST(Worker, FloodedStderrBlocksNobodyAndItsEndIsKept) {
  Worker w(fake());
  EXPECT_TRUE(w.call(ask("flood"), kLong).ok());
  Frame f = ask("flood");
  f.header["then"] = "crash";
  const Outcome o = w.call(f, kLong);
  EXPECT_EQ(o.kind, Outcome::Kind::Crashed);
  EXPECT_THAT(o.error, HasSubstr("the last words"));
  EXPECT_LT(o.error.size(), 5000u);
}

TEST(Worker, TheWholeGroupIsKilled) {
  Worker w(fake());
  const Outcome o = w.call(ask("child"), kLong);
  ASSERT_TRUE(o.ok());
  const pid_t child = o.reply.header.at("child");
  EXPECT_EQ(w.call(ask("hang"), kShort).kind, Outcome::Kind::Timeout);
  EXPECT_TRUE(soon_gone(child));
}

TEST(Worker, DiesWithItsOwner) {
  pid_t pid = -1;
  {
    Worker w(fake());
    w.call(ask("echo"), kLong);
    pid = w.pid();
  }
  EXPECT_TRUE(soon_gone(pid));
}

TEST(Worker, NoHelperOutlivesAKilledParent) {
  const std::string command =
      "exec " + helper_path("fake_parent") + " " + helper_path("fake_worker");
  std::FILE* parent = popen(("echo $$; " + command).c_str(), "r");
  ASSERT_NE(parent, nullptr);
  int pid = 0, helper = 0, child = 0;
  ASSERT_EQ(std::fscanf(parent, "%d %d %d", &pid, &helper, &child), 3);
  EXPECT_FALSE(gone(helper));
  ASSERT_EQ(kill(pid, SIGKILL), 0);
  pclose(parent);
  EXPECT_TRUE(soon_gone(helper));
  EXPECT_TRUE(soon_gone(child));
}

TEST(Worker, AHelperThatDiedIdleIsReplaced) {
  Worker w(fake());
  ASSERT_TRUE(w.call(ask("echo"), kLong).ok());
  const pid_t pid = w.pid();
  kill(pid, SIGKILL);
  siginfo_t info = {};  // when its last thread is gone; the zombie stays for its owner
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(w.call(ask("echo"), kLong).ok());
  EXPECT_EQ(w.started(), 2);
}

std::string failure(const WorkerOptions& o) {
  Worker w(o);
  try {
    w.call(ask("echo"), kLong);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(Worker, RepeatedFailureToStartIsAnException) {
  EXPECT_THAT(failure(fake({"die"})),
              HasSubstr("failed to start 3 times: exit code 127; stderr: cannot find my library"));
  EXPECT_THAT(failure(fake({"rude"})), HasSubstr("garbled"));
  WorkerOptions mute = fake({"mute"});
  mute.start_limit = kShort;
  EXPECT_THAT(failure(mute), HasSubstr("no greeting within 300 ms"));
  WorkerOptions absent;
  absent.command = {"/no/such/helper"};
  EXPECT_THAT(failure(absent), HasSubstr("/no/such/helper"));
  Worker again(absent);  // and not only the first time
  EXPECT_ANY_THROW(again.call(ask("echo"), kLong));
  EXPECT_ANY_THROW(again.call(ask("echo"), kLong));
}

TEST(Worker, OneFailedStartIsForgiven) {
  const auto dir =
      std::filesystem::temp_directory_path() /
      ("beamline-late-" + std::to_string(getpid()) + "-" + std::to_string(time(nullptr)));
  Worker w(fake({"late", dir.string()}));
  EXPECT_TRUE(w.call(ask("echo"), kLong).ok());
  EXPECT_EQ(w.started(), 2);
  std::filesystem::remove(dir);
}

// ---- pool ----

TEST(Pool, AllRequestsAreAnsweredOnce) {
  Pool pool(fake(), 3);
  std::multiset<int> seen;
  std::set<int> pids;
  for (int i = 0; i < 200; i++) {
    pool.submit(ask("echo", i), kLong, [&](Outcome o) {
      ASSERT_TRUE(o.ok()) << o.error;
      seen.insert(o.reply.header.at("n").get<int>());
      pids.insert(o.reply.header.at("pid").get<int>());
    });
  }
  EXPECT_EQ(pool.pending(), 200u);
  pool.run();
  EXPECT_EQ(pool.pending(), 0u);
  EXPECT_EQ(seen.size(), 200u);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 200u);
  EXPECT_LE(pids.size(), 3u);
}

TEST(Pool, MisdeedsCostOneRequestEach) {
  Pool pool(fake(), 2);
  int ok = 0, timeouts = 0, crashes = 0, wrong = 0;
  const auto count = [&](Outcome o) {
    ok += o.ok(), timeouts += o.kind == Outcome::Kind::Timeout,
        crashes += o.kind == Outcome::Kind::Crashed;
  };
  for (int i = 0; i < 60; i++) {
    pool.submit(ask("echo", i), kLong, [&, i](Outcome o) {
      count(o);
      wrong += !o.ok() || o.reply.header.at("n") != i;
    });
    if (i % 10 == 0) pool.submit(ask("crash"), kLong, count);
    if (i % 20 == 0) pool.submit(ask("stubborn"), kShort, count);
    if (i % 30 == 0) pool.submit(ask("garbage"), kLong, count);
  }
  pool.run();
  EXPECT_EQ(ok, 60);
  EXPECT_EQ(timeouts, 3);
  EXPECT_EQ(crashes, 8);
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, CompletionsMaySubmitMore) {
  Pool pool(fake(), 2);
  int done = 0;
  std::function<void(Outcome)> again = [&](Outcome) {
    if (++done < 30) pool.submit(ask("echo"), kLong, again);
  };
  pool.submit(ask("echo"), kLong, again);
  pool.run();
  EXPECT_EQ(done, 30);
}

TEST(Pool, PollReturnsWithAndWithoutNews) {
  Pool pool(fake(), 1);
  EXPECT_FALSE(pool.poll(milliseconds(10)));
  int done = 0;
  pool.submit(ask("echo"), kLong, [&](Outcome) { done++; });
  pool.submit(ask("hang"), kLong, [&](Outcome) { done++; });
  EXPECT_TRUE(pool.poll(kLong));
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(pool.poll(milliseconds(50)));
  EXPECT_EQ(pool.pending(), 1u);
  pool.submit(ask("echo"), kLong, [&](Outcome) { done++; });
  EXPECT_EQ(pool.cancel_queued(), 1u);
}

TEST(Pool, StartFailuresAreThrownAndDoNotHangTheRest) {
  Pool pool(fake({"die"}), 2);
  int done = 0;
  for (int i = 0; i < 4; i++) pool.submit(ask("echo"), kLong, [&](Outcome) { done++; });
  EXPECT_THROW(pool.run(), std::runtime_error);
  EXPECT_LT(pool.pending(), 4u);
  EXPECT_EQ(done, 0);
}

TEST(Pool, AThrowingCompletionLeavesThePoolUsable) {
  Pool pool(fake(), 1);
  int done = 0;
  pool.submit(ask("echo"), kLong, [](Outcome) { throw std::runtime_error("stop"); });
  pool.submit(ask("echo"), kLong, [&](Outcome o) { done += o.ok(); });
  EXPECT_THROW(pool.run(), std::runtime_error);
  pool.run();
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace beamline
