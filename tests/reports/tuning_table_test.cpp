#include "reports/tuning_table.h"

#include <gtest/gtest.h>

#include "reports/text_table.h"

namespace beamline::reports {
namespace {

TEST(TextTable, AlignsAndTrims) {
  TextTable t({{"name"}, {"n", TextTable::Align::Right}, {"text"}});
  t.add({"a", "1", "x"});
  t.add({"longer", "100"});
  EXPECT_EQ(t.text(),
            "name      n  text\n"
            "a         1  x\n"
            "longer  100\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable t({{"a"}, {"b"}});
  t.add({"\xC3\xA4\xC3\xA4", "x"});
  t.add({"aa", "x"});
  EXPECT_EQ(t.text(), "a   b\n\xC3\xA4\xC3\xA4  x\naa  x\n");
}

TEST(TuningTable, RowsAndNotes) {
  TuningRow good{
      .kernel = "r_512", .workload = "matmul", .status = "tuned", .opts = "UPCAST:0:4", .note = {}};
  good.best_ns = 2e6;
  good.heuristic_ns = 3e6;
  good.unoptimized_ns = 4e7;
  good.gflops = 134.2;
  good.gbps = 1.57;
  TuningRow bad{.kernel = "e_7",
                .workload = "w",
                .status = "failed",
                .opts = {},
                .note = "no schedule is right"};
  std::string text = tuning_table({good, bad});
  EXPECT_NE(text.find("r_512   matmul    tuned   2.00 ms      134  1.57         1.50x          "
                      "20.00x  UPCAST:0:4"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("e_7: no schedule is right"), std::string::npos);
  EXPECT_EQ(text.find("of bound"), std::string::npos);
  good.bound_share = 0.87;
  EXPECT_NE(tuning_table({good}).find("87 %"), std::string::npos);
}

}  // namespace
}  // namespace beamline::reports
