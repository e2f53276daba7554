// C to one position-independent blob of machine code, through clang as a subprocess. Part of the
// library `beamline_llvm`. Calls may come from one thread at a time; the subprocess stays in the
// caller's process group.
#pragma once
#include <string>
#include <variant>

#include "devices/cpu/llvm_compiler.h"

namespace beamline {

/// Compiles `source`, whose function `entry` is `void (void* const* buffers, long long core_id)`.
/// Defects of the text are values, as with compile_ir; so is a clang that is not installed.
std::variant<CompiledBlob, CompileError> compile_c(const std::string& source,
                                                   const std::string& entry,
                                                   const IrOptions& options = {});

/// "clang 19.1.7"; empty: there is no clang.
const std::string& clang_toolchain();

}  // namespace beamline
