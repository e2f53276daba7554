// Constant operands in the orders in which kernels read them: written once by code that comes with
// a kernel, from the operands as they are given, outside of every timing. Kernels that read an
// operand in the same order share it. Single threaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "devices/cpu/memory.h"

namespace beamline {

/// Machine code (devices/cpu/blob.h) that takes two pointers: `bytes` to write, and the operand as
/// it is given.
struct LayoutCode {
  size_t slot = 0;  // of the operand among the kernel's buffers
  size_t bytes = 0;
  std::string code;
  uint64_t entry_offset = 0;
};

class LaidOperands {
 public:
  /// What a kernel with these layouts is called with in place of the buffers `given`; writes what
  /// is not there yet, and then nobody else can. The pointers hold until forget(). Throws
  /// std::runtime_error where code is none or writes elsewhere or a slot does not exist,
  /// std::system_error where memory is refused.
  std::vector<void*> pointers(const std::vector<LayoutCode>& layouts, std::span<void* const> given);
  /// The operands have changed, or memory is short.
  void forget() { made_.clear(); }
  size_t bytes() const;
  /// Memory of all that was made: address and bytes.
  std::vector<std::pair<const void*, size_t>> spans() const;

 private:
  std::map<std::pair<size_t, std::string>, GuardedBuffer> made_;  // by slot and code
};

}  // namespace beamline
