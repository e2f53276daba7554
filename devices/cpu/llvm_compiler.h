// LLVM IR text to one position-independent blob of machine code. The only door to LLVM: nobody but
// beamline-compile and tests links the library `beamline_llvm`. Calls may come from one thread at a
// time.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace beamline {

struct IrOptions {
  std::string cpu = "native";  // or a name LLVM knows
  std::string features;        // "+avx2,-avx512f": added to those of `cpu`
  bool want_assembly = false;
};

struct CompiledBlob {
  std::string code;  // load it at a page boundary
  uint64_t entry_offset = 0;
  std::string assembly;  // if wanted
};

struct CompileError {
  std::string reason;
};

/// Parses, verifies and compiles `ir`, whose function `entry` is `void (ptr buffers, i64 core_id)`.
/// Any defect of the text is a value: syntax, a missing entry, an unresolved symbol (memset and the
/// rest of libc included: a blob calls nothing), writable static data, an instruction the processor
/// lacks. LLVM's own fatal errors and crashes end as values too; what they leak stays leaked.
std::variant<CompiledBlob, CompileError> compile_ir(const std::string& ir, const std::string& entry,
                                                    const IrOptions& options = {});

/// A relocatable ELF object to a blob, with the same demands.
std::variant<CompiledBlob, CompileError> link_object(const std::string& object,
                                                     const std::string& entry);

/// "llvm 19.1.7": part of what makes a compiled kernel stale.
std::string llvm_toolchain();
/// What a processor of that name has of the features that kernels use, as LLVM spells them: what
/// CpuModel::isa of such a machine would say. Empty for an unknown name.
std::vector<std::string> processor_features(const std::string& cpu);
/// The processor that "native" means: its name and features.
std::string native_processor();

}  // namespace beamline
