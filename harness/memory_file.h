// Bytes that helpers map by a path: an anonymous file in memory. Nothing is left behind however
// this process ends. Immutable once made; the path is valid while the object lives.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace beamline {

class MemoryFile {
 public:
  /// Throws std::system_error when there is no memory.
  explicit MemoryFile(std::span<const std::byte> bytes);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  /// Readable by child processes of this one's user.
  std::string path() const;
  size_t size() const { return size_; }
  /// A read-only view; lives as long as the file.
  std::span<const std::byte> bytes() const;

 private:
  void release();
  int fd_ = -1;
  size_t size_ = 0;
  void* mapped_ = nullptr;
};

}  // namespace beamline
