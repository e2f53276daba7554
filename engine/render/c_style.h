// C of a linear kernel, as text, in the dialect of a compiler. Vectors are the dialect's vector
// types; masked accesses go lane by lane. No performance decision is made here.
#pragma once
#include <string>

#include "engine/lower/lower.h"

namespace beamline {

/// What one dialect of C spells differently from another. Texts with {} are formats.
struct CDialect {
  std::string_view name;
  std::string_view prelude;             // before everything
  std::string_view signature;           // of the entry: its name, its parameters
  std::string_view parameter;           // of one buffer: separator, const, type, slot
  std::string_view argument;            // where it begins: const, type, slot
  std::string_view types[dtype_count];  // by DType; empty: the dialect has none
  bool vector_typedef;    // vector types are declared; else they are called float4 and so on
  std::string_view lane;  // of a vector: the vector, the number
  std::string_view vector_load, vector_store;  // value, first element, bytes, lanes
  std::string_view bitcast;                    // result, operand, bytes, type
  std::string_view convert;                    // of a vector: operand, type
  std::string_view sqrt, trunc;
  std::string_view i64, u64, f32;  // what ends a literal
  std::string_view nan, infinity;
  std::string_view local;                // before memory that a group shares
  std::string_view core, group, thread;  // a place in the grid: dimension, type; empty: none
  std::string_view barrier;              // empty: none
};

/// C11 with clang's extended vectors: void entry(void* const* buffers, long long core_id). Calls
/// no function of any library.
extern const CDialect clang_dialect;
/// OpenCL C 1.2: kernel void entry(global T* p0, ...), a buffer each in slot order. Half and double
/// as extensions.
extern const CDialect opencl_dialect;

/// An op or dtype the dialect has no code for is an error text in `error`, and the result is empty.
std::string render_c(const LinearKernel& kernel, const CDialect& dialect, const std::string& entry,
                     std::string& error);
std::string render_opencl(const LinearKernel& kernel, const std::string& entry, std::string& error);

}  // namespace beamline
