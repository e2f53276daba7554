#include "harness/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace beamline {
namespace {

[[noreturn]] void fail(size_t bytes) {
  throw std::system_error(errno, std::generic_category(),
                          fmt::format("{} bytes of shared memory", bytes));
}

}  // namespace

MemoryFile::MemoryFile(std::span<const std::byte> bytes) : size_(bytes.size()) {
  fd_ = memfd_create("beamline-data", MFD_CLOEXEC);
  if (fd_ < 0) fail(size_);
  for (size_t done = 0; done < size_;) {
    ssize_t n = write(fd_, bytes.data() + done, size_ - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = errno;
      release();
      errno = error;
      fail(size_);
    }
    done += static_cast<size_t>(n);
  }
  if (size_ == 0) return;
  mapped_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    release();
    fail(size_);
  }
}

MemoryFile::~MemoryFile() { release(); }

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, nullptr)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::exchange(other.fd_, -1);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, nullptr);
  return *this;
}

void MemoryFile::release() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
  if (fd_ >= 0) close(fd_);
  mapped_ = nullptr;
  fd_ = -1;
}

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_); }

std::span<const std::byte> MemoryFile::bytes() const {
  return {static_cast<const std::byte*>(mapped_), size_};
}

}  // namespace beamline
