// Runs every tests/golden/*.golden: texts of UOps before and after a set of rules, and the rules
// that fired.
//   pass: symbolic            which rules; stays for the cases that follow
//   case: a name
//   <UOp text>
//   ->
//   <UOp text>
//   by: rule names, in the order they fired
// UPDATE_GOLDEN=1 in the environment rewrites the files with what the engine does now.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rules/rules.h"

#include "test_paths.h"

namespace beamline {
namespace {

struct Case {
  std::string pass, name, input, output, by;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

// Comment lines at the top are kept apart, so that rewriting does not lose them.
struct File {
  std::string head;
  std::vector<Case> cases;
};
File read(const std::filesystem::path& path) {
  File file;
  std::istringstream in(text_of(path));
  std::string pass, line;
  std::string* into = &file.head;
  while (std::getline(in, line)) {
    if (line.starts_with("pass: ")) {
      pass = line.substr(6);
      into = nullptr;
    } else if (line.starts_with("case: ")) {
      file.cases.push_back({pass, line.substr(6), "", "", ""});
      into = &file.cases.back().input;
    } else if (line == "->" && !file.cases.empty()) {
      into = &file.cases.back().output;
    } else if (line.starts_with("by:") && !file.cases.empty()) {
      file.cases.back().by = line.size() > 4 ? line.substr(4) : "";
      into = nullptr;
    } else if (into && !line.empty()) {
      *into += line + "\n";
    }
  }
  return file;
}
std::string written(const File& file) {
  std::string s = file.head, pass;
  for (const Case& c : file.cases) {
    if (c.pass != pass) s += "\npass: " + c.pass + "\n";
    pass = c.pass;
    s += "\ncase: " + c.name + "\n" + c.input + "->\n" + c.output +
         "by:" + (c.by.empty() ? "" : " ") + c.by + "\n";
  }
  return s;
}

struct Fired : Trace {
  std::string names;
  void rewrote(const Rule& rule, UOp, UOp, double) override {
    names += (names.empty() ? "" : " ") + std::string(rule.name);
  }
};

// Line by line, the longest common subsequence kept: "-" expected, "+" got.
std::string unified(const std::string& want, const std::string& got) {
  const auto lines = [](const std::string& s) {
    std::vector<std::string> v;
    std::istringstream in(s);
    for (std::string l; std::getline(in, l);) v.push_back(l);
    return v;
  };
  const auto a = lines(want), b = lines(got);
  std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j])
      out += "  " + a[i] + "\n", i++, j++;
    else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1]))
      out += "- " + a[i++] + "\n";
    else
      out += "+ " + b[j++] + "\n";
  }
  return out;
}

TEST(Golden, Files) {
  const std::map<std::string, const MatcherBase*> passes = {
      {"symbolic_simple", &symbolic_simple_matcher()},
      {"symbolic", &symbolic_matcher()},
      {"sym", &sym_matcher()}};
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  size_t count = 0;
  std::vector<std::filesystem::path> paths;
  for (const auto& e : std::filesystem::directory_iterator(BEAMLINE_SOURCE_DIR "/tests/golden"))
    if (e.path().extension() == ".golden") paths.push_back(e.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    File file = read(path);
    const std::string before = written(file);
    for (Case& c : file.cases) {
      const auto rules = passes.find(c.pass);
      ASSERT_NE(rules, passes.end()) << path << ": unknown pass '" << c.pass << "'";
      Arena arena;
      Arena::Scope scope(arena);
      const auto parsed = parse_uops(c.input);
      if (const auto* error = std::get_if<ParseError>(&parsed))
        FAIL() << path << ", case " << c.name << ", line " << error->line << ": " << error->message;
      Fired fired;
      c.output = print_uops(simplify(std::get<UOp>(parsed), *rules->second, &fired));
      c.by = fired.names;
      count++;
    }
    const std::string now = written(file);
    if (update)
      std::ofstream(path) << now;
    else
      EXPECT_EQ(now, before) << path << "\n" << unified(before, now);
    EXPECT_TRUE(update || text_of(path) == before)
        << path << " is not written as UPDATE_GOLDEN=1 writes it";
  }
  EXPECT_GT(count, 10u);
}

}  // namespace
}  // namespace beamline
