// verdict FILE.csv --ref COL --new COL [--by COL] | verdict REF.json NEW.json
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "reports/sample_table.h"
#include "reports/text_table.h"
#include "search/stats/verdict.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;
using reports::SampleTable;

std::string read_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw UsageError(fmt::format("{}: it is a directory", path));
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    throw UsageError(fmt::format("{}: {}", path, std::strerror(errno != 0 ? errno : EIO)));
  return text;
}

SampleTable accepted(std::variant<SampleTable, std::string> read, const std::string& where) {
  if (const auto* why = std::get_if<std::string>(&read)) throw UsageError(where + ": " + *why);
  return std::get<SampleTable>(std::move(read));
}

SampleTable read_two_documents(Context& context, const Arguments& arguments) {
  for (const char* option : {"ref", "new", "by"})
    if (arguments.has(option))
      throw UsageError(
          fmt::format("--{} is for a CSV file; of two files the first is the reference", option));
  const auto& files = arguments.positionals();
  SampleTable table =
      accepted(reports::read_benchmark_json(read_text(files[0]), read_text(files[1]),
                                            arguments.text("time", "real_time")),
               files[0] + ", " + files[1]);
  context.log.warn(
      "the two files were measured one after the other: what changed on the machine in "
      "between looks like a change of the code");
  return table;
}

SampleTable read_csv(const Arguments& arguments) {
  if (arguments.has("time")) throw UsageError("--time is for files of Google Benchmark");
  const std::string& file = arguments.positionals()[0];
  reports::SampleColumns columns{arguments.text("ref"), arguments.text("new"), {}};
  for (const std::string& list : arguments.list("by")) {
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) columns.by.push_back(name);
  }
  for (const auto& [option, value] : {std::pair{"ref", columns.ref}, {"new", columns.new_}})
    if (value.empty()) throw UsageError(fmt::format("verdict: --{} COL is missing", option));
  return accepted(reports::read_samples_csv(read_text(file), columns), file);
}

ordered_json number(double v) { return std::isfinite(v) ? ordered_json(v) : ordered_json(); }

std::string ratio(double v) { return std::isfinite(v) ? fmt::format("{:.4f}", v) : "-"; }

int run(Context& context, const Arguments& arguments) {
  const SampleTable table = arguments.positionals().size() == 2
                                ? read_two_documents(context, arguments)
                                : read_csv(arguments);
  for (const std::string& note : table.notes) context.log.warn(note);
  using Align = reports::TextTable::Align;
  reports::TextTable text({{"group"},
                           {"verdict"},
                           {"ratio", Align::Right},
                           {"interval"},
                           {"sessions", Align::Right},
                           {"reason"}});
  ordered_json groups = ordered_json::array();
  bool slower = false;
  for (const reports::SampleGroup& g : table.groups) {
    const stats::Verdict v = stats::decide(g.log_ratios);
    slower |= v.decision == stats::Decision::Slower;
    groups.push_back({{"group", g.name},
                      {"verdict", stats::decision_name(v.decision)},
                      {"ratio", number(v.ratio)},
                      {"ci_low", number(v.ci_low)},
                      {"ci_high", number(v.ci_high)},
                      {"confidence", v.confidence},
                      {"sessions_used", v.sessions_used},
                      {"sessions_available", v.sessions_available},
                      {"reason", v.reason}});
    text.add({g.name.empty() ? "(all)" : g.name, std::string(stats::decision_name(v.decision)),
              ratio(v.ratio), fmt::format("[{}, {}]", ratio(v.ci_low), ratio(v.ci_high)),
              fmt::format("{} of {}", v.sessions_used, v.sessions_available), v.reason});
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"groups", groups}});
  } else {
    context.print(text.text());
  }
  return slower ? exit_check_failed : exit_ok;
}

}  // namespace

Command verdict_command() {
  return {
      .name = "verdict",
      .arguments = "FILE...",
      .min_arguments = 1,
      .max_arguments = 2,
      .summary = "the decision rule on anybody's interleaved samples; exit code 3 if any is SLOWER",
      .details =
          R"(FILE is CSV: comments (#), a header, an integer column 'session', optionally 'sweep', grouping columns, and
one column of nanoseconds a contestant. Or two JSON files of Google Benchmark, the reference first: their
repetitions are the sessions. Per session the fastest sample of each counts. The rule looks after 5, 10, 20 and
40 sessions; SLOWER and FASTER must repeat on the next 20. The outcome is a pure function of the files.
JSON: {"schema": 1, "groups": [{"group", "verdict": "SAME|SLOWER|FASTER|INCONCLUSIVE", "ratio", "ci_low",
"ci_high", "confidence", "sessions_used", "sessions_available", "reason"}]}; ratio = new / ref; several grouping
columns are joined with ", ".)",
      .options = {{.name = "ref", .value = "COL", .help = "column of the reference"},
                  {.name = "new", .value = "COL", .help = "column of what may have changed"},
                  {.name = "by",
                   .value = "COL",
                   .help = "grouping columns, A or A,B; default all with a value that is no number",
                   .repeatable = true},
                  {.name = "time",
                   .value = "MEMBER",
                   .help = "of Google Benchmark: real_time (default), cpu_time"}},
      .run = run};
}

}  // namespace beamline::cli
