// db migrate | explain-key: what needs the engine and a database together.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "db/store.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rangeify/prepare.h"
#include "harness/cli/databases.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "harness/version.h"
#include "reports/text_table.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

struct Prepared {
  std::string key, ast;
};
// Today's key of a stored AST; nothing where this engine cannot read it.
std::optional<Prepared> prepare_today(const std::string& ast_text) {
  Arena arena;
  Arena::Scope scope(arena);
  auto parsed = parse_uops(ast_text);
  const UOp* root = std::get_if<UOp>(&parsed);
  if (root == nullptr || root->op() != Op::SINK) return {};
  const UOp ast = prepare(*root).ast;
  return Prepared{kernel_key(ast), print_uops(ast)};
}

struct Renamed {
  std::string old_key, new_key, name;
};
struct Migration {
  int64_t from_schema = 0, to_schema = 0, kernels = 0;
  std::vector<Renamed> renamed;
  std::vector<std::string> unreadable;  // keys
};

int64_t schema_of(const db::Database& database) {
  db::Statement s(database, "PRAGMA user_version");
  return s.step() ? s.integer(0) : 0;
}

// New kernels and aliases of what has another key under this engine, in one transaction.
void rename_keys(db::Store& store, bool dry_run, Migration& m) {
  const db::Database& database = store.database();
  std::vector<db::KernelRow> rows;
  db::Statement s(database, R"sql(
      SELECT kernel_key, name, ast, coalesce(shape, ''), coalesce(dtypes, ''), key_version,
        coalesce(flops, 0), coalesce(bytes, 0)
      FROM kernels WHERE kernel_key NOT IN (SELECT old_key FROM key_alias) ORDER BY kernel_key)sql");
  while (s.step())
    rows.push_back({s.text(0), s.text(1), s.text(2), s.text(3), s.text(4), s.text(5), s.integer(6),
                    s.integer(7)});
  db::Transaction t(database);
  for (db::KernelRow& k : rows) {
    ++m.kernels;
    const auto today = prepare_today(k.ast);
    if (!today) {
      m.unreadable.push_back(k.kernel_key);
      continue;
    }
    if (today->key == k.kernel_key) continue;
    m.renamed.push_back({k.kernel_key, today->key, k.name});
    if (dry_run) continue;
    const std::string old_key = k.kernel_key;
    k.kernel_key = today->key;
    k.ast = today->ast;
    store.upsert_kernel(k);
    store.add_key_alias(old_key, today->key, engine_version);
  }
  if (!dry_run) t.commit();
}

int migrate(Context& context, const Arguments& arguments) {
  const std::string& path = one_to_write(context.global.databases, "db migrate");
  const bool dry_run = arguments.has("dry-run");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw UsageError(fmt::format("no database at {}", path));
  Migration m;
  try {
    m.from_schema = schema_of(db::Database(path, db::Access::ReadOnly));
    db::Store store(path, dry_run ? db::Access::ReadOnly : db::Access::ReadWrite);
    m.to_schema = schema_of(store.database());
    rename_keys(store, dry_run, m);
  } catch (const db::DbError& e) {
    throw UsageError(e.what());
  }
  if (context.global.json) {
    ordered_json renamed = ordered_json::array();
    for (const Renamed& r : m.renamed)
      renamed.push_back({{"old_key", r.old_key}, {"new_key", r.new_key}, {"name", r.name}});
    context.print_json({{"schema", 1},
                        {"migrate",
                         {{"dry_run", dry_run},
                          {"from_schema", m.from_schema},
                          {"to_schema", m.to_schema},
                          {"engine_version", engine_version},
                          {"kernels", m.kernels},
                          {"renamed", renamed},
                          {"unreadable", m.unreadable}}}});
    return exit_ok;
  }
  context.print(fmt::format(
      "schema {} -> {}; {} kernels: {} have another key under engine {}{}, {} cannot be read\n",
      m.from_schema, m.to_schema, m.kernels, m.renamed.size(), engine_version,
      dry_run ? " (nothing was written)" : "", m.unreadable.size()));
  for (const Renamed& r : m.renamed)
    context.print(
        fmt::format("  {} -> {}  {}\n", r.old_key.substr(0, 16), r.new_key.substr(0, 16), r.name));
  return exit_ok;
}

struct Known {
  std::string key, name, ast, shape, dtypes;
  int64_t flops = 0, bytes = 0;
};

Known find_kernel(const db::Database& database, const std::string& prefix) {
  db::Statement s(
      database,
      fmt::format("SELECT kernel_key, name, ast, coalesce(shape, ''), coalesce(dtypes, ''), "
                  "coalesce(flops, 0), coalesce(bytes, 0) FROM kernels WHERE {} "
                  "GROUP BY kernel_key ORDER BY kernel_key LIMIT 2",
                  has_prefix("kernel_key", prefix)));
  if (prefix.empty() || !s.step())
    throw UsageError(fmt::format("no kernel has a key that starts with '{}'", prefix));
  Known k{s.text(0), s.text(1), s.text(2), s.text(3), s.text(4), s.integer(5), s.integer(6)};
  if (s.step())
    throw UsageError(
        fmt::format("'{}' is the start of several keys: {}, {}", prefix, k.key, s.text(0)));
  return k;
}

// The newest key that aliases lead to.
std::string newest_key(const db::Database& database, std::string key) {
  for (int step = 0; step < 16; ++step) {
    db::Statement s(database, "SELECT new_key FROM key_alias WHERE old_key = ?");
    s.bind(1, key);
    if (!s.step()) break;
    key = s.text(0);
  }
  return key;
}

// What nodes an AST has, without the numbers of nodes: "RANGE:weakint[size...]" and how often.
std::map<std::string, int> node_counts(const std::string& ast) {
  std::map<std::string, int> counts;
  for (size_t at = 0; at < ast.size();) {
    const size_t end = std::min(ast.find('\n', at), ast.size());
    std::string line = ast.substr(at, end - at);
    at = end + 1;
    if (const size_t equals = line.find('='); line.starts_with('%') && equals != std::string::npos)
      line = line.substr(equals + 1);
    const size_t open = line.find('('), close = line.find(')', open);
    if (open != std::string::npos && close != std::string::npos) line.erase(open, close - open + 1);
    if (!line.empty()) ++counts[line];
  }
  return counts;
}

struct Difference {
  std::string what, a, b;
};

std::vector<Difference> differences(const Known& a, const Known& b) {
  std::vector<Difference> list;
  auto compare = [&](const char* what, const std::string& x, const std::string& y) {
    if (x != y) list.push_back({what, x, y});
  };
  compare("shape", a.shape, b.shape);
  compare("dtypes", a.dtypes, b.dtypes);
  compare("flops", fmt::format("{}", a.flops), fmt::format("{}", b.flops));
  compare("bytes", fmt::format("{}", a.bytes), fmt::format("{}", b.bytes));
  const auto x = node_counts(a.ast), y = node_counts(b.ast);
  std::map<std::string, std::pair<int, int>> all;
  for (const auto& [node, n] : x) all[node].first = n;
  for (const auto& [node, n] : y) all[node].second = n;
  for (const auto& [node, n] : all)
    if (n.first != n.second)
      list.push_back({"nodes " + node, fmt::format("{}", n.first), fmt::format("{}", n.second)});
  if (list.empty() && a.key != b.key)
    list.push_back({"ast", "the same nodes", "in another arrangement"});
  return list;
}

ordered_json kernel_json(const db::Database& database, const Known& k) {
  const auto today = prepare_today(k.ast);
  return {{"kernel_key", k.key},
          {"name", k.name},
          {"shape", ordered_json::parse(k.shape.empty() ? "null" : k.shape, nullptr, false)},
          {"dtypes", k.dtypes},
          {"newest_key", newest_key(database, k.key)},
          {"today_key", today ? ordered_json(today->key) : ordered_json()}};
}

int explain_key(Context& context, const Arguments& arguments) {
  auto database = open_databases(context.global.databases);
  const Known a = find_kernel(*database, arguments.positionals()[0]);
  const Known b = find_kernel(*database, arguments.positionals()[1]);
  const std::vector<Difference> list = differences(a, b);
  const bool alias = newest_key(*database, a.key) == newest_key(*database, b.key);
  const std::string verdict =
      a.key == b.key ? "the same kernel"
      : alias        ? "the same kernel under another engine: an alias connects the keys"
                     : "different kernels";
  if (context.global.json) {
    ordered_json rows = ordered_json::array();
    for (const Difference& d : list) rows.push_back({{"what", d.what}, {"a", d.a}, {"b", d.b}});
    context.print_json({{"schema", 1},
                        {"explain_key",
                         {{"a", kernel_json(*database, a)},
                          {"b", kernel_json(*database, b)},
                          {"verdict", verdict},
                          {"alias", alias},
                          {"differences", rows}}}});
    return exit_ok;
  }
  std::string text =
      fmt::format("a  {}  {}\nb  {}  {}\n{}\n", a.key, a.name, b.key, b.name, verdict);
  for (const Known* k : {&a, &b}) {
    const auto today = prepare_today(k->ast);
    if (!today)
      text += fmt::format("{}: this engine cannot read its AST\n", k->key.substr(0, 16));
    else if (today->key != k->key)
      text += fmt::format("{}: today's engine gives it the key {}; run 'beamline db migrate'\n",
                          k->key.substr(0, 16), today->key);
  }
  if (!list.empty()) {
    reports::TextTable table({{"difference"}, {"a"}, {"b"}});
    for (const Difference& d : list) table.add({d.what, d.a, d.b});
    text += "\n" + table.text();
  }
  context.print(text);
  return exit_ok;
}

}  // namespace

std::vector<Command> db_key_commands() {
  return {
      {.name = "db migrate",
       .arguments = "",
       .summary = "brings schema and kernel keys to this version",
       .details =
           R"(Each stored AST is prepared by this engine; where that gives another key, the kernel is stored under it too and
an alias connects the two, which lookups follow. Nothing that was tuned is lost.
JSON: {"schema": 1, "migrate": {"dry_run", "from_schema", "to_schema", "engine_version", "kernels", "renamed":
[{"old_key", "new_key", "name"}], "unreadable": [keys]}})",
       .options = {{.name = "dry-run",
                    .value = "",
                    .help = "say what would change; change nothing"}},
       .run = migrate},
      {.name = "db explain-key",
       .arguments = "A B",
       .min_arguments = 2,
       .max_arguments = 2,
       .summary = "why two kernels have different keys",
       .details =
           R"(A and B are keys or unique prefixes. Compares shape, types, work and the nodes of the ASTs, follows aliases, and
says whether today's engine still gives these keys.
JSON: {"schema": 1, "explain_key": {"a": {"kernel_key", "name", "shape", "dtypes", "newest_key", "today_key"}, "b",
"verdict", "alias", "differences": [{"what", "a", "b"}]}})",
       .options = {},
       .run = explain_key}};
}

}  // namespace beamline::cli
