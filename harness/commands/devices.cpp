// devices
#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/databases.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "reports/json_rows.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

struct Absent {
  const char* backend;
  const char* reason;
};
// Backends that users know of and this program was not built with.
constexpr Absent absent[] = {
    {"cpu:c", "this version of beamline has no C backend"},
    {"opencl", "this version of beamline has no OpenCL backend"},
    {"cuda", "this version of beamline has no CUDA backend"},
    {"emulator", "this version of beamline has no emulator"},
};

int run(Context& context, const Arguments&) {
  Device d = find_device("cpu");
  // What databases know beyond what can be seen now; none is fine.
  ordered_json known = ordered_json::object();
  std::error_code ignored;
  for (const std::string& path : context.global.databases)
    if (std::filesystem::exists(path, ignored)) {
      auto rows = reports::json_rows(read_table(
          *open_databases({path}),
          "SELECT peak_gflops, peak_gbps, first_seen, last_seen FROM devices WHERE device_id = " +
              cli::quoted(d.identity.device_id)));
      if (!rows.empty()) known = rows[0];
    }
  auto remembered = [&](const char* name) {
    return known.contains(name) ? known[name] : ordered_json();
  };
  ordered_json missing = ordered_json::array();
  for (const Absent& a : absent) missing.push_back({{"backend", a.backend}, {"reason", a.reason}});
  if (context.global.json) {
    ordered_json row = {{"device_id", d.identity.device_id},
                        {"name", d.identity.name},
                        {"backend", d.identity.backend},
                        {"arch", d.identity.arch},
                        {"facts", d.identity.facts}};
    for (const char* name : {"peak_gflops", "peak_gbps", "first_seen", "last_seen"})
      row[name] = remembered(name);
    context.print_json({{"schema", 1}, {"devices", {row}}, {"absent", missing}});
    return 0;
  }
  reports::TextTable table({{"device"}, {"device_id"}, {"name"}, {"threads"}, {"arch"}});
  table.add({d.identity.backend, d.identity.device_id, d.identity.name,
             fmt::format("{}", d.target.threads), d.identity.arch});
  context.print(table.text());
  for (const Absent& a : absent)
    context.print(fmt::format("absent: {}: {}\n", a.backend, a.reason));
  return 0;
}

}  // namespace

Command devices_command() {
  return {
      .name = "devices",
      .arguments = "",
      .summary = "usable devices with their identity, and why others are absent",
      .details =
          R"(JSON: {"schema": 1, "devices": [{"device_id", "name", "backend", "arch", "facts", "peak_gflops", "peak_gbps",
"first_seen", "last_seen"}], "absent": [{"backend", "reason"}]}; the last four are what the database knows)",
      .options = {},
      .run = run};
}

}  // namespace beamline::cli
