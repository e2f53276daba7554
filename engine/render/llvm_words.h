// The words of LLVM IR: types, literals, and which instruction or intrinsic an op is. Private to
// the renderer.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "engine/ir/uop.h"

namespace beamline::llvm_words {

/// What the renderer has no code for; render_llvm() catches it.
struct Unsupported {
  std::string what;
};

std::string_view scalar_type(DType t);
/// In memory a bool is a byte.
std::string_view memory_type(DType t);
std::string literal(UOp constant);

/// Lanes of a value; 0: a scalar.
inline int64_t width(UOp u) { return u.shape().empty() ? 0 : u.shape()[0]; }
std::string type(std::string_view scalar, int64_t lanes);
std::string type(UOp u);
/// Of an intrinsic's name: "v8f32".
std::string suffix(DType t, int64_t lanes);

/// One instruction, or one intrinsic "llvm.*", by element kind: float, signed, unsigned; empty:
/// there is none.
struct Instruction {
  Op op;
  std::string_view f, s, u;
};
struct Intrinsic {
  Op op;
  std::string_view f, s, u, reduce_f, reduce_s, reduce_u;  // the last: "vector.reduce.*"
};
std::span<const Instruction> all_instructions();
std::span<const Intrinsic> all_intrinsics();

}  // namespace beamline::llvm_words
