// What a target can do: the facts lowering and the heuristics decide by. A value type; its text
// travels to compile workers and is part of what identifies a compiled program.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/dtype.h"

namespace beamline {

/// What TC opts may do: nothing; use matrix units; split the loops alike, but multiply one by one.
enum class TensorCoreUse : uint8_t { Off, On, Shape };
std::optional<TensorCoreUse> tensor_core_use(std::string_view name);  // "off", "on", "shape"

struct Target {
  std::string name = "cpu";    // backend: cpu
  std::string cpu = "native";  // processor the compiler tunes for
  std::string features;        // comma separated, as LLVM spells them; empty = those of `cpu`
  // What a processor's matrix products may be made of, separated by spaces, as LLVM spells them:
  // avx512bf16, avx512vnni, avxvnni, and sse2, avx2, avx512bw for products of i16; avx512vl scales.
  std::string instructions;
  int vector_bytes = 32;  // width of one vector register
  int vector_registers = 16;
  int threads = 1;           // most that a THREAD opt may use
  bool has_local = false;    // workgroups with shared memory
  int local_max = 1024;      // threads of a group
  int shared_bytes = 32768;  // memory that a group shares
  bool masked_tails = true;  // loads and stores under a lane mask; amounts need not divide
  DType index_dtype = DType::I64;
  // Divides integers by constants through products. Compilers of processors do that well by
  // themselves; those of GPUs know no bounds of an index, so that its product would be a wide one.
  bool magic_division = false;
  TensorCoreUse tensor_cores = TensorCoreUse::On;  // where it has any
  bool allow_tf32 = false;                         // f32 factors may lose 13 bits of mantissa

  int lanes(DType t) const { return dtype_bytes(t) > 0 ? vector_bytes / dtype_bytes(t) : 1; }
  friend bool operator==(const Target&, const Target&) = default;
};

/// Target::instructions names it, as a whole word.
bool has_instruction(std::string_view instructions, std::string_view name);

/// "name=cpu;cpu=native;..." in a fixed order; reads back to an equal value.
std::string target_text(const Target& t);
std::optional<Target> parse_target(std::string_view text);

/// "emulator:sm_80" and alike: a GPU that the interpreter runs, thread by thread; null for an
/// unknown name.
std::optional<Target> emulated_target(std::string_view name);
std::vector<std::string_view> emulated_targets();

}  // namespace beamline
