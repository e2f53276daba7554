// A buffer for code that is not trusted: 2 MiB aligned and pre-faulted, a canary page on either
// side (plus the slack up to the page end), and an inaccessible page beyond each canary.
//   [no access][canary][ data ... slack][canary][no access]
// Move only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

namespace beamline {

class GuardedBuffer {
 public:
  /// `huge_pages` asks the system for them (madvise). Throws std::system_error when memory is
  /// refused.
  GuardedBuffer(size_t bytes, bool huge_pages);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Byte offset from data() of the first damaged canary byte (negative = in front), if any.
  std::optional<int64_t> damage() const;
  void restore_canary();
  /// From now on nobody writes here; who tries is ended by the system.
  void seal();

 private:
  void* base_ = nullptr;
  size_t reserved_ = 0;
  unsigned char* data_ = nullptr;
  size_t bytes_ = 0;
  size_t page_ = 0;
  size_t tail_ = 0;  // canary bytes behind the data
};

}  // namespace beamline
