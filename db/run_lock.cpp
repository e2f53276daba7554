#include "db/run_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "db/sqlite.h"

namespace beamline::db {
namespace {

struct flock byte_of(int64_t run, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = run;
  lock.l_len = 1;
  return lock;
}

}  // namespace

RunLock::RunLock(const std::string& database) : database_(database) {
  if (database != ":memory:") path_ = database + "-runs";  // in memory: nobody else can ask
}
RunLock::~RunLock() {
  if (fd_ >= 0) close(fd_);
}

int RunLock::file() {
  if (fd_ >= 0) return fd_;
  // Whoever may write the database may lock beside it.
  struct stat s {};
  const mode_t mode = stat(database_.c_str(), &s) == 0 ? s.st_mode & 0666 : 0644;
  const bool there = access(path_.c_str(), F_OK) == 0;
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode);
  if (fd_ < 0)
    throw DbError(Fault::ReadOnly, database_,
                  fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  if (!there) fchmod(fd_, mode);  // past the umask
  return fd_;
}

bool RunLock::set(int64_t run, short type) {
  struct flock lock = byte_of(run, type);
  if (fcntl(file(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw DbError(Fault::Other, database_,
                fmt::format("cannot lock {}: {}", path_, std::strerror(errno)));
}

bool RunLock::hold(int64_t run) {
  if (!path_.empty() && !set(run, F_WRLCK)) return false;
  mine_.insert(run);
  return true;
}

void RunLock::release(int64_t run) {
  if (mine_.erase(run) != 0 && !path_.empty()) set(run, F_UNLCK);
}

bool RunLock::held(int64_t run) {
  if (mine_.count(run) != 0) return true;
  if (path_.empty() || (fd_ < 0 && access(path_.c_str(), F_OK) != 0)) return false;
  struct flock lock = byte_of(run, F_WRLCK);
  if (fcntl(file(), F_OFD_GETLK, &lock) != 0)
    throw DbError(Fault::Other, database_,
                  fmt::format("cannot ask for a lock of {}: {}", path_, std::strerror(errno)));
  return lock.l_type != F_UNLCK;
}

}  // namespace beamline::db
