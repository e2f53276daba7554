#include "reports/json_rows.h"

#include <gtest/gtest.h>

namespace beamline::reports {
namespace {

TEST(JsonRows, NamesOrderAndTypes) {
  db::Table t{{"b", "a", "c", "d"},
              {{int64_t{1}, 2.5, std::string("x"), std::monostate{}},
               {int64_t{-7}, 0.0, std::string("[1]"), db::Blob{"\x01\xff"}}}};
  EXPECT_EQ(json_rows(t).dump(),
            R"([{"b":1,"a":2.5,"c":"x","d":null},{"b":-7,"a":0.0,"c":"[1]","d":"01ff"}])");
}

TEST(JsonRows, JsonColumnsNest) {
  db::Table t{{"shape"}, {{std::string("[2,3]")}, {std::string("no json")}}};
  EXPECT_EQ(json_rows(t, {"shape"}).dump(), R"([{"shape":[2,3]},{"shape":"no json"}])");
}

TEST(JsonRows, CellsForPeople) {
  EXPECT_EQ(cell_text(std::monostate{}), "-");
  EXPECT_EQ(cell_text(0.1), "0.1");
  EXPECT_EQ(cell_text(int64_t{42}), "42");
}

}  // namespace
}  // namespace beamline::reports
