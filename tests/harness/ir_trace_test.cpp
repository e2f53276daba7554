// ir trace as users run it: text, JSON, the page in a real browser, the viewer on a real terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <pty.h>
#include <cstring>

#include "tests/harness/cli_runner.h"

namespace beamline::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class IrTrace : public ::testing::Test {
 protected:
  CliRunner cli;
  std::string workload = cli.file("w.toml", R"toml(
[[workload]]
name = "mm"
inputs = { a = "f32[24, 40]", b = "f32[40, 48]" }
compute = "return exp2(matmul(a, b))"
)toml");
  std::vector<std::string> trace(std::vector<std::string> more) {
    std::vector<std::string> all{"ir", "trace", workload, "--kernel", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(IrTrace, IntoAPipeItPrints) {
  CliResult r = cli.run(trace({}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, ContainsRegex("decompositions: [0-9]+ nodes, [0-9]+ us, [0-9]+ rewrites"));
  EXPECT_THAT(r.out, ContainsRegex("[a-z-]+ [a-z]+[.]cpp:[0-9]+ [0-9]+ ns  #[0-9]+ .* -> #[0-9]+"));
  EXPECT_THAT(r.out, Not(HasSubstr("\x1b")));
}
TEST_F(IrTrace, JsonAndCounts) {
  CliResult r = cli.run(trace({"--json"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = r.json();
  EXPECT_EQ(j["schema"], 1);
  size_t rewrites = 0, applied = 0;
  for (const auto& pass : j["passes"]) rewrites += pass["rewrites"].size();
  for (const auto& rule : j["rules"]) applied += rule["applied"].get<size_t>();
  EXPECT_GT(rewrites, 20u);
  EXPECT_EQ(applied, rewrites + j["left_out"].get<size_t>());
  CliResult stats = cli.run(trace({"--stats"}));
  ASSERT_EQ(stats.code, 0) << stats.err;
  EXPECT_THAT(stats.out, ContainsRegex("^rule +tried +matched +applied"));
}
TEST_F(IrTrace, BadInputIsRefused) {
  EXPECT_EQ(cli.run(trace({"--opts", "UPCAST:9:4"})).code, 2);
  CliResult r = cli.run(trace({"--html", "/nonexistent/dir/x.html"}));
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("'/nonexistent/dir/x.html' cannot be written"));
}
TEST_F(IrTrace, ExplainsWhyARuleDoesNotFit) {
  CliResult r =
      cli.run({"ir", "simplify", "--vars", "a=0..7", "--explain", "mul-one", "a * 2 + a * 1"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("a * 2: expected the constant 1, found CONST"));
  EXPECT_THAT(r.out, HasSubstr("it fits"));
  CliResult bad = cli.run({"ir", "simplify", "--explain", "mul-on", "1"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("'mul-on' is no rule; did you mean 'mul-one'?"));
}

size_t pass_named(const nlohmann::ordered_json& trace, const std::string& name) {
  size_t i = 0;
  while (trace["passes"].at(i)["pass"] != name) i++;
  return i;
}

// The page, as Chromium shows it at an address.
class Page : public IrTrace {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "no chromium (harness/packages.sh test installs it)";
  }
  std::string html = cli.path("trace.html");
  std::string dom(const std::string& at) {
    const std::string out = cli.path("dom"), home = cli.path("profile");
    const std::string command =
        "timeout 120 chromium --headless=new --no-sandbox --disable-gpu "
        "--virtual-time-budget=20000 "
        "--user-data-dir='" +
        home + "' --dump-dom 'file://" + html + at + "' >'" + out + "' 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::string text = read_file(out);
    return text.substr(0, text.find("<script type=\"application/json\""));  // what is shown
  }
  static size_t count(const std::string& text, const std::string& what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
  }
};
TEST_F(Page, OneStepsThroughPassesAndSeesTheGraphChange) {
  const CliResult r = cli.run(trace({"--html", html, "--opts", "UPCAST:0:4"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const auto facts = cli.run(trace({"--json", "--opts", "UPCAST:0:4"})).json();
  const size_t chosen = pass_named(facts, "decompositions");
  const size_t rewrites = facts["passes"][chosen]["rewrites"].size();
  ASSERT_GT(rewrites, 2u);

  const std::string start = dom("");
  EXPECT_THAT(start, HasSubstr("pass 1/" + std::to_string(facts["passes"].size())));
  EXPECT_GT(count(start, "<g class=\"node"), 10u);
  EXPECT_GT(count(start, "class=\"edge\""), 10u);
  EXPECT_EQ(count(start, "<li data-pass="), facts["passes"].size());

  // A rewrite is applied: its result is marked, its rule and place are told.
  const std::string p = "#p=" + std::to_string(chosen);
  const std::string one = dom(p + "&s=1");
  const auto& first = facts["passes"][chosen]["rewrites"][0];
  EXPECT_THAT(one, HasSubstr("step 1/" + std::to_string(rewrites + 1)));
  EXPECT_THAT(one, HasSubstr(first["rule"].get<std::string>()));
  EXPECT_THAT(one, HasSubstr(first["file"].get<std::string>() + ":" +
                             std::to_string(first["line"].get<int>())));
  EXPECT_THAT(one, HasSubstr("became"));

  // Keys step; after all rewrites the graph has the nodes of the pass's result.
  const std::string stepped = dom(p + "&s=0&keys=ArrowRight,ArrowRight");
  EXPECT_THAT(stepped, HasSubstr("step 2/" + std::to_string(rewrites + 1)));
  EXPECT_EQ(count(stepped, "<li data-step=\"2\" aria-current=\"true\""), 1u);
  const std::string all = dom(p + "&s=" + std::to_string(rewrites));
  const std::string end = dom(p + "&s=" + std::to_string(rewrites + 1));
  const std::string nodes =
      std::to_string(facts["passes"][chosen]["nodes"].get<size_t>()) + " nodes</output>";
  EXPECT_THAT(end, HasSubstr(nodes));
  EXPECT_THAT(all, HasSubstr(nodes)) << "the rewrites, replayed, give the result";
  EXPECT_THAT(dom(p + "&s=0&keys=ArrowDown"),
              HasSubstr("pass " + std::to_string(chosen + 2) + "/"));
  for (const std::string* text : {&start, &one, &stepped, &all, &end})
    EXPECT_THAT(*text, Not(HasSubstr("error: ")));
}
TEST_F(Page, AGraphOfThousandsOfNodesIsShown) {
  const CliResult r =
      cli.run(trace({"--html", html, "--opts", "UPCAST:0:0;UPCAST:0:16;UNROLL:0:8"}));
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string page = read_file(html);
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  // Constants are drawn with what they are operands of.
  const std::string shown = dom("#p=99&s=0");
  EXPECT_THAT(shown, ContainsRegex("step 0/1, 2[0-9][0-9][0-9] nodes"));
  EXPECT_GT(count(shown, "<g class=\"node"), 1500u);
  EXPECT_THAT(shown, Not(HasSubstr("error: ")));
}

// On a terminal: another screen, keys, and the terminal as it was.
TEST_F(IrTrace, OnATerminalItIsSteppedThroughWithKeys) {
  winsize size{};
  size.ws_row = 30, size.ws_col = 100;
  int master = -1;
  const std::string program = BEAMLINE_BIN_DIR "/beamline";
  const pid_t pid = forkpty(&master, nullptr, nullptr, &size);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    setenv("TERM", "xterm", 1);
    execl(program.c_str(), program.c_str(), "ir", "trace", workload.c_str(), "--kernel", "0",
          "--opts", "UPCAST:0:4", "--db", cli.path("x.db").c_str(), nullptr);
    _exit(127);
  }
  std::string seen;
  const auto wait_for = [&](const std::string& what) {
    while (seen.find(what) == std::string::npos) {
      pollfd p{master, POLLIN, 0};
      if (poll(&p, 1, 60000) <= 0) return false;
      char buffer[4096];
      const ssize_t n = read(master, buffer, sizeof buffer);
      if (n <= 0) return false;
      seen.append(buffer, static_cast<size_t>(n));
    }
    return true;
  };
  const auto press = [&](const char* key) {
    seen.clear();
    return write(master, key, strlen(key)) == static_cast<ssize_t>(strlen(key));
  };
  EXPECT_TRUE(wait_for("q: quit")) << seen;
  EXPECT_THAT(seen, HasSubstr("\x1b[?1049h"));
  const auto facts = cli.run(trace({"--json", "--opts", "UPCAST:0:4"})).json();
  for (size_t i = pass_named(facts, "decompositions"); i > 0; i--) {
    EXPECT_TRUE(press("n"));
    EXPECT_TRUE(wait_for("q: quit"));
  }
  EXPECT_THAT(seen, HasSubstr("> decompositions: "));
  EXPECT_TRUE(press("j"));
  EXPECT_TRUE(wait_for("q: quit"));
  EXPECT_THAT(seen, HasSubstr("2/"));
  EXPECT_TRUE(press("q"));
  EXPECT_TRUE(wait_for("\x1b[?1049l")) << seen;
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(master);
}

}  // namespace
}  // namespace beamline::test
