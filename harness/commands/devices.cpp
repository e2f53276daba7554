// devices [--probe]
#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "db/store.h"
#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/cli/interrupt.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "harness/device_probe.h"
#include "harness/toolchain.h"
#include "harness/tune_records.h"
#include "reports/json_rows.h"
#include "reports/numbers.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

struct Absent {
  std::string backend, reason;
};
struct Found {
  std::vector<Device> usable;
  std::vector<Absent> absent;
};

Found find_devices() {
  Found f;
  f.usable.push_back(find_device("cpu"));
  if (Device c = find_device("cpu:c"); !ask_toolchain(c.target).name.empty())
    f.usable.push_back(std::move(c));
  else
    f.absent.push_back({"cpu:c", "there is no clang on the PATH"});
  // Backends that users know of and this program was not built with.
  f.absent.push_back({"opencl", "this version of beamline has no OpenCL backend"});
  f.absent.push_back({"cuda", "this version of beamline has no CUDA backend"});
  f.absent.push_back(
      {"emulator",
       "emulated GPUs only show what a kernel computes: ir lower --device emulator:sm_80"});
  return f;
}

// What databases know beyond what can be seen now; none is fine.
ordered_json known_of(const Context& context, const std::string& device_id) {
  ordered_json known = ordered_json::object();
  std::error_code ignored;
  for (const std::string& path : context.global.databases)
    if (std::filesystem::exists(path, ignored)) {
      auto rows = reports::json_rows(read_table(
          *open_databases({path}),
          "SELECT peak_gflops, peak_gbps, first_seen, last_seen FROM devices WHERE device_id = " +
              cli::quoted(device_id)));
      if (!rows.empty()) known = rows[0];
    }
  return known;
}

// Shares of the bound of what is stored already, so that tables have them without a new search.
void fill_bound_shares(db::Store& store, const std::string& device_id, const DevicePeaks& peaks) {
  for (const db::BestRow& b : store.all_best()) {
    if (b.device_id != device_id) continue;
    db::Statement s(store.database(),
                    "SELECT flops, bytes, coalesce(dtypes, '') FROM kernels WHERE kernel_key = ?");
    s.bind(1, b.kernel_key);
    if (!s.step()) continue;
    const auto flops = static_cast<double>(s.integer(0)), bytes = static_cast<double>(s.integer(1));
    store.set_bound_share(b, bound_share(peaks, flops, bytes, s.text(2), b.best_ns));
  }
}

// Measures and stores; nothing when interrupted.
// The devices are one machine under several compilers: one measurement serves all.
std::optional<DevicePeaks> probe(Context& context, const Arguments& arguments,
                                 const std::vector<Device>& devices) {
  // A database that cannot be written is known before minutes are spent.
  const std::unique_ptr<db::Store> store =
      open_store(one_to_write(context.global.databases, "devices --probe"));
  catch_interrupts();
  ProbeSettings settings;
  settings.target = devices[0].target;
  settings.pus = devices[0].pus;
  settings.largest_footprint = arguments.integer("footprint", 256, 1, 1 << 16) << 20;
  settings.progress = [&](const std::string& what) { context.log.live("probe: " + what); };
  settings.stop_requested = interrupted;
  std::optional<DevicePeaks> peaks = probe_peaks(settings);
  context.log.end_live();
  if (!peaks) return {};
  peaks->measured_at = db::utc_now();
  for (const Device& d : devices) {
    nlohmann::json facts = d.identity.facts;
    facts["probe"] = peaks_json(*peaks);
    store->upsert_device({.device_id = d.identity.device_id,
                          .name = d.identity.name,
                          .backend = d.identity.backend,
                          .arch = d.identity.arch,
                          .facts_json = facts.dump(),
                          .peak_gflops = peaks->gflops,
                          .peak_gbps = peaks->memory_gbps()});
    fill_bound_shares(*store, d.identity.device_id, *peaks);
  }
  return peaks;
}

std::string probe_text(const DevicePeaks& p) {
  using Align = reports::TextTable::Align;
  std::string text =
      fmt::format("\npeak: {} GFLOP/s f32 ({} with one thread), {} GFLOP/s f64, {} threads\n\n",
                  reports::digits_text(p.gflops), reports::digits_text(p.gflops_1),
                  reports::digits_text(p.gflops_f64), p.threads);
  reports::TextTable table(
      {{"footprint", Align::Right}, {"read GB/s", Align::Right}, {"triad GB/s", Align::Right}});
  for (const FootprintRate& r : p.rates)
    table.add({fmt::format("{} KiB", static_cast<int64_t>(r.bytes) >> 10),
               reports::digits_text(r.read_gbps), reports::digits_text(r.triad_gbps)});
  return text + table.text();
}

int run(Context& context, const Arguments& arguments) {
  const Found found = find_devices();
  if (arguments.has("footprint") && !arguments.has("probe"))
    throw UsageError("--footprint is of --probe");
  std::optional<DevicePeaks> peaks;
  if (arguments.has("probe")) {
    peaks = probe(context, arguments, found.usable);
    if (!peaks) return exit_interrupted;
  }
  ordered_json missing = ordered_json::array(), rows = ordered_json::array();
  reports::TextTable table({{"device"}, {"device_id"}, {"name"}, {"threads"}, {"arch"}});
  for (const Absent& a : found.absent)
    missing.push_back({{"backend", a.backend}, {"reason", a.reason}});
  for (const Device& d : found.usable) {
    const ordered_json known = known_of(context, d.identity.device_id);
    ordered_json row = {{"device_id", d.identity.device_id},
                        {"name", d.identity.name},
                        {"backend", d.identity.backend},
                        {"arch", d.identity.arch},
                        {"facts", d.identity.facts}};
    for (const char* name : {"peak_gflops", "peak_gbps", "first_seen", "last_seen"})
      row[name] = known.contains(name) ? known[name] : ordered_json();
    if (peaks) row["probe"] = peaks_json(*peaks);
    rows.push_back(std::move(row));
    table.add({d.identity.backend, d.identity.device_id, d.identity.name,
               fmt::format("{}", d.target.threads), d.identity.arch});
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"devices", rows}, {"absent", missing}});
    return exit_ok;
  }
  context.print(table.text());
  for (const Absent& a : found.absent)
    context.print(fmt::format("absent: {}: {}\n", a.backend, a.reason));
  if (peaks) context.print(probe_text(*peaks));
  return exit_ok;
}

}  // namespace

Command devices_command() {
  return {
      .name = "devices",
      .arguments = "",
      .summary = "usable devices with their identity, and why others are absent",
      .details =
          R"(With --probe the device's peaks are measured and stored: multiply-adds in registers, and reading (sum) and
triad (a = b + s*c) over footprints from 16 KiB. Tables then show each kernel's share of its bound,
max(flops / peak, bytes / bandwidth at that footprint). Other load makes peaks too low: probe a quiet machine.
JSON: {"schema": 1, "devices": [{"device_id", "name", "backend", "arch", "facts", "peak_gflops", "peak_gbps",
"first_seen", "last_seen"}], "absent": [{"backend", "reason"}]}; the last four are what the database knows.
With --probe a device has "probe" too: {"measured_at", "threads", "gflops", "gflops_f64", "gflops_1",
"bandwidth": [{"bytes", "read_gbps", "triad_gbps"}]})",
      .options = {{.name = "probe", .value = "", .help = "measure peak FLOP/s and bandwidth"},
                  {.name = "footprint",
                   .value = "MIB",
                   .help = "largest footprint of --probe; default 256"}},
      .run = run};
}

}  // namespace beamline::cli
