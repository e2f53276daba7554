// ir simplify and ir rules: the rewrite rules at work, and their list.
#include <fmt/format.h>

#include <cstring>
#include <iostream>

#include "engine/ir/arena.h"
#include "engine/rules/rules.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "harness/commands/simplify_expression.h"
#include "reports/text_table.h"
#include "workloads/diagnostic.h"

namespace beamline::cli {
namespace {

using nlohmann::ordered_json;

using Placed = std::vector<std::pair<std::string, std::string>>;  // expressions, where they stand

const Rule& rule_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Rule* r : relaxed().list()) {
    if (r->name == name) return *r;
    names.emplace_back(r->name);
  }
  throw UsageError(
      fmt::format("--explain: '{}' is no rule{}", name, workloads::did_you_mean(name, names)));
}

// For every part of the expressions that the rule's pattern is about: why it does not fit.
int explain_rule(Context& context, const std::string& name,
                 const std::vector<ExpressionVariable>& variables, const Placed& expressions) {
  const Rule& rule = rule_named(name);
  ordered_json rows = ordered_json::array();
  std::string text;
  for (const auto& [expression, place] : expressions) {
    Arena arena;
    const Arena::Scope scope(arena);
    const auto parsed = parse_expression(variables, expression);
    if (const auto* e = std::get_if<ExpressionError>(&parsed))
      throw UsageError(fmt::format("{}, column {}: {}", place, e->column, e->message));
    for (UOp u : toposort(std::get<ParsedExpression>(parsed).root)) {
      if (!rule.pat.steps[0].ops.has(u.op())) continue;
      const std::string why = explain(rule, u), part = print_expression(u);
      text += fmt::format("{}: {}\n", part, why.empty() ? "it fits" : why);
      rows.push_back({{"expr", part}, {"fits", why.empty()}, {"reason", why}});
    }
  }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"rule", name}, {"parts", rows}});
  } else {
    context.print(text);
  }
  return exit_ok;
}

int simplify_expressions(Context& context, const Arguments& arguments) {
  auto variables = parse_variables(arguments.text("vars"));
  if (const auto* e = std::get_if<ExpressionError>(&variables))
    throw UsageError(fmt::format("--vars, column {}: {}", e->column, e->message));
  // Where an expression stands, for messages: an argument, or a line of stdin.
  Placed expressions;
  for (const std::string& e : arguments.positionals())
    expressions.emplace_back(e, fmt::format("'{}'", e));
  if (expressions.empty()) {
    std::string line;
    for (int n = 1; std::getline(std::cin, line); ++n)
      if (line.find_first_not_of(" \t\r") != std::string::npos)
        expressions.emplace_back(line, fmt::format("line {}", n));
  }
  if (arguments.has("explain"))
    return explain_rule(context, arguments.text("explain"), std::get<0>(variables), expressions);
  ordered_json list = ordered_json::array();
  std::string text;
  for (const auto& [expression, place] : expressions) {
    auto result = simplify_text(std::get<0>(variables), expression);
    if (const auto* e = std::get_if<ExpressionError>(&result))
      throw UsageError(fmt::format("{}, column {}: {}", place, e->column, e->message));
    const SimplifyResult& r = std::get<SimplifyResult>(result);
    text += r.simplified + "\n";
    list.push_back({{"expr", r.expr},
                    {"simplified", r.simplified},
                    {"vmin", r.vmin},
                    {"vmax", r.vmax},
                    {"ops_before", r.ops_before},
                    {"ops_after", r.ops_after},
                    {"rules", r.rules}});
  }
  if (context.global.json) {
    context.print_json(list);
  } else {
    context.print(text);
  }
  return exit_ok;
}

int list_rules(Context& context, const Arguments&) {
  // A rule belongs to the first of the nested tables that has it.
  const std::pair<const char*, const Rules<>*> tables[] = {{"invalid", &invalid_rules()},
                                                           {"symbolic_simple", &symbolic_simple()},
                                                           {"symbolic", &symbolic()},
                                                           {"sym", &sym()},
                                                           {"relaxed", &relaxed()}};
  ordered_json rows = ordered_json::array();
  reports::TextTable table({{"rule"}, {"table"}, {"family"}});
  std::vector<const Rule*> seen;
  for (const auto& [name, rules] : tables)
    for (const Rule* r : rules->list()) {
      if (std::ranges::find(seen, r) != seen.end()) continue;
      seen.push_back(r);
      const char* slash = std::strrchr(r->where.file_name(), '/');
      std::string family = slash ? slash + 1 : r->where.file_name();
      family = family.substr(0, family.find('.'));
      rows.push_back({{"rule", r->name}, {"table", name}, {"family", family}});
      table.add({std::string(r->name), name, family});
    }
  if (context.global.json) {
    context.print_json({{"schema", 1}, {"rules", rows}});
  } else {
    context.print(table.text());
  }
  return exit_ok;
}

}  // namespace

Command ir_simplify_command() {
  return {
      .name = "ir simplify",
      .arguments = "[EXPR...]",
      .min_arguments = 0,
      .max_arguments = any_number,
      .summary = "simplifies integer expressions, from arguments or one a line from stdin",
      .details =
          R"(From loosest to tightest: | ^ &, comparisons (< <= > >= == !=), + -, * // % (round down), unary - !,
calls (min max where(c,x,y)), parentheses, names, integers, true false. Prints one line an expression in the
same grammar. An expression that starts with '-' goes after '--'.
JSON, a bare list: [{"expr", "simplified", "vmin", "vmax", "ops_before", "ops_after", "rules"}]
With --explain: {"schema": 1, "rule", "parts": [{"expr", "fits", "reason"}]}
Bad syntax, an unknown name or a constant division by zero: message with column, exit code 2.)",
      .options = {{.name = "vars",
                   .value = "LIST",
                   .help = "variables with inclusive bounds: \"a=0..7,b=-3..3,p=bool\""},
                  {.name = "explain",
                   .value = "RULE",
                   .help = "why the rule does not fit the expression and its parts"}},
      .run = simplify_expressions};
}

Command ir_rules_command() {
  return {.name = "ir rules",
          .arguments = "",
          .summary = "the rewrite rules, by table and family, in their order",
          .details = R"(JSON: {"schema": 1, "rules": [{"rule", "table", "family"}]})",
          .options = {},
          .run = list_rules};
}

}  // namespace beamline::cli
