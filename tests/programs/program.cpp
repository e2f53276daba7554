#include "tests/programs/program.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/ir/arena.h"

namespace beamline::fuzz {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::set<std::string> names_in(const std::string& expression) {
  std::set<std::string> out;
  for (size_t i = 0; i < expression.size();) {
    if (!is_word(expression[i])) {
      i++;
      continue;
    }
    const size_t start = i;
    while (i < expression.size() && is_word(expression[i])) i++;
    out.insert(expression.substr(start, i - start));
  }
  return out;
}

}  // namespace

std::string Program::text() const {
  std::string s;
  for (const Statement& st : statements) s += fmt::format("{} = {}\n", st.name, st.expression);
  return s + fmt::format("return {}\n", fmt::join(results, ", "));
}

std::string Program::header() const {
  std::string s;
  for (const Input& in : inputs) {
    s += fmt::format("# {}: {}[{}] =", in.name, dtype_name(in.value.dtype),
                     fmt::join(in.value.shape, ", "));
    for (size_t i = 0; i < std::min<size_t>(in.value.size(), 40); i++)
      s += fmt::format(" {:g}", in.value.number(i));
    s += in.value.size() > 40 ? " ...\n" : "\n";
  }
  return s;
}

Graph build(const Program& p) {
  workloads::Instance in;
  in.file = "random", in.workload = in.name = "random";
  for (const Input& i : p.inputs) {
    workloads::InputSpec spec;
    spec.name = i.name, spec.dtype = i.value.dtype, spec.shape = i.value.shape;
    spec.constant = i.name.back() % 2 == 1;  // weights
    in.inputs.push_back(spec);
  }
  auto parsed = workloads::parse_program(workloads::SourceText(p.text()));
  if (!parsed.errors.empty()) return {{}, "parser: " + parsed.errors[0].message};
  in.program = std::make_shared<const workloads::Program>(std::move(parsed.program));
  auto built = workloads::build(in);
  if (const auto* errors = std::get_if<std::vector<workloads::WorkloadError>>(&built))
    return {{}, workloads::to_string(errors->at(0))};
  return {std::get<workloads::TensorGraph>(built), ""};
}

Program without_dead_code(const Program& p) {
  std::set<std::string> needed(p.results.begin(), p.results.end());
  Program out;
  out.results = p.results;
  for (size_t i = p.statements.size(); i-- > 0;) {
    const auto targets = names_in(p.statements[i].name);
    if (std::ranges::none_of(targets, [&](const std::string& n) { return needed.contains(n); }))
      continue;
    out.statements.insert(out.statements.begin(), p.statements[i]);
    needed.merge(names_in(p.statements[i].expression));
  }
  for (const Input& in : p.inputs)
    if (needed.contains(in.name)) out.inputs.push_back(in);
  return out;
}

std::vector<Program> smaller_programs(const Program& p) {
  std::vector<Program> out;
  const auto add = [&](Program q) { out.push_back(without_dead_code(q)); };
  if (p.results.size() > 1)
    for (const std::string& r : p.results) {
      Program q = p;
      q.results = {r};
      add(q);
    }
  for (const Statement& s : p.statements) {  // an earlier value as the result
    Program q = p;
    q.results = {*names_in(s.name).begin()};
    if (q.results != p.results) add(q);
  }
  // A statement's value as an input.
  std::vector<TensorValue> inputs;
  for (const Input& i : p.inputs) inputs.push_back(i.value);
  for (size_t i = 0; i + 1 < p.statements.size(); i++) {
    if (names_in(p.statements[i].name).size() > 1) continue;
    Program prefix = p;
    prefix.statements.resize(i + 1);
    prefix.results = {p.statements[i].name};
    Arena arena;
    const Arena::Scope scope(arena);
    const Graph g = build(prefix);
    if (!g.error.empty()) continue;
    Program q = p;
    q.inputs.push_back({p.statements[i].name, evaluate_tensors(g.graph.sink, inputs)[0]});
    q.statements.erase(q.statements.begin() + static_cast<std::ptrdiff_t>(i));
    add(q);
  }
  return out;
}

}  // namespace beamline::fuzz
