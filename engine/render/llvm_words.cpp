#include "engine/render/llvm_words.h"

#include <bit>

#include <fmt/format.h>

namespace beamline::llvm_words {
namespace {

// clang-format off
constexpr Instruction instructions[] = {
    {Op::ADD,   "fadd contract", "add",      "add"},
    {Op::SUB,   "fsub contract", "sub",      "sub"},
    {Op::MUL,   "fmul contract", "mul",      "mul"},
    {Op::FDIV,  "fdiv contract", "",         ""},
    {Op::CDIV,  "",              "sdiv",     "udiv"},
    {Op::CMOD,  "",              "srem",     "urem"},
    {Op::SHL,   "",              "shl",      "shl"},
    {Op::SHR,   "",              "ashr",     "lshr"},
    {Op::AND,   "",              "and",      "and"},
    {Op::OR,    "",              "or",       "or"},
    {Op::XOR,   "",              "xor",      "xor"},
    {Op::CMPLT, "fcmp olt",      "icmp slt", "icmp ult"},
    {Op::CMPNE, "fcmp une",      "icmp ne",  "icmp ne"},
    {Op::CMPEQ, "fcmp oeq",      "icmp eq",  "icmp eq"},
};
constexpr Intrinsic intrinsics[] = {
    {Op::MAX,   "maximum", "smax", "umax", "fmaximum", "smax", "umax"},
    {Op::ADD,   "",        "",     "",     "fadd",     "add",  "add"},
    {Op::MUL,   "",        "",     "",     "fmul",     "mul",  "mul"},
    {Op::SQRT,  "sqrt",    "",     "",     "",         "",     ""},
    {Op::TRUNC, "trunc",   "",     "",     "",         "",     ""},
};
// clang-format on

}  // namespace

std::string_view scalar_type(DType t) {
  switch (t) {
    case DType::Bool: return "i1";
    case DType::I8:
    case DType::U8:
    case DType::Fp8e4m3:
    case DType::Fp8e5m2: return "i8";  // storage only
    case DType::I16:
    case DType::U16:
    case DType::BF16: return "i16";  // storage only: LLVM would widen what it selects between
    case DType::I32:
    case DType::U32: return "i32";
    case DType::I64:
    case DType::U64: return "i64";
    case DType::F16: return "half";
    case DType::F32: return "float";
    case DType::F64: return "double";
    default: throw Unsupported{fmt::format("dtype {} has no LLVM type here", dtype_name(t))};
  }
}

std::string_view memory_type(DType t) { return t == DType::Bool ? "i8" : scalar_type(t); }

std::string literal(UOp c) {
  const DType t = c.dtype();
  if (t == DType::Bool) return c.ival() ? "true" : "false";
  if (!is_float(t)) return fmt::format("{}", wrap_to(t, c.ival()));
  const double v = c.fval();
  if (t == DType::F32 || t == DType::F64)
    return fmt::format("0x{:016X}", std::bit_cast<uint64_t>(v));
  if (t == DType::F16) return fmt::format("0xH{:04X}", float_to_bits(t, v));
  if (dtype_bytes(t) == 1 || t == DType::BF16) return fmt::format("{}", float_to_bits(t, v));
  throw Unsupported{fmt::format("constants of {}", dtype_name(t))};
}

std::string type(std::string_view scalar, int64_t w) {
  return w ? fmt::format("<{} x {}>", w, scalar) : std::string(scalar);
}

std::string type(UOp u) { return type(scalar_type(u.dtype()), width(u)); }

std::string suffix(DType t, int64_t w) {
  const std::string s = is_float(t)
                            ? fmt::format("{}{}", t == DType::BF16 ? 'i' : 'f', dtype_bytes(t) * 8)
                        : t == DType::Bool ? "i1"
                                           : fmt::format("i{}", dtype_bytes(t) * 8);
  return w ? fmt::format("v{}{}", w, s) : s;
}

std::span<const Instruction> all_instructions() { return instructions; }
std::span<const Intrinsic> all_intrinsics() { return intrinsics; }

}  // namespace beamline::llvm_words
