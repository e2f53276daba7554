// What the buffers of a program hold: generated or read inputs, and for everything that a kernel
// writes the expected outputs. Those come from the kernel's reference: its AST without opts, floats
// widened to f64, run once per input set in a process of its own. A kernel that reads what another
// wrote gets that one's expected outputs, rounded to the buffer's type. Everything is computed when
// first asked for, and kept.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/memory_file.h"
#include "harness/messages.h"
#include "harness/process_pool.h"
#include "harness/programs.h"

namespace beamline {

struct ReferenceOptions {
  std::string target;  // target_text
  std::vector<unsigned> pus;
  double timeout_s = 100;  // of compiling, and of running, one reference
  uint64_t seed = 0;       // of the inputs
};

class ProgramData {
 public:
  /// Borrows all of them.
  ProgramData(const KernelProgram& program, Pool& compilers, ReferenceOptions options);

  /// The buffers of a kernel in slot order, or why there is no reference.
  std::variant<std::vector<BufferSpec>, std::string> buffers(int kernel, int input_set);
  /// What a kernel should leave in a buffer: its dtype (f64 for any float) and bytes, which live as
  /// long as this object; or why there is no reference.
  struct Contents {
    std::string dtype;
    std::span<const std::byte> bytes;
  };
  std::variant<Contents, std::string> expected(int buffer, int input_set);
  /// Forgets what was expected of the kernel, so that it is compiled and computed again.
  void forget(int kernel);

 private:
  using Key = std::pair<int, int>;  // buffer or kernel, input set
  struct Expected {
    std::string dtype;  // of the file: f64 for any float
    MemoryFile file;
    bool all_zero = false;
  };

  // Each returns why not, or nothing.
  std::optional<std::string> need_contents(int buffer, int input_set);
  std::optional<std::string> need_expected(int kernel, int input_set);
  std::optional<std::string> run_reference(int kernel, int input_set);
  CompileReply compile_reference(int kernel);

  const KernelProgram& program_;
  Pool& compilers_;
  ReferenceOptions options_;
  std::map<Key, MemoryFile> contents_;  // by buffer
  std::map<Key, Expected> expected_;    // by buffer
  std::set<int> suspects_;              // kernels whose reference is compiled anew
};

}  // namespace beamline
