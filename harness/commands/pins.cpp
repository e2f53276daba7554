// pin KEY | unpin KEY | accept KEY --run R --note T
#include <fmt/format.h>

#include "db/store.h"
#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/cli/run_args.h"
#include "harness/cli/workload_args.h"
#include "harness/commands/commands.h"
#include "reports/json_rows.h"

namespace beamline::cli {
namespace {

std::unique_ptr<db::Store> writable(const Context& context, const char* command) {
  const std::string& path = one_to_write(context.global.databases, command);
  open_databases({path});  // it must be there: nothing is made for a typing error
  return open_store(path);
}

// The one kernel that has rows in `table` and that KEY names: a key, a prefix of one, or a name.
std::string one_key(const db::Database& database, const std::string& name) {
  db::Table t = read_table(
      database, fmt::format("SELECT kernel_key, name FROM kernels WHERE {} OR name = {} ORDER BY 1",
                            has_prefix("kernel_key", name), quoted(name)));
  if (name.empty() || t.rows.empty())
    throw UsageError(fmt::format("no kernel is called '{}'", name));
  if (t.rows.size() == 1) return std::get<std::string>(t.rows[0][0]);
  std::string list;
  for (size_t i = 0; i < t.rows.size() && i < 10; ++i)
    list += fmt::format("\n  {}  {}", std::get<std::string>(t.rows[i][0]).substr(0, 16),
                        reports::cell_text(t.rows[i][1]));
  throw UsageError(fmt::format("'{}' names {} kernels{}", name, t.rows.size(), list));
}

// Rows of the best of a kernel on one device; with --device on that.
std::vector<db::BestRow> bests_of(const db::Store& store, const std::string& key,
                                  const std::string& device) {
  std::vector<db::BestRow> list;
  for (db::BestRow& b : store.all_best())
    if (b.kernel_key == key && (device.empty() || b.device_id.starts_with(device)))
      list.push_back(std::move(b));
  if (list.empty())
    throw UsageError(fmt::format("kernel {} has no stored best{}", key.substr(0, 16),
                                 device.empty() ? "" : " on device '" + device + "'"));
  for (const db::BestRow& b : list)
    if (b.device_id != list[0].device_id)
      throw UsageError(
          fmt::format("kernel {} has a stored best on {} and on {}: say which with --device",
                      key.substr(0, 16), list[0].device_id, b.device_id));
  return list;
}

int set_pin(Context& context, const Arguments& arguments, bool pinned) {
  const char* command = pinned ? "pin" : "unpin";
  auto store = writable(context, command);
  const std::string key = one_key(store->database(), arguments.positionals()[0]);
  std::string device = arguments.text("device");
  if (device == "cpu") device = find_device("cpu").identity.device_id;
  const std::vector<db::BestRow> rows = bests_of(*store, key, device);
  for (const db::BestRow& b : rows) store->set_pinned(b, pinned);
  if (context.global.json) {
    const db::Table t =
        read_table(store->database(),
                   fmt::format("SELECT * FROM best_opts WHERE kernel_key = {} AND device_id = {} "
                               "ORDER BY mode, numerics",
                               quoted(key), quoted(rows[0].device_id)));
    context.print_json({{"schema", 1}, {command, reports::json_rows(t, {"tie_opts"})}});
    return exit_ok;
  }
  for (const db::BestRow& b : rows)
    context.print(fmt::format("{} on {}, {}: {} {}\n", key.substr(0, 16), b.device_id, b.mode,
                              pinned ? "pinned" : "not pinned",
                              b.opts.empty() ? "(none)" : b.opts));
  return exit_ok;
}

int accept(Context& context, const Arguments& arguments) {
  for (const char* option : {"run", "note"})
    if (arguments.text(option).empty())
      throw UsageError(fmt::format("accept: --{} is missing", option));
  auto store = writable(context, "accept");
  const db::Database& database = store->database();
  const std::string key = one_key(database, arguments.positionals()[0]);
  const int64_t run = find_run(database, arguments.text("run"), "--run");
  db::Statement s(database, R"sql(
      SELECT device_id FROM t_trial WHERE run_id = ?1 AND kernel_key = ?2
      UNION SELECT device_id FROM t_verdict WHERE run_id = ?1 AND kernel_key = ?2
      UNION SELECT device_id FROM t_best WHERE run_id = ?1 AND kernel_key = ?2)sql");
  s.bind(1, run).bind(2, key);
  if (!s.step())
    throw UsageError(fmt::format("--run: run {} has nothing of kernel {}", run, key.substr(0, 16)));
  const std::string device = s.text(0);
  store->accept(run, key, device, arguments.text("note"));
  if (context.global.json) {
    const db::Table t =
        read_table(database, fmt::format("SELECT * FROM verdicts WHERE run_id = {} AND "
                                         "kernel_key = {} AND verdict = 'ACCEPTED'",
                                         run, quoted(key)));
    context.print_json({{"schema", 1}, {"accept", reports::json_rows(t)}});
  } else {
    context.print(fmt::format("{} in run {}: accepted\n", key.substr(0, 16), run));
  }
  return exit_ok;
}

}  // namespace

std::vector<Command> pin_commands() {
  const std::string who = "KEY is a key, a unique prefix of one, or a kernel's name.\n";
  const OptionSpec device = {
      .name = "device", .value = "D", .help = "cpu (this machine), a device_id or a prefix of one"};
  return {
      {.name = "accept",
       .arguments = "KEY",
       .min_arguments = 1,
       .max_arguments = 1,
       .summary = "marks what a run found of a kernel as expected",
       .details =
           who +
           R"(Writes a row of verdict ACCEPTED with the note; what was measured stays as it is. A second one replaces the
note.
JSON: {"schema": 1, "accept": [rows of the view verdicts]})",
       .options = {{.name = "run", .value = "RUN", .help = "a number, last, last-N or a label"},
                   {.name = "note", .value = "TEXT", .help = "why it is expected"}},
       .run = accept},
      {.name = "pin",
       .arguments = "KEY",
       .min_arguments = 1,
       .max_arguments = 1,
       .summary = "keeps a kernel's stored best whatever later runs find",
       .details = who + R"(JSON: {"schema": 1, "pin": [rows of the view best_opts]})",
       .options = {device},
       .run = [](Context& c, const Arguments& a) { return set_pin(c, a, true); }},
      {.name = "unpin",
       .arguments = "KEY",
       .min_arguments = 1,
       .max_arguments = 1,
       .summary = "lets later runs replace a kernel's stored best again",
       .details = who + R"(JSON: {"schema": 1, "unpin": [rows of the view best_opts]})",
       .options = {device},
       .run = [](Context& c, const Arguments& a) { return set_pin(c, a, false); }}};
}

}  // namespace beamline::cli
