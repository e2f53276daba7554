// C of a linear kernel, as text, in the dialect of a compiler. Vectors are the dialect's vector
// types; masked accesses go lane by lane. No performance decision is made here.
#pragma once
#include <string>

#include "engine/lower/lower.h"

namespace beamline {

/// What one dialect of C spells differently from another.
struct CDialect {
  std::string_view name;
  std::string_view prelude;  // before everything
  std::string_view
      signature;  // of the entry, {} stands for its name; `buffers` and `core_id` in it
  std::string_view types[dtype_count];  // by DType; empty: the dialect has none
};

/// C11 with clang's extended vectors: void entry(void* const* buffers, long long core_id). Calls
/// no function of any library.
extern const CDialect clang_dialect;

/// An op or dtype the dialect has no code for is an error text in `error`, and the result is empty.
std::string render_c(const LinearKernel& kernel, const CDialect& dialect, const std::string& entry,
                     std::string& error);

}  // namespace beamline
