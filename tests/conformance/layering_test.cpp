// The layers of the house: scans every #include of the tree. Includes point down only.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "test_paths.h"

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

struct Include {
  std::string file;  // from the root, with /
  int line = 0;
  std::string target;
  bool quoted = false;
};

std::vector<Include> includes_of(const std::string& file, std::istream& text) {
  std::vector<Include> out;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    number++;
    const size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    const size_t close = line.find(line[open] == '"' ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    out.push_back({file, number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return out;
}

const fs::path root = BEAMLINE_SOURCE_DIR;
const Names folders = {"engine",    "db",      "search",  "devices",
                       "workloads", "reports", "harness", "tests"};

const std::vector<Include>& all_includes() {
  static const std::vector<Include> all = [] {
    std::vector<Include> out;
    for (const std::string& folder : folders)
      for (const auto& e : fs::recursive_directory_iterator(root / folder)) {
        const std::string ext = e.path().extension();
        if (!e.is_regular_file() || (ext != ".h" && ext != ".cpp")) continue;
        std::ifstream in(e.path());
        const auto more = includes_of(fs::relative(e.path(), root).generic_string(), in);
        out.insert(out.end(), more.begin(), more.end());
      }
    return out;
  }();
  return all;
}

bool below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}
bool below_any(std::string_view path, const Names& list) {
  return std::ranges::any_of(list,
                             [&](const std::string& f) { return path == f || below(path, f); });
}

// The most specific entry decides: what a folder may include of the tree. Other paths see
// everything.
struct Layer {
  std::string folder;
  Names sees;
};
const std::vector<Layer>& layers() {
  static const std::vector<Layer> list = [] {
    std::vector<Layer> l = {
        {"engine", {"engine"}},
        {"db", {"db"}},
        {"search", {"search", "engine"}},
        {"search/stats", {"search/stats"}},
        {"devices", {"devices", "engine"}},
        {"devices/runtime", {"devices", "engine", "db"}},
        {"workloads", {"workloads", "engine"}},
        {"reports", {"reports", "db", "search/stats"}},
        {"engine/interpret",
         {"engine/interpret", "engine/base", "engine/ir", "engine/lower/lower.h"}},
    };
    Names seen;
    for (const char* room :
         {"base", "ir", "rewrite", "rules", "tensor", "rangeify", "opt", "lower", "render"}) {
      seen.push_back(std::string("engine/") + room);
      l.push_back({seen.back(), seen});
    }
    return l;
  }();
  return list;
}

// The complaint about one include, or nothing.
std::string violation(const Include& i) {
  if (!i.quoted) return "";
  const Layer* deciding = nullptr;
  for (const Layer& l : layers())
    if (below(i.file, l.folder) && (!deciding || l.folder.size() > deciding->folder.size()))
      deciding = &l;
  if (!deciding || below_any(i.target, deciding->sees)) return "";
  std::stringstream s;
  s << i.file << ":" << i.line << ": " << deciding->folder << " may not include " << i.target;
  return s.str();
}

TEST(Layering, TheTreeIsScanned) {
  std::map<std::string, size_t> files;
  for (const Include& i : all_includes()) files[i.file.substr(0, i.file.find('/'))]++;
  for (const std::string& f : folders) EXPECT_GT(files[f], 0u) << f;
  EXPECT_GT(all_includes().size(), 300u);
}

TEST(Layering, IncludesPointDown) {
  for (const Include& i : all_includes()) EXPECT_EQ(violation(i), "");
}

TEST(Layering, IncludesStartAtTheRootAndExist) {
  for (const Include& i : all_includes()) {
    if (!i.quoted) continue;
    const bool neighbour =
        below(i.file, "tests") && fs::is_regular_file((root / i.file).parent_path() / i.target);
    const bool generated =
        below(i.file, "tests") && fs::is_regular_file(root / "tests" / (i.target + ".in"));
    EXPECT_TRUE(neighbour || generated || fs::is_regular_file(root / i.target))
        << i.file << ":" << i.line << ": " << i.target;
    EXPECT_EQ(i.target.find(".."), std::string::npos) << i.file << ":" << i.line;
    EXPECT_FALSE(i.target.ends_with(".cpp")) << i.file << ":" << i.line;
  }
}

TEST(Layering, OnlyTestsIncludeTests) {
  for (const Include& i : all_includes())
    EXPECT_TRUE(!i.quoted || !below(i.target, "tests") || below(i.file, "tests"))
        << i.file << ":" << i.line;
}

TEST(Layering, PrivateHeadersStayInTheirFolder) {
  for (const Include& i : all_includes()) {
    if (!i.quoted || !i.target.ends_with("_internal.h")) continue;
    EXPECT_EQ(fs::path(i.file).parent_path(), fs::path(i.target).parent_path())
        << i.file << ":" << i.line;
  }
}

TEST(Layering, HeavyHeadersLiveInOneSource) {
  std::map<std::string, std::set<std::string>> users;
  for (const Include& i : all_includes()) {
    if (i.target.starts_with("llvm/") || i.target.starts_with("llvm-c/"))
      users["llvm"].insert(i.file);
    if (i.target.starts_with("boost/asio")) users["boost/asio"].insert(i.file);
    if (i.target.starts_with("z3")) users["z3"].insert(i.file);
  }
  EXPECT_EQ(users["llvm"], std::set<std::string>{"devices/cpu/llvm_compiler.cpp"});
  for (const auto& [what, files] : users) {
    EXPECT_EQ(files.size(), 1u) << what << " is included by more than one file";
    for (const std::string& f : files)
      EXPECT_TRUE(f.ends_with(".cpp")) << what << " is in a header: " << f;
  }
}

TEST(Layering, TheEngineLinksNothingButHash) {
  for (const Include& i : all_includes()) {
    if (!below(i.file, "engine") || i.quoted) continue;
    const bool hash = i.target.starts_with("openssl/");
    EXPECT_TRUE(!hash || i.file == "engine/base/sha256.cpp") << i.file << ":" << i.line;
    const bool standard =
        i.target.find('.') == std::string::npos && i.target.find('/') == std::string::npos;
    EXPECT_TRUE(standard || hash || i.target.starts_with("fmt/"))
        << i.file << ":" << i.line << ": " << i.target;
  }
}

// The rules themselves: each direction that must be refused is.
TEST(Layering, RefusesWhatPointsUp) {
  const auto refused = [](std::string file, std::string target) {
    return !violation({std::move(file), 1, std::move(target), true}).empty();
  };
  EXPECT_TRUE(refused("engine/ir/uop.cpp", "engine/rewrite/rule.h"));
  EXPECT_TRUE(refused("engine/rules/divmod.cpp", "engine/tensor/tensor.h"));
  EXPECT_TRUE(refused("engine/lower/lower.cpp", "engine/render/llvm.h"));
  EXPECT_TRUE(refused("engine/interpret/kernel.cpp", "engine/rules/rules.h"));
  EXPECT_TRUE(refused("engine/interpret/kernel.cpp", "engine/lower/passes.h"));
  EXPECT_TRUE(refused("engine/base/check.h", "db/store.h"));
  EXPECT_TRUE(refused("db/store.cpp", "engine/base/check.h"));
  EXPECT_TRUE(refused("search/beam.cpp", "devices/device.h"));
  EXPECT_TRUE(refused("search/stats/median.cpp", "search/measurer.h"));
  EXPECT_TRUE(refused("reports/compare.cpp", "search/measurer.h"));
  EXPECT_TRUE(refused("reports/compare.cpp", "engine/ir/uop.h"));
  EXPECT_TRUE(refused("devices/cpu/device.cpp", "db/store.h"));
  EXPECT_TRUE(refused("workloads/builder.cpp", "harness/config.h"));
  EXPECT_FALSE(refused("engine/rules/divmod.cpp", "engine/ir/uop.h"));
  EXPECT_FALSE(refused("engine/interpret/kernel.cpp", "engine/lower/lower.h"));
  EXPECT_FALSE(refused("reports/compare.cpp", "search/stats/median.h"));
  EXPECT_FALSE(refused("devices/runtime/load.cpp", "db/store.h"));
  EXPECT_FALSE(refused("harness/main.cpp", "devices/cpu/llvm_compiler.h"));
  EXPECT_FALSE(refused("engine/ir/uop.cpp", "engine/ir/derive.h"));
}

TEST(Layering, ReadsIncludesOfEverySpelling) {
  std::istringstream text(
      "#include \"a/b.h\"\n  #  include <c.h>\n// #include \"no.h\"\nint x; // \"y\"\n#define "
      "include\n");
  const auto found = includes_of("f.cpp", text);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].target, "a/b.h");
  EXPECT_TRUE(found[0].quoted);
  EXPECT_EQ(found[1].target, "c.h");
  EXPECT_EQ(found[1].line, 2);
}

}  // namespace
