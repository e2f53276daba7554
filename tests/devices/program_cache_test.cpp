// Compiled programs on disk: what is kept comes back whole or not at all, and nothing that happens
// to the folder is more than a miss with a warning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "devices/cache/program_cache.h"

namespace beamline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class ProgramCacheTest : public testing::Test {
 protected:
  ProgramCacheTest() {
    std::string name = (fs::temp_directory_path() / "beamline-cache-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    scratch = name;
  }
  ~ProgramCacheTest() override {
    std::error_code ignored;
    fs::permissions(scratch, fs::perms::owner_all, ignored);
    fs::remove_all(scratch, ignored);
  }
  std::string folder() const { return (scratch / "cache/programs").string(); }
  ProgramCache open(uint64_t limit = 1 << 20) const { return {folder(), limit}; }
  uint64_t size() const {
    uint64_t n = 0;
    for (const auto& e : fs::directory_iterator(folder())) n += e.file_size();
    return n;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder()), {}));
  }

  fs::path scratch;
};

ProgramKey some_key() {
  return {"%1=SINK:void()\n", "UPCAST:0:4", "name=cpu", "", "4 abc", "llvm 19.1.7", "znver4 +avx2"};
}
std::string key(int i) {
  ProgramKey k = some_key();
  k.kernel = std::to_string(i);
  return k.hash();
}
const std::string program = std::string("code\0with\nanything", 18) + std::string(1000, 'x');

TEST(ProgramKey, EachPartCounts) {
  std::set<std::string> hashes{some_key().hash()};
  EXPECT_EQ(some_key().hash().size(), 64u);
  EXPECT_EQ(some_key().hash(), some_key().hash());
  std::string ProgramKey::*const parts[] = {
      &ProgramKey::kernel, &ProgramKey::opts,      &ProgramKey::target, &ProgramKey::flags,
      &ProgramKey::engine, &ProgramKey::toolchain, &ProgramKey::host};
  for (const auto part : parts) {
    ProgramKey k = some_key();
    k.*part += "x";
    EXPECT_TRUE(hashes.insert(k.hash()).second);
  }
  // What moves from one part to the next is another key, too.
  ProgramKey k = some_key();
  k.flags = k.target, k.target = "";
  EXPECT_TRUE(hashes.insert(k.hash()).second);
}

TEST_F(ProgramCacheTest, ComesBackInAnotherProcess) {
  {
    ProgramCache first = open();
    EXPECT_FALSE(first.find(key(1)).contents);
    EXPECT_THAT(first.find(key(1)).warning, IsEmpty());
    EXPECT_THAT(first.put(key(1), program), IsEmpty());
    EXPECT_THAT(first.put(key(2), ""), IsEmpty());
  }
  ProgramCache second = open();
  EXPECT_EQ(second.find(key(1)).contents, program);
  EXPECT_EQ(second.find(key(2)).contents, "");
  EXPECT_FALSE(second.find(key(3)).contents);
  second.put(key(1), "other");
  EXPECT_EQ(open().find(key(1)).contents, "other");
  EXPECT_EQ(files(), 2u);
  struct stat s {};
  ASSERT_EQ(stat(folder().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(ProgramCacheTest, DamageIsAMissThatIsSaidAndReplaced) {
  const auto read = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  ASSERT_THAT(open().put(key(1), program), IsEmpty());
  ASSERT_THAT(open().put(key(2), "another"), IsEmpty());
  const std::string path = open().path_of(key(1)), whole = read(path),
                    other = read(open().path_of(key(2)));
  std::vector<std::string> damaged{"", whole + "x", std::string(whole.size(), '\0'), other};
  for (size_t i = 0; i < whole.size(); i += i < 200 ? 1 : 97) {
    damaged.push_back(whole);
    damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ 4);
    damaged.push_back(whole.substr(0, i));
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    ProgramCache cache = open();
    const auto found = cache.find(key(1));
    ASSERT_FALSE(found.contents);
    ASSERT_THAT(found.warning, testing::AllOf(HasSubstr(path), HasSubstr("damaged")));
    ASSERT_FALSE(fs::exists(path));
    ASSERT_THAT(cache.find(key(1)).warning, IsEmpty());
    ASSERT_THAT(cache.put(key(1), program), IsEmpty());
    ASSERT_EQ(cache.find(key(1)).contents, program);
  }
}

TEST_F(ProgramCacheTest, TheLongestUnusedGo) {
  const std::string contents(1000, 'c');
  constexpr uint64_t limit = 64 * 1200;
  ProgramCache cache = open(limit);
  ASSERT_THAT(cache.put(key(0), contents), IsEmpty());
  for (int i = 1; i < 300; i++) {
    ASSERT_THAT(cache.put(key(i), contents), IsEmpty());
    ASSERT_LE(size(), limit) << i;
    ASSERT_TRUE(cache.find(key(0)).contents) << i;  // used all the time
  }
  int kept = 0;
  for (int i = 1; i < 300; i++) {
    const bool here = cache.find(key(i)).contents.has_value();
    EXPECT_TRUE(here || kept == 0) << "a newer one went before an older one";
    kept += here;
  }
  EXPECT_GE(kept, 40);
  // A later process with less room makes it, and what would fill the cache alone is not kept.
  constexpr uint64_t less = 20 * 1200;
  ProgramCache smaller = open(less);
  ASSERT_THAT(smaller.put(key(300), contents), IsEmpty());
  EXPECT_LE(size(), less);
  EXPECT_TRUE(smaller.find(key(300)).contents);
  EXPECT_THAT(smaller.put(key(301), std::string(less / 2, 'c')), IsEmpty());
  EXPECT_FALSE(smaller.find(key(301)).contents);
}

TEST_F(ProgramCacheTest, OnlyItsOwnFilesGo) {
  ASSERT_THAT(open().put(key(0), program), IsEmpty());
  const fs::path foreign = fs::path(folder()) / "notes.txt", left = folder() + "/x.program.ab.tmp",
                 young = folder() + "/y.program.cd.tmp";
  for (const fs::path& p : {foreign, left, young}) std::ofstream(p) << std::string(100'000, 'n');
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ProgramCache cache = open(20'000);
  for (int i = 1; i < 30; i++) cache.put(key(i), program);
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(young));
}

// Runs f in a process of its own; true if it returned true.
template <class F>
bool in_child(F f) {
  const pid_t pid = fork();
  if (pid == 0) _exit(f() ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ProgramCacheTest, WritersAndReadersAtOnceSeeWholeFiles) {
  // The same keys, written with contents of several lengths and evicted all the while.
  constexpr int keys = 20, rounds = 300;
  const auto contents = [](int k, int size) { return std::to_string(k) + std::string(size, 'v'); };
  std::vector<pid_t> children;
  for (int c = 0; c < 4; c++) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    ProgramCache cache = open(30'000);
    bool good = true;
    for (int r = 0; r < rounds; r++) {
      const int k = (r * 7 + c) % keys;
      const auto found = cache.find(key(k));
      good &= found.warning.empty();
      if (found.contents)
        good &= *found.contents == contents(k, static_cast<int>(found.contents->size()) -
                                                   static_cast<int>(std::to_string(k).size()));
      good &= cache.put(key(k), contents(k, 500 + 300 * (r % 4))).empty();
    }
    _exit(good ? 0 : 1);
  }
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const auto& e : fs::directory_iterator(folder()))
    EXPECT_EQ(e.path().extension(), ".program") << e.path();
}

// What nobody may write to still serves; the first refusal is said, later ones are not tried.
TEST_F(ProgramCacheTest, AFolderThatCannotBeWrittenServes) {
  ASSERT_THAT(open().put(key(1), program), IsEmpty());
  const bool root = geteuid() == 0;
  constexpr uid_t nobody = 65534;
  if (root) {
    for (const auto& p : {folder(), open().path_of(key(1))}) {
      ASSERT_EQ(chown(p.c_str(), nobody, nobody), 0);
    }
    for (const fs::path& p : {scratch, scratch / "cache"})
      fs::permissions(p, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  }
  fs::permissions(folder(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(in_child([&] {
    if (root && setuid(nobody) != 0) return false;
    ProgramCache cache = open();
    const std::string first = cache.put(key(2), program), second = cache.put(key(3), program);
    return first.find(folder()) != std::string::npos && second.empty() &&
           cache.find(key(1)).contents == program && !cache.find(key(2)).contents;
  }));
  fs::permissions(folder(), fs::perms::owner_all);
}

TEST_F(ProgramCacheTest, AFullDiskIsAWarning) {
  ASSERT_THAT(open().put(key(1), program), IsEmpty());
  EXPECT_TRUE(in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit few{100, 100};  // bytes of a file
    setrlimit(RLIMIT_FSIZE, &few);
    ProgramCache cache = open();
    const std::string first = cache.put(key(2), program), second = cache.put(key(3), program);
    return first.find("cannot write") != std::string::npos && second.empty() &&
           cache.find(key(1)).contents == program;
  }));
  EXPECT_EQ(files(), 1u);  // nothing half written stays
}

TEST_F(ProgramCacheTest, FoldersThatAreNone) {
  std::ofstream(scratch / "file") << "x";
  for (const std::string& bad : {(scratch / "file").string(), (scratch / "file/below").string(),
                                 std::string("/proc/none")}) {
    ProgramCache cache(bad, 1 << 20);
    EXPECT_THAT(cache.find(key(1)).warning, HasSubstr(bad));
    EXPECT_THAT(cache.find(key(1)).warning, IsEmpty()) << "said once";
    EXPECT_THAT(cache.put(key(1), program), IsEmpty());
  }
}

TEST_F(ProgramCacheTest, WhatOthersMayWriteToIsNotTrusted) {
  ASSERT_THAT(open().put(key(1), program), IsEmpty());
  for (const auto who : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(folder(), fs::perms::owner_all | who);
    const auto found = open().find(key(1));
    EXPECT_FALSE(found.contents);
    EXPECT_THAT(found.warning, HasSubstr("is not used"));
  }
  fs::permissions(folder(), fs::perms::owner_all);
  EXPECT_TRUE(open().find(key(1)).contents);
}

}  // namespace
}  // namespace beamline
