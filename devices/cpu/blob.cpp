#include "devices/cpu/blob.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace beamline {

std::variant<CodeBlob, std::string> CodeBlob::map(std::string_view code, uint64_t entry_offset) {
  if (code.empty()) return std::string("the code is empty");
  if (entry_offset >= code.size()) return std::string("the entry lies outside of the code");
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t bytes = (code.size() + page - 1) / page * page;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mmap of a kernel");
  std::memset(base, 0xCC, bytes);  // int3: running off the code stops at once
  std::memcpy(base, code.data(), code.size());
  if (mprotect(base, bytes, PROT_READ | PROT_EXEC) != 0) {
    const int error = errno;
    munmap(base, bytes);
    throw std::system_error(error, std::generic_category(), "mprotect of a kernel");
  }
  char* start = static_cast<char*>(base);
  __builtin___clear_cache(start, start + bytes);
  return CodeBlob(base, bytes, reinterpret_cast<KernelFn>(start + entry_offset));
}

CodeBlob::CodeBlob(CodeBlob&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_), entry_(other.entry_) {}

CodeBlob& CodeBlob::operator=(CodeBlob&& other) noexcept {
  std::swap(base_, other.base_), std::swap(bytes_, other.bytes_), std::swap(entry_, other.entry_);
  return *this;
}

CodeBlob::~CodeBlob() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

}  // namespace beamline
