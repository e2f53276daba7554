// db info | check | query
#include <fmt/format.h>

#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "reports/json_rows.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

int info(Context& context, const Arguments&) {
  ordered_json list = ordered_json::array();
  std::string text;
  for (const std::string& path : context.global.databases) {
    db::Info i = db::info(*open_databases({path}));
    ordered_json rows = ordered_json::object();
    text += fmt::format("{}\n  schema {}, {}, journal {}\n", i.path, i.schema_version,
                        reports::bytes_text(static_cast<double>(i.bytes)), i.journal_mode);
    for (const auto& [view, count] : i.rows) {
      rows[view] = count < 0 ? ordered_json() : ordered_json(count);
      text +=
          fmt::format("  {:<14} {}\n", view, count < 0 ? "unreadable" : fmt::format("{}", count));
    }
    for (const std::string& note : i.notes) text += "  note: " + note + "\n";
    list.push_back({{"path", i.path},
                    {"schema_version", i.schema_version},
                    {"bytes", i.bytes},
                    {"journal_mode", i.journal_mode},
                    {"rows", rows},
                    {"notes", i.notes}});
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"databases", list}});
  } else {
    context.print(text);
  }
  return exit_ok;
}

int check(Context& context, const Arguments&) {
  ordered_json findings = ordered_json::array();
  std::string text;
  for (const std::string& path : context.global.databases) {
    auto database = open_databases({path});
    for (const db::Finding& f : db::check(*database)) {
      findings.push_back(
          {{"path", path}, {"check", f.check}, {"where", f.where}, {"message", f.message}});
      text += fmt::format("{}: {}: {}: {}\n", path, f.check, f.where, f.message);
    }
  }
  bool sound = findings.empty();
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"sound", sound}, {"findings", findings}});
  } else {
    context.print(sound ? "ok: no problem found\n" : text);
  }
  return sound ? exit_ok : exit_check_failed;
}

int query(Context& context, const Arguments& arguments) {
  auto database = open_databases(context.global.databases);
  db::Table t = read_table(*database, arguments.positionals()[0]);
  if (context.global.json) {
    ordered_json rows = ordered_json::array();
    for (const auto& cells : t.rows) {
      ordered_json row = ordered_json::array();
      for (const db::Cell& c : cells) row.push_back(reports::json_cell(c));
      rows.push_back(row);
    }
    context.print_json({{"schema", 1}, {"columns", t.columns}, {"rows", rows}});
    return exit_ok;
  }
  std::vector<reports::TextTable::Column> columns;
  for (size_t c = 0; c < t.columns.size(); ++c) {
    bool numbers = !t.rows.empty();
    for (const auto& row : t.rows)
      numbers &=
          !std::holds_alternative<std::string>(row[c]) && !std::holds_alternative<db::Blob>(row[c]);
    columns.push_back({t.columns[c], numbers ? reports::TextTable::Align::Right
                                             : reports::TextTable::Align::Left});
  }
  reports::TextTable table(columns);
  for (const auto& cells : t.rows) {
    std::vector<std::string> row;
    for (const db::Cell& c : cells) row.push_back(reports::cell_text(c));
    table.add(row);
  }
  context.print(table.text());
  return exit_ok;
}

}  // namespace

std::vector<Command> db_commands() {
  return {
      {.name = "db info",
       .arguments = "",
       .summary = "what a database holds",
       .details =
           R"(JSON: {"schema": 1, "databases": [{"path", "schema_version", "bytes", "journal_mode", "rows": {view: count},
"notes"}]})",
       .options = {},
       .run = info},
      {.name = "db check",
       .arguments = "",
       .summary = "is a database sound; exit code 3 if not",
       .details =
           R"(JSON: {"schema": 1, "sound": bool, "findings": [{"path", "check", "where", "message"}]})",
       .options = {},
       .run = check},
      {.name = "db query",
       .arguments = "SQL",
       .min_arguments = 1,
       .max_arguments = 1,
       .summary = "runs one reading SQL statement",
       .details =
           R"(Several --db are a union: the stable views (best_opts, trials, trial_samples, kernels, kernel_uses,
workloads, devices, runs, verdicts, quarantine, key_alias, artifacts) then hold the rows of all files.
JSON: {"schema": 1, "columns": [names], "rows": [[values]]})",
       .options = {},
       .run = query}};
}

}  // namespace beamline::cli
