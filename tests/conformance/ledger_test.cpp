// ledger.tsv against the code and the tests: every value of an enum, rule, pass, view and command
// of the code has a row, every done row is in the code and names a test that exists, and what is
// open may only become less.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "db/schema.h"
#include "engine/ir/tensor_core.h"
#include "engine/lower/lower.h"
#include "engine/opt/opt.h"
#include "engine/rules/rules.h"
#include "harness/commands/commands.h"
#include "search/outcome.h"

#include "test_paths.h"

namespace beamline {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Rows that were open when this was last lowered. Lower it whenever the test says so.
constexpr size_t most_open = 13;

const fs::path root = BEAMLINE_SOURCE_DIR;
const fs::path ledger_file = root / "tests/conformance/ledger.tsv";

struct Row {
  int line = 0;
  std::string kind, name, state, test, note;
  bool done() const { return state == "done"; }
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::stringstream s(line);
  for (std::string field; std::getline(s, field, '\t');) out.push_back(field);
  return out;
}
std::vector<Row> read_rows(std::istream& in) {
  std::vector<Row> rows;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> f = fields_of(line);
    if (f.size() < 4 || f.size() > 5) {
      ADD_FAILURE() << "line " << number << ": expected 4 or 5 columns, found " << f.size();
      continue;
    }
    f.resize(5);
    rows.push_back({number, f[0], f[1], f[2], f[3], f[4]});
  }
  return rows;
}
const std::vector<Row>& ledger() {
  static const std::vector<Row> rows = [] {
    std::ifstream in(ledger_file);
    return read_rows(in);
  }();
  return rows;
}

// Every match of the first group of a pattern in the sources below a folder.
Names scan(const fs::path& folder, const char* extension, const std::string& pattern) {
  const std::regex re(pattern);
  Names out;
  for (const auto& e : fs::recursive_directory_iterator(root / folder)) {
    if (!e.is_regular_file() || e.path().extension() != extension) continue;
    const std::string text = text_of(e.path());
    for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m)
      out.insert((*m)[1].str());
  }
  return out;
}
// "Suite.Case" of every test in the tree.
const Names& all_tests() {
  static const Names names = [] {
    const std::regex re(R"(\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\))");
    Names out;
    for (const auto& e : fs::recursive_directory_iterator(root / "tests")) {
      if (!e.is_regular_file() || e.path().extension() != ".cpp") continue;
      const std::string text = text_of(e.path());
      for (std::sregex_iterator m(text.begin(), text.end(), re), end; m != end; ++m)
        out.insert((*m)[1].str() + "." + (*m)[2].str());
    }
    return out;
  }();
  return names;
}

template <class E, class F>
Names enum_names(F name_of) {
  Names out;
  for (int i = 0; i < static_cast<int>(E::Count); i++)
    out.insert(std::string(name_of(static_cast<E>(i))));
  return out;
}
// What the code has of each kind. Kinds that are not here exist in the design only.
const std::map<std::string, Names>& code() {
  static const std::map<std::string, Names> all = [] {
    std::map<std::string, Names> m;
    m["op"] = Names(op_names.begin(), op_names.end());
    m["dtype"] = enum_names<DType>(dtype_name);
    m["axis type"] = enum_names<AxisType>(axis_type_name);
    m["opt"] = enum_names<OptKind>(opt_kind_name);
    m["trial status"] = enum_names<search::Outcome>(search::outcome_name);
    m["rule"] = scan("engine", ".cpp", R"re(\b(?:rule|law|rounding|relaxed)\(\s*"([^"]+)")re");
    for (const TensorCore& t : all_tensor_cores()) m["tensor core"].insert(t.name());
    for (std::string_view p : pass_names()) m["pass"].insert(std::string(p));
    m["view"] = Names(db::view_names().begin(), db::view_names().end());
    for (const cli::Command& c : cli::all_commands()) m["command"].insert(c.name);
    m["exit code"] = scan("harness/cli", ".h", R"(\bexit_\w+ = (\d+))");
    m["renderer"] = scan("engine/render", ".h", R"(\bstd::string render_(\w+)\()");
    m["renderer"].merge(scan("engine/render", ".h", R"(\bextern const CDialect (\w+)_dialect;)"));
    m["renderer"].erase("clang");  // C is it
    return m;
  }();
  return all;
}

TEST(Ledger, IsSortedAndWellFormed) {
  static const Names kinds = {"axis type", "command",     "design pass",  "design rule", "dtype",
                              "exit code", "op",          "opt",          "pass",        "renderer",
                              "rule",      "tensor core", "trial status", "view"};
  const auto key = [](const Row& r) { return std::pair(r.kind, r.name); };
  for (size_t i = 0; i < ledger().size(); i++) {
    const Row& r = ledger()[i];
    EXPECT_TRUE(kinds.contains(r.kind)) << "line " << r.line << ": unknown kind '" << r.kind << "'";
    EXPECT_TRUE(r.state == "done" || r.state == "open")
        << "line " << r.line << ": '" << r.state << "' is neither done nor open";
    if (i == 0) continue;
    EXPECT_NE(key(ledger()[i - 1]), key(r)) << "line " << r.line << ": a second row";
    EXPECT_LT(key(ledger()[i - 1]), key(r)) << "line " << r.line << ": not sorted by kind and name";
  }
}

TEST(Ledger, EverythingInTheCodeHasARow) {
  for (const auto& [kind, names] : code()) {
    EXPECT_FALSE(names.empty()) << kind;
    for (const std::string& name : names)
      EXPECT_TRUE(std::ranges::any_of(
          ledger(), [&](const Row& r) { return r.kind == kind && r.name == name; }))
          << kind << " '" << name << "' has no row";
  }
}

TEST(Ledger, EverythingDoneIsInTheCode) {
  for (const Row& r : ledger()) {
    const auto it = code().find(r.kind);
    if (!r.done() || it == code().end()) continue;
    EXPECT_TRUE(it->second.contains(r.name))
        << "line " << r.line << ": no " << r.kind << " '" << r.name << "' in the code";
  }
}

TEST(Ledger, EverythingDoneNamesATestThatExists) {
  EXPECT_GT(all_tests().size(), 200u);
  for (const Row& r : ledger()) {
    if (!r.done()) continue;
    const bool is_file = r.test.find('/') != std::string::npos;
    EXPECT_TRUE(is_file ? fs::is_regular_file(root / r.test) : all_tests().contains(r.test))
        << "line " << r.line << ": no test '" << r.test << "'";
  }
}

TEST(Ledger, DesignRowsNameWhatBuildsThem) {
  static const Names outside = {"prepare", "verify"};  // passes that lower() does not run
  for (const Row& r : ledger()) {
    if (!r.done() || (r.kind != "design rule" && r.kind != "design pass")) continue;
    const Names& known = code().at(r.kind == "design rule" ? "rule" : "pass");
    EXPECT_FALSE(r.note.empty()) << "line " << r.line << ": built by what?";
    std::stringstream list(r.note);
    for (std::string name; std::getline(list, name, ',');)
      EXPECT_TRUE(known.contains(name) || (r.kind == "design pass" && outside.contains(name)))
          << "line " << r.line << ": nothing is called '" << name << "'";
  }
}

TEST(Ledger, EveryRuleHasItsClass) {
  for (const Row& r : ledger()) {
    if (r.kind != "rule" || !r.done()) continue;
    EXPECT_TRUE(r.note == "exact" || r.note == "rounds" || r.note == "relaxed")
        << "line " << r.line << ": class '" << r.note << "'";
  }
  constexpr std::string_view classes[] = {"exact", "rounds", "relaxed"};
  for (const Rule* rule : relaxed().list()) {
    EXPECT_TRUE(code().at("rule").contains(std::string(rule->name)))
        << rule->name << " is not found by the scan of the sources";
    for (const Row& r : ledger())
      if (r.kind == "rule" && r.name == rule->name) {
        EXPECT_EQ(r.note, classes[static_cast<size_t>(rule->kind)]) << r.name;
      }
  }
}

TEST(Ledger, WhatIsOpenOnlyBecomesLess) {
  std::map<std::string, std::vector<std::string>> open;
  size_t count = 0;
  for (const Row& r : ledger())
    if (!r.done()) open[r.kind].push_back(r.name), count++;
  for (const auto& [kind, names] : open) {
    std::string line = "open, " + kind + " (" + std::to_string(names.size()) + "):";
    for (const std::string& n : names) line += (&n == names.data() ? " " : ", ") + n;
    std::puts(line.c_str());
  }
  EXPECT_LE(count, most_open) << "what was done is open again";
  if (count < most_open) std::printf("fewer are open: lower most_open to %zu\n", count);
}

TEST(Ledger, DamagedRowsAreFound) {
  std::stringstream text("# comment\n\nop\tADD\tdone\tRuleFuzz.X\nop\tMUL\topen\t-\tnote\n");
  const auto rows = read_rows(text);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].line, 3);
  EXPECT_TRUE(rows[0].done());
  EXPECT_EQ(rows[1].note, "note");
  EXPECT_FALSE(all_tests().contains("RuleFuzz.X"));
  EXPECT_TRUE(all_tests().contains("Ledger.DamagedRowsAreFound"));
}

}  // namespace
}  // namespace beamline
