#include "devices/cache/program_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "engine/base/sha256.h"

namespace beamline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "beamline program 1\n";
constexpr size_t hash_digits = 64;
constexpr std::string_view suffix = ".program", unfinished = ".tmp";
constexpr int64_t abandoned_after_s = 3600;  // a file that its writer has not renamed

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string why(const std::string& what, const std::string& path) {
  return fmt::format("compiled programs: cannot {} {}: {}", what, path, std::strerror(errno));
}

// Nothing of what is no file, or longer than one of ours can be.
bool read_all(int fd, uint64_t most, std::string& out) {
  struct stat s {};
  if (fstat(fd, &s) != 0) return false;
  if (!S_ISREG(s.st_mode) || static_cast<uint64_t>(s.st_size) > most) return true;
  out.resize(static_cast<size_t>(s.st_size));
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = read(fd, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return true;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// By the precise clock: files of one tick of the kernel's would be in no order.
void mark_used(int fd) {
  timespec times[] = {{0, UTIME_OMIT}, {0, 0}};
  clock_gettime(CLOCK_REALTIME, &times[1]);
  futimens(fd, times);  // where that is refused, it only looks older than it is
}

// What the hash of a file covers: a file under another program's name is damaged, too.
std::string sealed(const std::string& key, std::string_view contents) {
  std::string body = key + "\n";
  body += contents;
  return std::string(magic) + sha256_hex(body) + "\n" + body;
}
std::optional<std::string> opened(const std::string& key, const std::string& bytes) {
  const size_t body = magic.size() + hash_digits + 1, contents = body + key.size() + 1;
  if (bytes.size() < contents || sealed(key, std::string_view(bytes).substr(contents)) != bytes)
    return std::nullopt;
  return bytes.substr(contents);
}

}  // namespace

std::string ProgramKey::hash() const {
  std::string text = "program key 1\n";
  for (const std::string* part : {&kernel, &opts, &target, &flags, &engine, &toolchain, &host})
    text += fmt::format("{}:{}\n", part->size(), *part);
  return sha256_hex(text);
}

ProgramCache::ProgramCache(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_(limit_bytes) {}

std::string ProgramCache::path_of(const std::string& key) const {
  return fmt::format("{}/{}{}", folder_, key, suffix);
}

std::string ProgramCache::unusable() {
  struct stat s {};
  if (stat(folder_.c_str(), &s) != 0) {
    std::error_code error;
    fs::create_directories(fs::path(folder_).parent_path(), error);
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return why("make", folder_);
    if (stat(folder_.c_str(), &s) != 0) return why("look at", folder_);
  }
  if (!S_ISDIR(s.st_mode)) return fmt::format("compiled programs: {} is no folder", folder_);
  if (s.st_uid != geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format(
        "compiled programs: {} is not used: somebody else owns it or may write to it", folder_);
  return {};
}

ProgramCache::Found ProgramCache::find(const std::string& key) {
  if (off_) return {};
  if (std::string error = unusable(); !error.empty()) {
    off_ = true;
    return {std::nullopt, error};
  }
  const std::string path = path_of(key);
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd() < 0) {
    if (errno == ENOENT) return {};
    return {std::nullopt, why("open", path)};
  }
  std::string bytes;
  if (!read_all(file.fd(), limit_, bytes)) return {std::nullopt, why("read", path)};
  auto contents = opened(key, bytes);
  if (contents) {
    mark_used(file.fd());
    return {std::move(contents), {}};
  }
  unlink(path.c_str());
  return {std::nullopt,
          fmt::format("compiled programs: {} is damaged; it is compiled again", path)};
}

std::string ProgramCache::put(const std::string& key, const std::string& contents) {
  if (off_ || full_) return {};
  const std::string bytes = sealed(key, contents);
  if (bytes.size() > limit_ / 16) return {};
  if (std::string error = unusable(); !error.empty()) {
    off_ = true;
    return error;
  }
  make_room(bytes.size());
  std::string error = write(key, bytes);
  full_ = !error.empty();
  return error;
}

std::string ProgramCache::write(const std::string& key, const std::string& bytes) {
  const std::string path = path_of(key);
  std::string beside = fmt::format("{}.XXXXXX{}", path, unfinished), error;
  {
    const File file(mkostemps(beside.data(), static_cast<int>(unfinished.size()), O_CLOEXEC));
    if (file.fd() < 0) return why("make a file in", folder_);
    if (!write_all(file.fd(), bytes)) error = why("write", beside);
    mark_used(file.fd());
  }
  if (error.empty() && rename(beside.c_str(), path.c_str()) != 0) error = why("replace", path);
  if (!error.empty()) unlink(beside.c_str());
  return error;
}

// The folder is looked through once for each sixteenth of the limit that was written, and then left
// with an eighth of room.
void ProgramCache::make_room(uint64_t incoming) {
  written_ += incoming;
  if (scanned_ && written_ <= limit_ / 16) return;
  scanned_ = true;
  written_ = incoming;
  struct Entry {
    int64_t s, ns;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t total = incoming;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    struct stat s {};
    if (!path.ends_with(suffix) && !path.ends_with(unfinished)) continue;
    if (lstat(path.c_str(), &s) != 0) continue;
    if (path.ends_with(suffix)) {
      entries.push_back(
          {s.st_mtim.tv_sec, s.st_mtim.tv_nsec, path, static_cast<uint64_t>(s.st_size)});
      total += entries.back().bytes;
    } else if (time(nullptr) - s.st_mtim.tv_sec > abandoned_after_s) {
      unlink(path.c_str());
    }
  }
  if (total <= limit_ - limit_ / 16) return;
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tie(e.s, e.ns, e.path); });
  for (const Entry& e : entries) {
    if (total <= limit_ - limit_ / 8) break;
    if (unlink(e.path.c_str()) == 0 || errno == ENOENT) total -= e.bytes;
  }
}

}  // namespace beamline
