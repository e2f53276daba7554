// The page as text; that a browser shows it is tests/harness/cli_report_test.cpp.
#include "reports/html.h"

#include <gtest/gtest.h>

#include "reports/html_text.h"
#include "reports/scatter.h"
#include "sample_report.h"

namespace beamline::reports {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Without the style and the script, which are ours.
std::string content(std::string page) {
  for (const char* tag : {"style>", "script>"}) {
    const size_t from = page.find(std::string("<") + tag), to = page.find(std::string("</") + tag);
    page.erase(from, to - from);
  }
  return page;
}

struct EscapeCase {
  const char* in;
  const char* out;
};
class Escape : public ::testing::TestWithParam<EscapeCase> {};
TEST_P(Escape, Text) { EXPECT_EQ(escaped(GetParam().in), GetParam().out); }
INSTANTIATE_TEST_SUITE_P(
    All, Escape,
    ::testing::Values(EscapeCase{"a <b> & \"c\" 'd'",
                                 "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;"},
                      EscapeCase{"line\nnext\ttab", "line\nnext\ttab"},
                      EscapeCase{"\x1b[31m", "\xEF\xBF\xBD[31m"},
                      EscapeCase{"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80",
                                 "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"},
                      EscapeCase{"\xFF", "\xEF\xBF\xBD"},                  // no UTF-8
                      EscapeCase{"\xC0\xBC", "\xEF\xBF\xBD\xEF\xBF\xBD"},  // '<', overlong
                      EscapeCase{"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},  // cut off
                      EscapeCase{"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}));

TEST(Escape, LongTextsAreCutAtLines) {
  EXPECT_EQ(first_lines("a\nb\n", 100), "a\nb\n");
  EXPECT_EQ(first_lines("aa\nbb\ncc\ndd\n", 6), "aa\nbb\n... 3 lines are left out\n");
  EXPECT_EQ(first_lines("abcdef", 3), "abc\n... 0 lines are left out\n");
}

TEST(Html, HasEveryPart) {
  const std::string page = html_report(sample_report());
  EXPECT_EQ(count(page, "<tr data-status="), 3U);
  EXPECT_EQ(count(page, "<details class='kernel'"), 3U);
  EXPECT_EQ(count(page, "<svg class='scatter'"), 2U);  // the untried kernel has no candidates
  for (const char* part : {"1.50x [1.45, 1.55]", "4.00x", "80 %", "FASTER", "UPCAST:0:8",
                           "signal 11", "define void", "Made anew.", "<b>512</b> REDUCE",
                           "governor performance", "100 GFLOP/s, 20.0 GB/s", "40 s"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Html, TheFastestInWords) {
  const std::string page = html_report(sample_report());
  const size_t list = page.find("The 3 fastest");  // distinct opts with a time
  ASSERT_NE(list, std::string::npos);
  EXPECT_LT(page.find("1.00 us</td><td>confirm", list), page.find("4.00 us</td><td>search", list));
}

TEST(Html, OptsBreakAfterEach) {
  Report r = sample_report();
  r.kernels[0].opts = "UPCAST:0:4;<b>;UNROLL:0:2";
  EXPECT_NE(html_report(r).find("<code>UPCAST:0:4;<wbr>&lt;b&gt;;<wbr>UNROLL:0:2</code>"),
            std::string::npos);
  r.kernels[0].opts = "";
  EXPECT_NE(html_report(r).find("<code>(none)</code>"), std::string::npos);
}

TEST(Html, UserTextStaysText) {
  const std::string page = content(html_report(sample_report()));
  EXPECT_EQ(count(page, "<script"), 0U);
  EXPECT_EQ(count(page, "alert(\"x\")"), 0U);
  EXPECT_GT(count(page, "&lt;/script&gt;&lt;script&gt;alert(&quot;x&quot;)"), 5U);
}

TEST(Html, FetchesNothing) {
  const std::string page = html_report(sample_report());
  EXPECT_EQ(count(page, "http:"), 0U);
  EXPECT_EQ(count(page, "https:"), 0U);
  EXPECT_EQ(count(page, " src="), 0U);
  EXPECT_EQ(count(page, "url("), 0U);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Html, AnEmptyReportIsAPage) {
  EXPECT_NE(html_report(Report()).find("</html>"), std::string::npos);
}

std::vector<Candidate> many(size_t n) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < n; ++i) {
    Candidate c{1,  "UPCAST:0:" + std::to_string(i), "ok", "search",
                "", 1000.0 + double(i * 7919 % n)};
    if (i % 10 == 0) c = {1, c.opts, "compile_error", "search", "no", {}};
    if (i == n - 1) c.stage = "confirm", c.time_ns = 900;
    all.push_back(c);
  }
  return all;
}

TEST(Scatter, FewCandidatesAreMarksOfTheirOwn) {
  auto marks = scatter_marks(many(50), 100);
  ASSERT_EQ(marks.size(), 50U);
  EXPECT_EQ(marks[0].kind, "compile_error");
  EXPECT_EQ(marks[1].label, "#2 search 1.02 us\nUPCAST:0:1");  // 7919 mod 50 = 19
  EXPECT_EQ(marks[49].kind, "confirm");
}

TEST(Scatter, ManyBecomeFewAndNoneIsLost) {
  auto marks = scatter_marks(many(20'000), 500);
  EXPECT_LE(marks.size(), 500U);
  EXPECT_GT(marks.size(), 100U);
  size_t sum = 0, alone = 0;
  for (const Mark& m : marks) {
    sum += m.count;
    alone += m.kind == "confirm" && m.count == 1;
  }
  EXPECT_EQ(sum, 20'000U);
  EXPECT_EQ(alone, 1U);
}

TEST(Scatter, LargePagesStaySmall) {
  Report r = sample_report();
  r.kernels.clear();
  for (int i = 0; i < 300; ++i) {
    KernelFacts k = tuned_kernel();
    k.candidates = many(340);
    k.code.ir = std::string(100'000, 'x') + "\n";
    r.kernels.push_back(k);
  }
  const std::string page = html_report(r);  // 102,000 trials
  EXPECT_LT(page.size(), 20'000'000U);
  EXPECT_EQ(count(page, "<tr data-status="), 300U);
  EXPECT_EQ(count(page, " open>"), 0U);
}

TEST(Scatter, OddTimesDraw) {
  KernelFacts k;
  k.name = "k";
  EXPECT_EQ(scatter_svg(k, 10), "");
  k.candidates = {{1, "", "crashed", "search", "", {}}};
  EXPECT_NE(scatter_svg(k, 10).find("no time"), std::string::npos);
  k.candidates = {{1, "", "ok", "search", "", 5.0}};
  const std::string one = scatter_svg(k, 10);
  EXPECT_EQ(one.find("nan"), std::string::npos);
  EXPECT_EQ(one.find("inf"), std::string::npos);
  k.candidates = {{1, "", "ok", "bench", "", 5.0}, {1, "", "ok", "search", "", 5e9}};
  EXPECT_NE(scatter_svg(k, 10).find("'m confirm'"), std::string::npos);
}

}  // namespace
}  // namespace beamline::reports
