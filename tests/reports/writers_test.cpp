// The documents of a report, against texts of tests/golden. UPDATE_GOLDEN=1 rewrites those.
#include "reports/writers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sample_report.h"

#include "test_paths.h"

namespace beamline::reports {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = BEAMLINE_SOURCE_DIR "/tests/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  const std::string wanted{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, wanted) << path;
}

TEST(Writers, Markdown) { expect_golden("report.md", markdown_report(sample_report())); }
TEST(Writers, Json) { expect_golden("report.json", json_report(sample_report())); }
TEST(Writers, Junit) { expect_golden("report.xml", junit_report(sample_report())); }

TEST(Writers, TwoRunsStandSideBySide) {
  Report r = sample_report();
  r.runs.insert(r.runs.begin(), r.runs[0]);
  r.runs[0].run_id = 5;
  r.kernels[0].earlier_opts = "UPCAST:0:2";
  r.kernels[0].earlier_ns = 1200;
  r.kernels[0].earlier_gain = 1.25;
  EXPECT_NE(markdown_report(r).find("| vs heuristic, run 5 |"), std::string::npos);
  EXPECT_NE(markdown_report(r).find("| 1.25x |"), std::string::npos);
  auto j = nlohmann::json::parse(json_report(r));
  EXPECT_EQ(j["kernels"][0]["earlier"]["opts"], "UPCAST:0:2");
  EXPECT_TRUE(j["kernels"][1]["earlier"]["best_ns"].is_null());
}

TEST(Writers, AnEmptyDatabaseIsAReport) {
  Report r;
  EXPECT_NE(markdown_report(r).find("kernels: none"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json_report(r))["kernels"].size(), 0U);
  EXPECT_NE(junit_report(r).find("tests=\"0\""), std::string::npos);
}

TEST(Report, Summaries) {
  Report r = sample_report();
  EXPECT_DOUBLE_EQ(r.mean_over_heuristic().value(), 1.5);
  EXPECT_DOUBLE_EQ(r.mean_over_unoptimized().value(), 4);
  EXPECT_DOUBLE_EQ(r.weighted_over_heuristic().value(), 1.5);
  r.workloads[1].over_heuristic = 1.0;  // 3 / (2 / 1.5 + 1 / 1)
  EXPECT_NEAR(r.weighted_over_heuristic().value(), 9.0 / 7, 1e-12);
  EXPECT_EQ(r.trial_counts()["crashed"], 2);
  EXPECT_EQ(r.kernel_counts()["untuned"], 1);
  const auto failures = r.kernels[0].failures();
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].status, "wrong_result");  // refusals come last
  EXPECT_FALSE(Report().mean_over_heuristic());
}

TEST(Report, GainText) {
  EXPECT_EQ(gain_text(1.5, 1.45, 1.55), "1.50x [1.45, 1.55]");
  EXPECT_EQ(gain_text(1.0, 1.0, 1.0), "1.00x");  // the heuristic itself
  EXPECT_EQ(gain_text(1.5, {}, {}), "1.50x");
  EXPECT_EQ(gain_text({}, 1.0, 2.0), "-");
}

}  // namespace
}  // namespace beamline::reports
