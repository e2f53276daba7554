// The dialects of C for CPUs and OpenCL, as records; gpu_dialects.cpp has the others.
#include "engine/render/c_style.h"

#include <span>

namespace beamline {
namespace {

struct TypeName {
  DType type;
  std::string_view name;
};
// bf16 and fp8 are stored and moved only: their bits.
// clang-format off
constexpr TypeName clang_types[] = {
    {DType::Bool, "_Bool"}, {DType::I8, "signed char"}, {DType::U8, "unsigned char"}, {DType::I16, "short"}, {DType::U16, "unsigned short"},
    {DType::I32, "int"}, {DType::U32, "unsigned"}, {DType::I64, "long long"}, {DType::U64, "unsigned long long"},
    {DType::BF16, "unsigned short"}, {DType::Fp8e4m3, "unsigned char"}, {DType::Fp8e5m2, "unsigned char"},
    {DType::F16, "_Float16"}, {DType::F32, "float"}, {DType::F64, "double"},
};
constexpr TypeName opencl_types[] = {
    {DType::Bool, "bool"}, {DType::I8, "char"}, {DType::U8, "uchar"}, {DType::I16, "short"}, {DType::U16, "ushort"},
    {DType::I32, "int"}, {DType::U32, "uint"}, {DType::I64, "long"}, {DType::U64, "ulong"},
    {DType::BF16, "ushort"}, {DType::Fp8e4m3, "uchar"}, {DType::Fp8e5m2, "uchar"},
    {DType::F16, "half"}, {DType::F32, "float"}, {DType::F64, "double"},
};
// clang-format on

constexpr CDialect with_types(CDialect d, std::span<const TypeName> names) {
  for (const TypeName& n : names) d.types[static_cast<size_t>(n.type)] = n.name;
  return d;
}

}  // namespace

constinit const CDialect clang_dialect = with_types(
    {.name = "clang",
     .prelude = "#pragma STDC FP_CONTRACT ON\n",
     .signature = "void {}(void* const* buffers, long long core_id)",
     .parameter = "",
     .argument = "  {0}{1}* restrict const p{2} = ({0}{1}*)buffers[{2}];\n",
     .types = {},
     .vector_typedef = true,
     .lane = "{}[{}]",
     .vector_load = "__builtin_memcpy(&{0}, &{1}, {2});",
     .vector_store = "__builtin_memcpy(&{1}, &{0}, {2});",
     .bitcast = "__builtin_memcpy(&{0}, &{1}, {2});",
     .convert = "__builtin_convertvector({}, {})",
     .sqrt = "__builtin_elementwise_sqrt",
     .trunc = "__builtin_elementwise_trunc",
     .i64 = "ll",
     .u64 = "ull",
     .f32 = "",
     .nan = "__builtin_nan(\"\")",
     .infinity = "__builtin_inf()",
     .local = "",
     .core = "core_id",
     .group = "",
     .thread = "",
     .barrier = "",
     .prefetch = "__builtin_prefetch((void*)((__UINTPTR_TYPE__){0} + ({1}) * {2}), {3});"},
    clang_types);

constinit const CDialect opencl_dialect = with_types(
    {.name = "OpenCL",
     .prelude = "#ifdef cl_khr_fp16\n#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n#endif\n"
                "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n"
                "#pragma OPENCL FP_CONTRACT ON\n",
     .signature = "__kernel void {}({})",
     .parameter = "{}__global {}{}* restrict p{}",
     .argument = "",
     .types = {},
     .vector_typedef = false,
     .lane = "{}.s{:x}",
     .vector_load = "{0} = vload{3}(0, &{1});",
     .vector_store = "vstore{3}({0}, 0, &{1});",
     .bitcast = "{0} = as_{3}({1});",
     .convert = "convert_{1}({0})",
     .sqrt = "sqrt",
     .trunc = "trunc",
     .i64 = "L",
     .u64 = "UL",
     .f32 = "f",
     .nan = "NAN",
     .infinity = "INFINITY",
     .local = "__local ",
     .core = "",
     .group = "(({1})get_group_id({0}))",
     .thread = "(({1})get_local_id({0}))",
     .barrier = "barrier(CLK_LOCAL_MEM_FENCE);"},
    opencl_types);

}  // namespace beamline
