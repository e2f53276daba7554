// Machine code in memory. A blob is position independent; it is written, then made executable,
// never both at once. Move only; the code is unmapped with its owner.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace beamline {

/// A kernel: buffer pointers in PARAM slot order, and which of the threads 0..threads-1 this call
/// is.
using KernelFn = void (*)(void* const* buffers, int64_t core_id);

class CodeBlob {
 public:
  /// The mapped code, or why not (empty code, an entry outside of it). Throws std::system_error
  /// when the system refuses executable memory.
  static std::variant<CodeBlob, std::string> map(std::string_view code, uint64_t entry_offset);

  CodeBlob(CodeBlob&& other) noexcept;
  CodeBlob& operator=(CodeBlob&& other) noexcept;
  ~CodeBlob();

  KernelFn entry() const { return entry_; }

 private:
  CodeBlob(void* base, size_t bytes, KernelFn fn) : base_(base), bytes_(bytes), entry_(fn) {}
  void* base_ = nullptr;
  size_t bytes_ = 0;
  KernelFn entry_ = nullptr;
};

}  // namespace beamline
