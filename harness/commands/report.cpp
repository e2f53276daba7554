// report html | markdown | json | junit
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/cli/run_args.h"
#include "harness/commands/commands.h"
#include "harness/commands/report_data.h"
#include "reports/html.h"
#include "reports/writers.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

struct Format {
  const char* name;
  const char* summary;
  std::string (*write)(const reports::Report&);
  bool code;  // shows sources
};
// clang-format off
const Format formats[] = {
    {"html",     "a self-contained page: table, candidates, evidence, sources", [](const reports::Report& r) { return reports::html_report(r); }, true},
    {"markdown", "the tables as Markdown",                                      reports::markdown_report,                                         false},
    {"json",     "everything as one JSON document",                             reports::json_report,                                             false},
    {"junit",    "one test case a kernel, for CI systems",                      reports::junit_report,                                            false},
};
// clang-format on

std::vector<int64_t> read_runs(const db::Database& database, const Arguments& arguments) {
  if (!arguments.has("runs")) return {find_run(database, arguments.text("run", "last"), "--run")};
  if (arguments.has("run")) throw UsageError("--run and --runs exclude each other");
  const std::string text = arguments.text("runs");
  const size_t comma = text.find(',');
  if (comma == std::string::npos || text.find(',', comma + 1) != std::string::npos)
    throw UsageError(fmt::format("--runs: '{}' is not two runs such as 3,5 or last-1,last", text));
  std::vector<int64_t> runs = {find_run(database, text.substr(0, comma), "--runs"),
                               find_run(database, text.substr(comma + 1), "--runs")};
  if (runs[0] == runs[1]) throw UsageError(fmt::format("--runs: both are run {}", runs[0]));
  return runs;
}

void write_file(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    throw UsageError(fmt::format("--output: cannot write {}: {}", path, std::strerror(errno)));
}

int run(Context& context, const Arguments& arguments, const Format& format) {
  if (context.global.databases.size() > 1)
    throw UsageError("a report is of one database, runs are numbered in it: give --db once");
  const std::string path = arguments.text("output");
  if (path.empty())
    throw UsageError(fmt::format("report {}: -o PATH is missing (- is stdout)", format.name));
  if (path == "-" && context.global.json && std::string(format.name) != "json")
    throw UsageError(fmt::format("--json and -o -: stdout cannot take both; name a file for the {}",
                                 format.name));
  auto database = open_databases(context.global.databases);
  const ReportRequest request{read_runs(*database, arguments),
                              format.code && !arguments.has("no-code")};
  context.log.live("report: reading");
  const reports::Report report = gather_report(*database, request);
  context.log.end_live();
  const std::string text = format.write(report);
  if (path == "-") {
    context.print(text);
    return exit_ok;
  }
  write_file(path, text);
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"report",
                         {{"format", format.name},
                          {"path", path},
                          {"run", request.runs.back()},
                          {"kernels", report.kernels.size()},
                          {"bytes", text.size()}}}});
  } else {
    context.print(path + "\n");
  }
  return exit_ok;
}

}  // namespace

std::vector<Command> report_commands() {
  std::vector<Command> list;
  for (const Format& f : formats) {
    Command c{
        .name = std::string("report ") + f.name,
        .arguments = "",
        .summary = f.summary,
        .details =
            R"(Of the last run unless --run names another (a number, last, last-N or a label): all kernels that the
database has of the run's device. With --runs A,B what A found stands beside B. Prints the path.
JSON: {"schema": 1, "report": {"format", "path", "run", "kernels", "bytes"}})",
        .options = {output_option("where the document goes"),
                    {.name = "run", .value = "RUN", .help = "the run; default last"},
                    {.name = "runs", .value = "A,B", .help = "two runs, the earlier first"}},
        .run = [&f](Context& context, const Arguments& a) { return run(context, a, f); }};
    if (std::string(f.name) == "json")
      c.details +=
          R"(
The document itself: {"schema": 1, "generated_at", "device": {...}, "runs": [...], "kernels": [{"key", "name",
"workloads", "status", "opts", "best_ns", "heuristic_ns", "unoptimized_ns", "gain", "ci_low", "ci_high",
"sessions", "ties", "gflops", "gbps", "bound_share", "verified", "pinned", "stale", "stale_reason", "run",
"trials": {status: count}, "failures": [...], "evidence": [...], "candidates": [...]}], "workloads": [...]})";
    if (f.code)
      c.options.push_back({.name = "no-code", .value = "", .help = "leave axes and sources out"});
    list.push_back(std::move(c));
  }
  return list;
}

}  // namespace beamline::cli
