// best
#include <fmt/format.h>

#include "harness/cli/databases.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/version.h"
#include "reports/json_rows.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

// A device is named by its id, a unique prefix of it, or its backend ("cpu": all such).
std::string device_condition(const std::string& device) {
  return fmt::format(
      "({} OR device_id IN (SELECT device_id FROM devices WHERE backend = {} OR name = {}))",
      has_prefix("device_id", device), quoted(device), quoted(device));
}

std::string kernel_condition(const std::string& kernel) {
  return fmt::format("({} OR kernel_name = {})", has_prefix("kernel_key", kernel), quoted(kernel));
}

// A workload is named by its file, an instance, or the name before the instance's params.
std::string workload_condition(const std::string& workload) {
  return fmt::format(
      "kernel_key IN (SELECT u.kernel_key FROM kernel_uses u JOIN workloads w ON w.workload_id = "
      "u.workload_id "
      "WHERE w.name = {0} OR w.file = {0} OR w.workload_id = {0} OR {1})",
      quoted(workload), has_prefix("w.name", workload + "/"));
}

int run(Context& context, const Arguments& arguments) {
  std::string where;
  auto add = [&](const std::string& condition) {
    where += (where.empty() ? " WHERE " : " AND ") + condition;
  };
  if (arguments.has("kernel")) add(kernel_condition(arguments.text("kernel")));
  if (arguments.has("workload")) add(workload_condition(arguments.text("workload")));
  if (arguments.has("device")) add(device_condition(arguments.text("device")));
  auto database = open_databases(context.global.databases);
  db::Table rows =
      read_table(*database, "SELECT * FROM best_opts" + where +
                                " ORDER BY kernel_name, kernel_key, device_id, mode, numerics");
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"best", reports::json_rows(rows, {"tie_opts"})}});
    return 0;
  }
  if (rows.rows.empty()) {
    context.log.info("no stored best matches");
    return 0;
  }
  using Align = reports::TextTable::Align;
  reports::TextTable table({{"key"},
                            {"kernel"},
                            {"device"},
                            {"time", Align::Right},
                            {"GFLOP/s", Align::Right},
                            {"GB/s", Align::Right},
                            {"gain"},
                            {"vs unoptimised", Align::Right},
                            {"run", Align::Right},
                            {"state"},
                            {"opts"}});
  auto all = reports::json_rows(rows);
  for (const auto& r : all) {
    auto number = [&](const char* name) {
      return r[name].is_number() ? std::optional(r[name].get<double>()) : std::nullopt;
    };
    auto words = [&](const char* name) {
      return r[name].is_string() ? r[name].get<std::string>() : "";
    };
    std::string gain = reports::ratio_text(number("gain"));
    if (number("ci_low") && number("ci_high"))
      gain += fmt::format(" [{:.3f}, {:.3f}] {} sessions", *number("ci_low"), *number("ci_high"),
                          r["sessions"].get<int64_t>());
    auto best = number("best_ns"), plain = number("unoptimized_ns");
    std::string state = r["stale"] == 1    ? "stale: " + words("stale_reason")
                        : r["pinned"] == 1 ? "pinned"
                        : words("engine_version") != engine_version ? "stale: another engine"
                                                                    : "ok";
    std::string opts = words("opts");
    table.add({words("kernel_key").substr(0, 12), words("kernel_name"), words("device_id"),
               reports::time_text(best), reports::digits_text(number("gflops")),
               reports::digits_text(number("gbps")), gain,
               reports::ratio_text(best && plain ? std::optional(*plain / *best) : std::nullopt),
               fmt::format("{}", r["run_id"].get<int64_t>()), state,
               opts.empty() ? "(none)" : opts});
  }
  context.print(table.text());
  return 0;
}

}  // namespace

Command best_command() {
  return {
      .name = "best",
      .arguments = "",
      .summary = "stored best opts and their evidence",
      .details =
          R"("gain" is the speed-up over the heuristic with its 95 % interval, from sessions that did not choose the winner.
JSON: {"schema": 1, "best": [rows of the view best_opts]})",
      .options = {{.name = "kernel",
                   .value = "KEY",
                   .help = "a key, a prefix of one, or a kernel's name"},
                  {.name = "workload",
                   .value = "W",
                   .help = "a workload, one of its instances, or a file"},
                  device_option()},
      .run = run};
}

}  // namespace beamline::cli
