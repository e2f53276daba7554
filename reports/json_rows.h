// Rows of a query as JSON: one object a row, members named as the columns, in their order.
#pragma once
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "db/query.h"

namespace beamline::reports {

/// NULL is null; a blob is its bytes in lower-case hex. Texts of `json_columns` are JSON and nest
/// as such (text that is no JSON stays text).
nlohmann::ordered_json json_rows(const db::Table& table,
                                 const std::set<std::string>& json_columns = {});
nlohmann::ordered_json json_cell(const db::Cell& cell);
/// As people read it in a table; NULL is "-".
std::string cell_text(const db::Cell& cell);

}  // namespace beamline::reports
