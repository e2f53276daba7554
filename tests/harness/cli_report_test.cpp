// `report` from a database that tuning left, and its page in a real browser.
#include <gtest/gtest.h>

#include <cstdlib>

#include "sample_database.h"

namespace beamline::test {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class Report : public ::testing::Test {
 protected:
  void SetUp() override { make_sample_database(cli, db); }
  CliResult report(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "report");
    arguments.insert(arguments.end(), {"--db", db});
    return cli.run(arguments);
  }
  CliRunner cli;
  std::string db = cli.path("sample.db");
};

TEST_F(Report, HtmlIsWrittenAndItsPathPrinted) {
  const std::string path = cli.path("r.html");
  CliResult r = report({"html", "-o", path});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, path + "\n");
  const std::string page = read_file(path);
  EXPECT_EQ(count(page, "<tr data-status="), 3U);
  EXPECT_EQ(count(page, "<script>alert"), 0U);
  EXPECT_EQ(count(page, "<img"), 0U);
  for (const char* part : {"1.50x [1.45, 1.55]", "badge tuned", "badge cached", "badge failed",
                           "FASTER", "define void", "Machine code", "Made anew"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  CliResult bare = report({"html", "-o", "-", "--no-code"});
  ASSERT_EQ(bare.code, 0) << bare.err;
  EXPECT_EQ(bare.out.find("define void"), std::string::npos);
  CliResult told = report({"html", "-o", path, "--json"});
  EXPECT_EQ(shape_of(told.json()),
            "{schema: integer, report: {format: text, path: text, run: integer, kernels: integer, "
            "bytes: integer}}");
}

TEST_F(Report, JsonHasTheShapeThatHelpTells) {
  CliResult r = report({"json", "-o", "-"});
  ASSERT_EQ(r.code, 0) << r.err;
  auto j = r.json();
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["runs"][0]["run_id"], 2);
  std::map<std::string, std::string> states;
  for (const auto& k : j["kernels"]) states[k["workloads"][0]] = k["status"];
  EXPECT_EQ(states, (std::map<std::string, std::string>{
                        {"broken", "failed"}, {"rows", "cached"}, {"scale", "tuned"}}));
  auto scale = j["kernels"][0]["workloads"][0] == "scale" ? j["kernels"][0] : j["kernels"][1];
  EXPECT_EQ(shape_of(scale),
            "{key: text, name: text, workloads: [text], status: text, opts: text, best_ns: number, "
            "heuristic_ns: number, unoptimized_ns: number, gain: number, ci_low: number, ci_high: "
            "number, sessions: integer, ties: [text], gflops: number, gbps: number, bound_share: "
            "null, verified: bool, pinned: bool, stale: bool, stale_reason: null, run: integer, "
            "trials: {compile_error: integer, crashed: integer, launch_error: integer, mistrusted: "
            "integer, ok: integer, rejected: integer, timeout: integer, wrong_result: integer}, "
            "failures: [{status: text, count: integer, error: text, opts: text}], evidence: "
            "[{against: text, role: text, verdict: text, ratio: number, ci_low: number, ci_high: "
            "number, confidence: number, sessions_used: integer, sessions_available: integer, "
            "reason: text}], candidates: [{run: integer, opts: text, status: text, stage: text, "
            "time_ns: null}]}");
  EXPECT_EQ(scale["evidence"][0]["verdict"], "FASTER");
  EXPECT_EQ(scale["trials"]["ok"], 32);
}

TEST_F(Report, RunsAreNamedByNumberPlaceAndLabel) {
  for (const char* name : {"1", "last-1", "first"}) {
    CliResult r = report({"json", "-o", "-", "--run", name});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.json()["runs"][0]["run_id"], 1) << name;
  }
  CliResult two = report({"json", "-o", "-", "--runs", "first,last"});
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(two.json()["runs"].size(), 2U);
  EXPECT_EQ(two.json()["kernels"][0].contains("earlier"), true);
  // An older run shows its own winner, from its own trials.
  CliResult older = report({"json", "-o", "-", "--run", "1"});
  const auto listed = older.json();
  for (const auto& k : listed["kernels"])
    if (k["status"] == "tuned") {
      EXPECT_EQ(k["run"], 1);
      EXPECT_EQ(k["opts"], "UPCAST:0:4");
      // Of the kernel that a later run has tuned again: the median of the session minima.
      EXPECT_NEAR(k["best_ns"].get<double>(), k["workloads"][0] == "scale" ? 1002 : 1000, 1e-9);
    }
  EXPECT_NE(report({"html", "-o", "-", "--runs", "1,2"}).out.find("opts changed"),
            std::string::npos);
}

// A row of a backend, or of a thread limit, that is not the default; and of another machine.
TEST_F(Report, CodeIsMadeForTheDeviceOfTheRun) {
  const auto devices = cli.run({"devices", "--json"}).json()["devices"];
  auto page_as = [&](const std::string& id, const std::string& backend) {
    {
      db::Store store(db);
      store.database().execute("PRAGMA foreign_keys=OFF; UPDATE t_device SET device_id = '" + id +
                               "', backend = '" + backend + "'; UPDATE t_run SET device_id = '" +
                               id + "'; UPDATE t_trial SET device_id = '" + id +
                               "'; UPDATE t_best SET device_id = '" + id + "'");
    }
    CliResult r = report({"html", "-o", "-"});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.out;
  };
  const std::string other = page_as("cpu-0123456789abcdef", "cpu");
  EXPECT_NE(other.find("Machine code is shown on its device only"), std::string::npos);
  EXPECT_NE(other.find("define void"), std::string::npos);
  EXPECT_EQ(other.find("<dt>environment"), std::string::npos);
  const std::string unknown = page_as("cuda-1", "cuda");
  EXPECT_NE(unknown.find("<tr data-status="), std::string::npos);
  if (devices.size() < 2) return;  // no clang
  const std::string c = page_as(devices[1]["device_id"], devices[1]["backend"]);
  EXPECT_NE(c.find("Machine code"), std::string::npos);
  EXPECT_EQ(c.find("define void"), std::string::npos)
      << "LLVM IR of a device that is compiled through C";
}

TEST_F(Report, MarkdownAndJunit) {
  CliResult md = report({"markdown", "-o", "-"});
  EXPECT_EQ(md.code, 0) << md.err;
  EXPECT_NE(md.out.find("1.50x \\[1.45, 1.55\\]"), std::string::npos) << md.out;
  CliResult xml = report({"junit", "-o", "-"});
  EXPECT_NE(xml.out.find("tests=\"3\" failures=\"1\""), std::string::npos) << xml.out;
}

TEST_F(Report, MistakesAreNamed) {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {{"html"}, "-o PATH is missing"},
           {{"html", "-o"}, "a value is missing"},
           {{"html", "-o", "/nonexistent/r.html"}, "cannot write /nonexistent/r.html"},
           {{"html", "-o", "-", "--json"}, "stdout cannot take both"},
           {{"html", "-o", "-", "--run", "9"}, "there is no run 9"},
           {{"html", "-o", "-", "--run", "last-7"}, "the database has fewer"},
           {{"html", "-o", "-", "--runs", "1"}, "'1' is not two runs"},
           {{"html", "-o", "-", "--runs", "1,2,3"}, "is not two runs"},
           {{"html", "-o", "-", "--runs", "1,first"}, "both are run 1"},
           {{"html", "-o", "-", "--runs", "1,2", "--run", "1"}, "exclude each other"},
           {{"markdown", "-o", "-", "--no-code"}, "unknown option '--no-code'"},
           {{"html", "-o", "-", "--db", "other.db"}, "give --db once"}}) {
    CliResult r = report(c.arguments);
    EXPECT_EQ(r.code, 2) << c.message;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(c.message), std::string::npos) << r.err;
  }
}

// What a browser makes of a page once its script has run, and what it said on the way.
struct Shown {
  std::string dom, log;
};
bool has_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }
Shown show(const CliRunner& cli, const std::string& page) {
  const std::string command =
      "timeout 120 chromium --headless=new --no-sandbox --disable-gpu --enable-logging=stderr "
      "--user-data-dir='" +
      cli.path("profile") + "' --virtual-time-budget=2000 --dump-dom 'file://" + page + "' >'" +
      cli.path("dom") + "' 2>'" + cli.path("log") + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return {read_file(cli.path("dom")), read_file(cli.path("log"))};
}

TEST_F(Report, ABrowserShowsIt) {
  if (!has_browser()) GTEST_SKIP() << "no chromium";
  const std::string page = cli.path("r.html");
  ASSERT_EQ(report({"html", "-o", page}).code, 0);
  const Shown shown = show(cli, page);
  EXPECT_EQ(count(shown.dom, "<tr data-status="), 3U);
  EXPECT_GE(count(shown.dom, "<circle class=\"m search\""), 60U);
  EXPECT_GE(count(shown.dom, "<path class=\"m wrong_result\""), 3U);
  EXPECT_EQ(count(shown.dom, "<div id=\"tip\""), 1U);  // the script ran to its end
  EXPECT_NE(shown.dom.find("3 of 3 kernels"), std::string::npos);
  EXPECT_EQ(count(shown.log, "CONSOLE"), 0U) << shown.log;
}

TEST_F(Report, TheTableSortsAndFilters) {
  if (!has_browser()) GTEST_SKIP() << "no chromium";
  const std::string page = cli.path("r.html");
  ASSERT_EQ(report({"html", "-o", page}).code, 0);
  std::string text = read_file(page);
  // The status column, twice: descending. Then only what has both words, in any order.
  text.insert(text.rfind("</body>"), R"(<script>
    var head = document.querySelectorAll('#tuning th button')[2];
    head.click();
    head.click();
    var box = document.getElementById('filter');
    box.value = 'tuned SCALE';
    box.dispatchEvent(new Event('input'));
    document.querySelector('#tuning a').click();
    </script>)");
  const Shown shown = show(cli, cli.file("clicked.html", text));
  const size_t tuned = shown.dom.find("<tr data-status=\"tuned\""),
               failed = shown.dom.find("<tr data-status=\"failed\" hidden"),
               cached = shown.dom.find("<tr data-status=\"cached\" hidden");
  ASSERT_NE(tuned, std::string::npos);
  ASSERT_NE(failed, std::string::npos) << shown.dom.substr(0, 3000);
  EXPECT_LT(tuned, failed);
  EXPECT_LT(failed, cached);
  EXPECT_NE(shown.dom.find("1 of 3 kernels"), std::string::npos);
  EXPECT_NE(shown.dom.find("aria-sort=\"descending\""), std::string::npos);
  EXPECT_EQ(count(shown.log, "CONSOLE"), 0U) << shown.log;
}

}  // namespace
}  // namespace beamline::test
