// CUDA, HIP and Metal, as records: what they spell differently, and their instructions for
// matrices.
#include <array>
#include <span>

#include <fmt/format.h>

#include "engine/render/c_style.h"

namespace beamline {
namespace {

struct TypeName {
  DType type;
  std::string_view name;
};
// bf16 and fp8 are stored, moved, and multiplied by matrix instructions only: their bits.
// clang-format off
constexpr TypeName cuda_types[] = {
    {DType::Bool, "bool"}, {DType::I8, "signed char"}, {DType::U8, "unsigned char"}, {DType::I16, "short"}, {DType::U16, "unsigned short"},
    {DType::I32, "int"}, {DType::U32, "unsigned"}, {DType::I64, "long long"}, {DType::U64, "unsigned long long"},
    {DType::BF16, "unsigned short"}, {DType::Fp8e4m3, "unsigned char"}, {DType::Fp8e5m2, "unsigned char"},
    {DType::F16, "half"}, {DType::F32, "float"}, {DType::F64, "double"},
};
constexpr TypeName metal_types[] = {
    {DType::Bool, "bool"}, {DType::I8, "char"}, {DType::U8, "uchar"}, {DType::I16, "short"}, {DType::U16, "ushort"},
    {DType::I32, "int"}, {DType::U32, "uint"}, {DType::I64, "long"}, {DType::U64, "ulong"},
    {DType::BF16, "ushort"}, {DType::Fp8e4m3, "uchar"}, {DType::Fp8e5m2, "uchar"},
    {DType::F16, "half"}, {DType::F32, "float"},
};
// clang-format on

constexpr CDialect with_types(CDialect d, std::span<const TypeName> names) {
  for (const TypeName& n : names) d.types[static_cast<size_t>(n.type)] = n.name;
  return d;
}

// mma.sync (PTX ISA, "Warp-level matrix instructions"): a thread's elements are packed in registers
// of 32 bits.
std::string cuda_product(const TensorCore& core, std::string_view name,
                         const std::string (&types)[3]) {
  if (core.shape->family != "cuda") return "";
  const int bytes = dtype_bytes(core.in);
  const int a = core.shape->elements[0] * bytes / 4, b = core.shape->elements[1] * bytes / 4;
  const bool wide = core.out == DType::F32;
  const int c = wide ? 4 : 2;
  const std::string_view in = core.tf32                   ? "tf32"
                              : core.in == DType::F16     ? "f16"
                              : core.in == DType::BF16    ? "bf16"
                              : core.in == DType::Fp8e4m3 ? "e4m3"
                                                          : "e5m2";
  const auto registers = [](int first, int n) {
    std::string s;
    for (int i = 0; i < n; i++) s += fmt::format("{}%{}", i ? ", " : "", first + i);
    return s;
  };
  const auto operands = [](std::string_view format, int n) {
    std::string s;
    for (int i = 0; i < n; i++) s += (i ? ", " : "") + fmt::format(fmt::runtime(format), i);
    return s;
  };
  std::string s = fmt::format(
      "__device__ __forceinline__ {2} {3}({0} a, {1} b, {2} c) {{\n  unsigned x[{4}], y[{5}];\n",
      types[0], types[1], types[2], name, a, b);
  if (core.tf32)
    s += fmt::format(
        "  for (int i = 0; i < {}; i++) asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(x[i]) : "
        "\"f\"(a.v[i]));\n"
        "  for (int i = 0; i < {}; i++) asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y[i]) : "
        "\"f\"(b.v[i]));\n",
        a, b);
  else
    s += "  memcpy(x, &a, sizeof x);\n  memcpy(y, &b, sizeof y);\n";
  if (!wide) s += "  unsigned z[2];\n  memcpy(z, &c, sizeof z);\n";
  s += fmt::format(
      "  asm volatile(\"mma.sync.aligned.m16n8k{0}.row.col.{1}.{2}.{2}.{1} {{{3}}}, {{{4}}}, "
      "{{{5}}}, {{{3}}};\"\n      : {6}\n      : {7}, {8});\n",
      core.shape->k, wide ? "f32" : "f16", in, registers(0, c), registers(c, a),
      registers(c + a, b), operands(wide ? "\"+f\"(c.v[{}])" : "\"+r\"(z[{}])", c),
      operands("\"r\"(x[{}])", a), operands("\"r\"(y[{}])", b));
  if (!wide) s += "  memcpy(&c, z, sizeof z);\n";
  return s + "  return c;\n}\n";
}

// The builtins of clang for AMD's matrix units (llvm/include/llvm/IR/IntrinsicsAMDGPU.td): what
// they take for a and b, and the call.
struct HipProduct {
  std::string_view core, operand, call;
};
// clang-format off
constexpr HipProduct hip_products[] = {
    {"rdna3 16x16x16 f16 f32",      "_Float16 __attribute__((ext_vector_type(16)))", "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, c)"},
    {"rdna3 16x16x16 bf16 f32",     "short __attribute__((ext_vector_type(16)))",    "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, c)"},
    {"rdna3 16x16x16 i8 i32",       "int __attribute__((ext_vector_type(4)))",       "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, x, true, y, c, false)"},
    {"rdna4 16x16x16 f16 f32",      "_Float16 __attribute__((ext_vector_type(8)))",  "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x, y, c)"},
    {"rdna4 16x16x16 f16 f16",      "_Float16 __attribute__((ext_vector_type(8)))",  "__builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(x, y, c)"},
    {"rdna4 16x16x16 bf16 f32",     "short __attribute__((ext_vector_type(8)))",     "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(x, y, c)"},
    {"rdna4 16x16x16 bf16 bf16",    "short __attribute__((ext_vector_type(8)))",     "__builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32_gfx12(x, y, __builtin_bit_cast(matrix_operand, c))"},
    {"cdna 16x16x16 f16 f32",       "_Float16 __attribute__((ext_vector_type(4)))",  "__builtin_amdgcn_mfma_f32_16x16x16f16(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x16 bf16 f32",      "short __attribute__((ext_vector_type(4)))",     "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x32 f16 f32",       "_Float16 __attribute__((ext_vector_type(8)))",  "__builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x32 bf16 f32",      "__bf16 __attribute__((ext_vector_type(8)))",    "__builtin_amdgcn_mfma_f32_16x16x32_bf16(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x32 fp8e4m3 f32",   "long",                                          "__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x32 fp8e5m2 f32",   "long",                                          "__builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(x, y, c, 0, 0, 0)"},
    {"cdna 16x16x128 fp8e4m3 f32",  "int __attribute__((ext_vector_type(8)))",       "__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, c, 0, 0, 0, 0, 0, 0)"},
    {"cdna 16x16x128 fp8e5m2 f32",  "int __attribute__((ext_vector_type(8)))",       "__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, c, 1, 1, 0, 0, 0, 0)"},
};
// clang-format on

std::string hip_product(const TensorCore& core, std::string_view name,
                        const std::string (&types)[3]) {
  const std::string head = fmt::format("__device__ inline {2} {3}({0} a, {1} b, {2} c) {{\n",
                                       types[0], types[1], types[2], name);
  // Sums in f16 lie in the lower halves of their registers.
  if (core.name() == "rdna3 16x16x16 f16 f16")
    return head + fmt::format(
                      "  {} z;\n  for (int i = 0; i < 8; i++) z[2 * i] = c[i], z[2 * i + 1] = 0;\n"
                      "  z = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, z, false);\n"
                      "  for (int i = 0; i < 8; i++) c[i] = z[2 * i];\n  return c;\n}}\n",
                      types[0]);
  for (const HipProduct& p : hip_products) {
    if (p.core != core.name()) continue;
    return head + fmt::format(
                      "  typedef {} matrix_operand;\n"
                      "  const matrix_operand x = __builtin_bit_cast(matrix_operand, a);\n"
                      "  const matrix_operand y = __builtin_bit_cast(matrix_operand, b);\n"
                      "  return __builtin_bit_cast({}, {});\n}}\n",
                      p.operand, types[2], p.call);
  }
  return "";
}

// simdgroup_matrix (Metal Shading Language, 6.7): a thread's two elements are neighbours of a row.
std::string metal_product(const TensorCore& core, std::string_view name,
                          const std::string (&types)[3]) {
  if (core.shape->family != "metal") return "";
  const auto matrix = [](DType t) {
    return t == DType::F32 ? "float" : t == DType::F16 ? "half" : "bfloat";
  };
  const auto number = [](DType t, std::string_view v, int i) {
    const std::string of = fmt::format("{}.v[{}]", v, i);
    return t == DType::BF16 ? "as_type<bfloat>(" + of + ")" : of;
  };
  std::string s = fmt::format(
      "inline {2} {3}({0} a, {1} b, {2} c) {{\n  simdgroup_{4}8x8 x, y;\n  simdgroup_{5}8x8 z;\n",
      types[0], types[1], types[2], name, matrix(core.in), matrix(core.out));
  for (int i = 0; i < 2; i++)
    s += fmt::format(
        "  x.thread_elements()[{0}] = {1};\n  y.thread_elements()[{0}] = {2};\n"
        "  z.thread_elements()[{0}] = {3};\n",
        i, number(core.in, "a", i), number(core.in, "b", i), number(core.out, "c", i));
  s += "  simdgroup_multiply_accumulate(z, x, y, z);\n";
  for (int i = 0; i < 2; i++)
    s += fmt::format("  c.v[{0}] = {1}z.thread_elements()[{0}]{2};\n", i,
                     core.out == DType::BF16 ? "as_type<ushort>(bfloat(" : "",
                     core.out == DType::BF16 ? "))" : "");
  return s + "  return c;\n}\n";
}

}  // namespace

const CDialect cuda_dialect =
    with_types({.name = "CUDA",
                .prelude = "",
                .half_prelude = "#include <cuda_fp16.h>\n",
                .signature = "extern \"C\" __global__ void __launch_bounds__({2}) {0}({1})",
                .parameter = "{}{}{}* __restrict__ p{}",
                .argument = "",
                .types = {},
                .vector_typedef = true,
                .vector_struct = "struct __align__({3}) {0} {{ {1} v[{2}]; }};\n",
                .lane = "{}.v[{}]",
                .vector_load = "",
                .vector_store = "",
                .bitcast = "memcpy(&{0}, &{1}, {2});",
                .convert = "",
                .sqrt = "sqrt",
                .trunc = "trunc",
                .half_math = false,
                .i64 = "ll",
                .u64 = "ull",
                .f32 = "f",
                .nan = "__int_as_float(0x7fc00000)",
                .infinity = "__int_as_float(0x7f800000)",
                .local = "__shared__ ",
                .core = "",
                .group = "(({1})blockIdx.{2})",
                .thread = "(({1})threadIdx.{2})",
                .barrier = "__syncthreads();",
                .matrix_product = cuda_product},
               cuda_types);

const CDialect hip_dialect = [] {
  CDialect d = clang_dialect;
  d.name = "HIP";
  d.prelude = "#include <hip/hip_runtime.h>\n";
  d.signature = "extern \"C\" __global__ void __launch_bounds__({2}) {0}({1})";
  d.parameter = "{}{}{}* __restrict__ p{}";
  d.argument = "";
  d.types[static_cast<size_t>(DType::Bool)] = "bool";
  d.f32 = "f";
  d.local = "__shared__ ";
  d.core = "";
  d.group = "(({1})blockIdx.{2})";
  d.thread = "(({1})threadIdx.{2})";
  d.barrier = "__syncthreads();";
  d.matrix_product = hip_product;
  return d;
}();

const CDialect metal_dialect = with_types(
    {.name = "Metal",
     .prelude = "#include <metal_stdlib>\nusing namespace metal;\n",
     .signature = "[[max_total_threads_per_threadgroup({2})]] kernel void {0}({1}, uint3 group "
                  "[[threadgroup_position_in_grid]], uint3 thread_in_group "
                  "[[thread_position_in_threadgroup]])",
     .parameter = "{0}device {1}{2}* p{3} [[buffer({3})]]",
     .argument = "",
     .types = {},
     .vector_typedef = true,
     .vector_struct = "struct alignas({3}) {0} {{ {1} v[{2}]; }};\n",
     .global_space = "device ",
     .local_space = "threadgroup ",
     .thread_space = "thread ",
     .lane = "{}.v[{}]",
     .vector_load = "",
     .vector_store = "",
     .bitcast = "{0} = as_type<{3}>({1});",
     .convert = "",
     .sqrt = "precise::sqrt",
     .trunc = "trunc",
     .sin = "precise::sin",
     .i64 = "L",
     .u64 = "UL",
     .f32 = "f",
     .nan = "NAN",
     .infinity = "INFINITY",
     .local = "threadgroup ",
     .core = "",
     .group = "(({1})group.{2})",
     .thread = "(({1})thread_in_group.{2})",
     .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);",
     .matrix_product = metal_product},
    metal_types);

const CDialect* c_dialect(std::string_view name) {
  struct Entry {
    std::string_view name;
    const CDialect* dialect;
  };
  const Entry all[] = {{"c", &clang_dialect},
                       {"opencl", &opencl_dialect},
                       {"cuda", &cuda_dialect},
                       {"hip", &hip_dialect},
                       {"metal", &metal_dialect}};
  for (const Entry& e : all)
    if (e.name == name) return e.dialect;
  return nullptr;
}

std::string_view default_renderer(const Target& target) {
  const std::string_view name = target.name;
  if (!target.has_local) return name == "cpu:c" ? "c" : "llvm";
  if (name.find(":sm_") != name.npos) return "cuda";
  if (name.find("dna") != name.npos) return "hip";
  return name.ends_with(":metal") ? "metal" : "opencl";
}

}  // namespace beamline
