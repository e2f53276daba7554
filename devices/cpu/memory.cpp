#include "devices/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace beamline {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostBytes = size_t{1} << 56;  // sums of sizes do not overflow
constexpr unsigned char kCanary = 0xC5;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes, bool huge_pages)
    : bytes_(bytes), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
  if (bytes > kMostBytes)
    throw std::system_error(ENOMEM, std::generic_category(), "mmap of a buffer");
  const size_t body = round_up(bytes, page_);
  tail_ = body - bytes + page_;
  reserved_ = body + 2 * kHugePage + 2 * page_;
  base_ = mmap(nullptr, reserved_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base_ == MAP_FAILED) {
    base_ = nullptr;
    throw std::system_error(errno, std::generic_category(), "mmap of a buffer");
  }
  const uintptr_t first = reinterpret_cast<uintptr_t>(base_) + 2 * page_;
  data_ = reinterpret_cast<unsigned char*>(round_up(first, kHugePage));
  if (mprotect(data_ - page_, body + 2 * page_, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(base_, reserved_);
    throw std::system_error(error, std::generic_category(), "mprotect of a buffer");
  }
  // A refusal leaves ordinary pages, which are as good for every contestant alike.
  if (body > 0) madvise(data_, body, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  std::memset(data_, 0, bytes_);
  restore_canary();
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      reserved_(other.reserved_),
      data_(other.data_),
      bytes_(other.bytes_),
      page_(other.page_),
      tail_(other.tail_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(base_, other.base_), std::swap(reserved_, other.reserved_),
      std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_), std::swap(page_, other.page_), std::swap(tail_, other.tail_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (base_ != nullptr) munmap(base_, reserved_);
}

std::optional<int64_t> GuardedBuffer::damage() const {
  for (size_t i = 0; i < page_; i++) {
    if (data_[static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(page_)] != kCanary) {
      return static_cast<int64_t>(i) - static_cast<int64_t>(page_);
    }
  }
  for (size_t i = 0; i < tail_; i++) {
    if (data_[bytes_ + i] != kCanary) return static_cast<int64_t>(bytes_ + i);
  }
  return std::nullopt;
}

void GuardedBuffer::seal() {
  const size_t body = bytes_ + tail_ - page_;
  if (mprotect(data_ - page_, body + 2 * page_, PROT_READ) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect of a buffer");
}

void GuardedBuffer::restore_canary() {
  std::memset(data_ - page_, kCanary, page_);
  std::memset(data_ + bytes_, kCanary, tail_);
}

}  // namespace beamline
