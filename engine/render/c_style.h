// C of a linear kernel, as text, in the dialect of a compiler. Vectors are the dialect's vector
// types, or their lanes one by one where it does not compute with such types; masked accesses go
// lane by lane. No performance decision is made here.
#pragma once
#include <string>

#include "engine/ir/tensor_core.h"
#include "engine/lower/lower.h"

namespace beamline {

/// What one dialect of C spells differently from another. Texts with {} are formats.
struct CDialect {
  std::string_view name;
  std::string_view prelude;            // before everything
  std::string_view half_prelude = "";  // after it, where f16 occurs
  std::string_view signature;          // of the entry: its name, its parameters, threads of a group
  std::string_view parameter;          // of one buffer: separator, const, type, slot
  std::string_view argument;           // where it begins: const, type, slot
  std::string_view types[dtype_count];  // by DType; empty: the dialect has none
  bool vector_typedef;  // vector types are declared; else they are called float4 and so on
  // Not empty: vectors are only moved, as structs of an array v: name, element, lanes, bytes. Their
  // places are multiples of their size.
  std::string_view vector_struct = "";
  std::string_view global_space = "", local_space = "", thread_space = "";  // of pointers
  std::string_view lane;                       // of a vector: the vector, the number
  std::string_view vector_load, vector_store;  // value, first element, bytes, lanes
  std::string_view bitcast;                    // result, operand, bytes, type
  std::string_view convert;                    // of a vector: operand, type
  std::string_view sqrt, trunc, sin = "";      // empty: lowering leaves no sines of f32
  bool half_math = true;                       // they take f16
  std::string_view i64, u64, f32;              // what ends a literal
  std::string_view nan, infinity;
  std::string_view local;                // before memory that a group shares
  std::string_view core, group, thread;  // a place in the grid: dimension, type, letter of the
                                         // dimension; empty: none
  std::string_view barrier;              // empty: none
  std::string_view prefetch = "";        // buffer, element, bytes of one, what for; or none
  // A function that multiplies the matrices of a warp: its name, the types of a, b and c. Empty:
  // the dialect has no such instruction.
  std::string (*matrix_product)(const TensorCore& core, std::string_view name,
                                const std::string (&types)[3]) = nullptr;
};

/// C11 with clang's extended vectors: void entry(void* const* buffers, long long core_id). Calls
/// no function of any library.
extern const CDialect clang_dialect;
/// OpenCL C 1.2: kernel void entry(global T* p0, ...), a buffer each in slot order. Half and double
/// as extensions.
extern const CDialect opencl_dialect;
/// CUDA C++: extern "C" __global__ void entry(T* p0, ...). Buffers are aligned to 16 bytes. For
/// nvcc and NVRTC without options that trade exactness for speed (-use_fast_math).
extern const CDialect cuda_dialect;
/// HIP for clang, alike. The functions of fp8 matrices are those of gfx950, whose fp8 is OCP's.
extern const CDialect hip_dialect;
/// Metal 3.1: kernel void entry(device T* p0 [[buffer(0)]], ...). To be compiled with
/// -fno-fast-math. It has no f64.
extern const CDialect metal_dialect;
/// By the name that `ir lower --renderer` takes: "c", "opencl", "cuda", "hip", "metal"; else null.
const CDialect* c_dialect(std::string_view name);
/// The renderer of a target, where nothing else is asked for: "llvm" or one of those.
std::string_view default_renderer(const Target& target);

/// An op or dtype the dialect has no code for is an error text in `error`, and the result is empty.
std::string render_c(const LinearKernel& kernel, const CDialect& dialect, const std::string& entry,
                     std::string& error);

}  // namespace beamline
