// db backup | prune | merge
#include <fmt/format.h>

#include <filesystem>

#include "db/maintenance.h"
#include "db/merge.h"
#include "db/query.h"
#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "reports/numbers.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

const std::string& only_database(const Context& context, const char* command) {
  if (context.global.databases.size() > 1)
    throw UsageError(fmt::format("{} is of one database: give --db once", command));
  return context.global.databases[0];
}

std::unique_ptr<db::Store> open_existing(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw UsageError(fmt::format("no database at {}", path));
  return open_store(path);
}

std::string size_text(int64_t bytes) { return reports::bytes_text(static_cast<double>(bytes)); }

int backup(Context& context, const Arguments& arguments) {
  const std::string& from = only_database(context, "db backup");
  const std::string& to = arguments.positionals()[0];
  auto database = open_databases({from});
  try {
    db::backup(*database, to);
  } catch (const db::DbError& e) {
    throw UsageError(e.what());
  }
  // A copy that nobody has looked at is none.
  const db::Info info = db::info(*open_databases({to}));
  const auto findings = db::check(*open_databases({to}));
  for (const db::Finding& f : findings)
    context.log.error(fmt::format("{}: {}: {}", to, f.where, f.message));
  if (context.global.json) {
    context.print_json(
        {{"schema", 1},
         {"backup", {{"path", to}, {"bytes", info.bytes}, {"sound", findings.empty()}}}});
  } else {
    context.print(fmt::format("{}  {}\n", to, size_text(info.bytes)));
  }
  return findings.empty() ? exit_ok : exit_check_failed;
}

int prune(Context& context, const Arguments& arguments) {
  const std::string& path = only_database(context, "db prune");
  const int64_t keep = arguments.integer("keep", 20, 0, INT64_MAX);
  const bool dry_run = arguments.has("dry-run");
  auto store = open_existing(path);
  const db::Pruned p = db::prune(store->database(), keep, dry_run);
  if (context.global.json) {
    context.print_json({{"schema", 1},
                        {"prune",
                         {{"dry_run", dry_run},
                          {"keep", keep},
                          {"runs", p.runs},
                          {"trials", p.trials},
                          {"samples", p.samples},
                          {"artifacts", p.artifacts},
                          {"bytes_before", p.bytes_before},
                          {"bytes_after", p.bytes_after}}}});
  } else {
    context.print(fmt::format(
        "{} {} trials of {} runs, {} samples, {} artifacts{}\n",
        dry_run ? "would remove" : "removed", p.trials, p.runs, p.samples, p.artifacts,
        dry_run
            ? ""
            : fmt::format("; {} are {} now", size_text(p.bytes_before), size_text(p.bytes_after))));
  }
  return exit_ok;
}

int merge(Context& context, const Arguments& arguments) {
  const std::string& path = only_database(context, "db merge");
  // All must be readable before the first changes anything.
  for (const std::string& other : arguments.positionals()) open_databases({other});
  auto store = open_existing(path);
  ordered_json rows = ordered_json::array();
  std::string text;
  for (const std::string& other : arguments.positionals()) {
    db::Merged m;
    try {
      m = db::merge(*store, other);
    } catch (const db::DbError& e) {
      throw UsageError(e.what());
    }
    rows.push_back({{"path", other},
                    {"runs", m.runs},
                    {"known_runs", m.known_runs},
                    {"trials", m.trials},
                    {"samples", m.samples},
                    {"kernels", m.kernels},
                    {"workloads", m.workloads},
                    {"devices", m.devices},
                    {"verdicts", m.verdicts},
                    {"best_taken", m.best_taken},
                    {"best_kept", m.best_kept},
                    {"aliases", m.aliases},
                    {"artifacts", m.artifacts},
                    {"quarantined", m.quarantined}});
    text += fmt::format(
        "{}: {} runs taken ({} were here), {} trials, {} samples, {} new kernels; bests: {} taken, "
        "{} kept as here\n",
        other, m.runs, m.known_runs, m.trials, m.samples, m.kernels, m.best_taken, m.best_kept);
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"merge", rows}});
  } else {
    context.print(text);
  }
  return exit_ok;
}

}  // namespace

std::vector<Command> db_care_commands() {
  return {
      {.name = "db backup",
       .arguments = "PATH",
       .min_arguments = 1,
       .max_arguments = 1,
       .summary = "a whole, compact copy as of one moment, while others may write",
       .details =
           R"(PATH must not exist. The copy is checked; exit code 3 if it is not sound.
JSON: {"schema": 1, "backup": {"path", "bytes", "sound"}})",
       .options = {},
       .run = backup},
      {.name = "db prune",
       .arguments = "",
       .summary = "removes the trials of old runs and gives the space back",
       .details =
           R"(Kept in any case: the rows of all runs, what runs in progress wrote, and the confirmations that stored bests
stand on.
JSON: {"schema": 1, "prune": {"dry_run", "keep", "runs", "trials", "samples", "artifacts", "bytes_before",
"bytes_after"}})",
       .options = {{.name = "keep",
                    .value = "N",
                    .help = "newest runs that keep everything; default 20"},
                   {.name = "dry-run", .value = "", .help = "say what would go; change nothing"}},
       .run = prune},
      {.name = "db merge",
       .arguments = "OTHER...",
       .min_arguments = 1,
       .max_arguments = any_number,
       .summary = "takes in what other databases know",
       .details =
           R"(Runs get new numbers; a run that is here already is not taken again, so a second merge changes nothing. Of two
stored bests of a kernel the better measured stays, a pinned one always. OTHER is only read.
JSON: {"schema": 1, "merge": [{"path", "runs", "known_runs", "trials", "samples", "kernels", "workloads", "devices",
"verdicts", "best_taken", "best_kept", "aliases", "artifacts", "quarantined"}]})",
       .options = {},
       .run = merge}};
}

}  // namespace beamline::cli
