#include "engine/ir/tensor_core.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "engine/base/check.h"

namespace beamline {
namespace {

// clang-format off
constexpr std::string_view cuda  = "u0 l0 l0 l1 l1 l1 u1",
                           rdna3 = "l0 l0 l0 l0 l1 u1 u1 u1",
                           rdna4 = "l0 l0 l0 l0 u1 u1 u1 l1",
                           cdna  = "l0 l0 l0 l0 u1 u1 l1 l1",
                           apple = "u0 l0 l1 l1 l0 l1";

constexpr MatrixShape
    cuda_16  = {"cuda",   8, 16,  16, 32, {8, 4, 4},   cuda,  {"r1 r2 l2 l3 l4 | u1 r3 | l0 l1 u0 r0",             "r1 r2 u0 l0 l1 | r0 r3 | l2 l3 l4 u1"}},
    cuda_32  = {"cuda",   8, 16,  32, 32, {16, 8, 4},  cuda,  {"r2 r3 l2 l3 l4 | u1 r4 | l0 l1 u0 r0 r1",          "r2 r3 u0 l0 l1 | r1 r4 | l2 l3 l4 u1 r0"}},
    cuda_8   = {"cuda",   8, 16,   8, 32, {4, 2, 4},   cuda,  {"r1 r2 l2 l3 l4 | r0 u1 | l0 l1 u0",                "r1 r2 u0 l0 l1 | u1 r0 | l2 l3 l4"}},
    cuda_tf  = {"cuda",   8, 16,   8, 32, {4, 2, 4},   cuda,  {"r0 r1 l2 l3 l4 | u1 r2 | l0 l1 u0",                "r0 r1 u0 l0 l1 | u1 r2 | l2 l3 l4"}},
    rdna3_16 = {"rdna3", 16, 16,  16, 32, {16, 16, 8}, rdna3, {"l4 u0 u1 u2 l0 | r1 r2 r3 | l1 l2 l3 r0",          "l0 l1 l2 l3 l4 | r1 r2 r3 | u0 u1 u2 r0"}},
    rdna4_16 = {"rdna4", 16, 16,  16, 32, {8, 8, 8},   rdna4, {"u0 u1 u2 l4 r2 | r0 r1 r3 | l0 l1 l2 l3",          "l0 l1 l2 l3 r2 | r0 r1 r3 | l4 u0 u1 u2"}},
    cdna_16  = {"cdna",  16, 16,  16, 64, {4, 4, 4},   cdna,  {"u0 u1 l4 l5 r2 r3 | r0 r1 | l0 l1 l2 l3",          "l0 l1 l2 l3 r2 r3 | r0 r1 | l4 l5 u0 u1"}},
    cdna_32  = {"cdna",  16, 16,  32, 64, {8, 8, 4},   cdna,  {"u0 u1 l4 l5 r3 r4 | r0 r1 | l0 l1 l2 l3 r2",       "l0 l1 l2 l3 r3 r4 | r0 r1 | l4 l5 u0 u1 r2"}},
    cdna_128 = {"cdna",  16, 16, 128, 64, {32, 32, 4}, cdna,  {"u0 u1 l4 l5 r5 r6 | r0 r1 | l0 l1 l2 l3 r2 r3 r4", "l0 l1 l2 l3 r5 r6 | r0 r1 | l4 l5 u0 u1 r2 r3 r4"}},
    x86_16x2 = {"x86",   16,  1,   2,  1, {32, 32, 16}, "", {}},
    x86_8x2  = {"x86",    8,  1,   2,  1, {16, 16, 8},  "", {}},
    x86_4x2  = {"x86",    4,  1,   2,  1, {8, 8, 4},    "", {}},
    x86_16x4 = {"x86",   16,  1,   4,  1, {64, 64, 16}, "", {}},
    x86_8x4  = {"x86",    8,  1,   4,  1, {32, 32, 8},  "", {}},
    x86_4x4  = {"x86",    4,  1,   4,  1, {16, 16, 4},  "", {}},
    metal_8  = {"metal",  8,  8,   8, 32, {2, 2, 2},   apple, {"r1 l1 l2 r2 l4 | r0 | u0 l0 l3",                   "l0 r0 r1 l3 r2 | u0 | l1 l2 l4"}};

const std::vector<TensorCore> table = {
    {&cuda_16,  DType::F16,     DType::F32,  false, "sm_80 sm_89 sm_90"},
    {&cuda_16,  DType::BF16,    DType::F32,  false, "sm_80 sm_89 sm_90"},
    {&cuda_16,  DType::F16,     DType::F16,  false, "sm_80 sm_89 sm_90"},
    {&cuda_8,   DType::F16,     DType::F32,  false, "sm_75 sm_80 sm_89 sm_90"},
    {&cuda_8,   DType::F16,     DType::F16,  false, "sm_75 sm_80 sm_89 sm_90"},
    {&cuda_tf,  DType::F32,     DType::F32,  true,  "sm_80 sm_89 sm_90"},
    {&cuda_32,  DType::Fp8e4m3, DType::F32,  false, "sm_89 sm_90"},
    {&cuda_32,  DType::Fp8e5m2, DType::F32,  false, "sm_89 sm_90"},
    {&rdna3_16, DType::F16,     DType::F32,  false, "rdna3"},
    {&rdna3_16, DType::F16,     DType::F16,  false, "rdna3"},
    {&rdna3_16, DType::BF16,    DType::F32,  false, "rdna3"},
    {&rdna3_16, DType::I8,      DType::I32,  false, "rdna3"},
    {&rdna4_16, DType::F16,     DType::F32,  false, "rdna4"},
    {&rdna4_16, DType::F16,     DType::F16,  false, "rdna4"},
    {&rdna4_16, DType::BF16,    DType::F32,  false, "rdna4"},
    {&rdna4_16, DType::BF16,    DType::BF16, false, "rdna4"},
    {&cdna_128, DType::Fp8e4m3, DType::F32,  false, "cdna4"},
    {&cdna_128, DType::Fp8e5m2, DType::F32,  false, "cdna4"},
    {&cdna_32,  DType::Fp8e4m3, DType::F32,  false, "cdna3 cdna4"},
    {&cdna_32,  DType::Fp8e5m2, DType::F32,  false, "cdna3 cdna4"},
    {&cdna_32,  DType::F16,     DType::F32,  false, "cdna4"},
    {&cdna_32,  DType::BF16,    DType::F32,  false, "cdna4"},
    {&cdna_16,  DType::F16,     DType::F32,  false, "cdna3 cdna4"},
    {&cdna_16,  DType::BF16,    DType::F32,  false, "cdna3 cdna4"},
    {&metal_8,  DType::F32,     DType::F32,  false, "metal"},
    {&metal_8,  DType::F16,     DType::F32,  false, "metal"},
    {&metal_8,  DType::F16,     DType::F16,  false, "metal"},
    {&metal_8,  DType::BF16,    DType::F32,  false, "metal"},
    {&metal_8,  DType::BF16,    DType::BF16, false, "metal"},
    {&x86_16x2, DType::BF16,    DType::F32,  false, "avx512bf16"},
    {&x86_8x2,  DType::BF16,    DType::F32,  false, "avx512bf16"},
    {&x86_4x2,  DType::BF16,    DType::F32,  false, "avx512bf16"},
    {&x86_16x4, DType::U8,      DType::I32,  false, "avx512vnni", DType::I8},
    {&x86_8x4,  DType::U8,      DType::I32,  false, "avx512vnni avxvnni", DType::I8},
    {&x86_4x4,  DType::U8,      DType::I32,  false, "avx512vnni avxvnni", DType::I8},
    {&x86_16x2, DType::I16,     DType::I32,  false, "avx512bw"},
    {&x86_8x2,  DType::I16,     DType::I32,  false, "avx2"},
    {&x86_4x2,  DType::I16,     DType::I32,  false, "sse2"},
};
// clang-format on

// Calls f with every word of a text, and how many bars stand before it.
template <class F>
void each_word(std::string_view text, F f) {
  int bars = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word == "|")
      bars++;
    else
      f(word, bars);
  }
}
MatrixBit bit_of(std::string_view word) {
  const BitKind kind = word[0] == 'l'   ? BitKind::Lane
                       : word[0] == 'u' ? BitKind::Register
                                        : BitKind::Step;
  return {kind, word[1] - '0'};
}

}  // namespace

int MatrixShape::steps() const { return std::countr_zero(static_cast<unsigned>(k)); }
int MatrixShape::lanes() const { return std::countr_zero(static_cast<unsigned>(threads)); }

std::vector<MatrixBit> MatrixShape::bits_of(int dim) const {
  std::vector<MatrixBit> out;
  int next[2] = {};  // of Lane and Register
  each_word(recipe, [&](std::string_view word, int) {
    const BitKind kind = bit_of(word).kind;
    const int i = next[static_cast<size_t>(kind)]++;
    if (word[1] - '0' == dim) out.push_back({kind, i});
  });
  return out;
}

MatrixBit MatrixShape::held_at(int operand, MatrixBit place) const {
  std::optional<MatrixBit> found;
  int at = 0, part = 0;
  each_word(swizzle[operand], [&](std::string_view word, int bars) {
    if (bars != part) part = bars, at = 0;
    if (static_cast<int>(place.kind) == bars && at == place.i) found = bit_of(word);
    at++;
  });
  CHECK(found.has_value());
  return *found;
}

std::vector<MatrixBit> MatrixShape::element_bits(int operand) const {
  std::vector<MatrixBit> out;
  for (int i = std::countr_zero(static_cast<unsigned>(elements[2])); i-- > 0;)
    out.push_back({BitKind::Register, i});
  for (int i = steps(); i-- > 0;) out.push_back({BitKind::Step, i});
  out.resize(static_cast<size_t>(std::countr_zero(static_cast<unsigned>(elements[operand]))));
  return out;
}

std::string TensorCore::name() const {
  return fmt::format("{} {}x{}x{} {}{}{} {}", shape->family, shape->n, shape->m, shape->k,
                     tf32 ? "tf32" : dtype_name(in), second == DType::Void ? "" : " ",
                     second == DType::Void ? "" : dtype_name(second), dtype_name(out));
}

const std::vector<TensorCore>& all_tensor_cores() { return table; }

std::vector<const TensorCore*> tensor_cores(const Target& target) {
  std::vector<const TensorCore*> out;
  constexpr std::string_view prefix = "emulator:";
  const bool emulated = target.name.starts_with(prefix), cpu = target.name == "cpu";
  if (!emulated && !cpu) return out;
  const std::string_view has =
      emulated ? std::string_view(target.name).substr(prefix.size()) : target.instructions;
  for (const TensorCore& t : table) {
    // Of a processor's, those of its whole vectors.
    if (t.shape->by_lane() != cpu || (cpu && t.shape->n != target.lanes(t.out))) continue;
    bool fits = false;
    each_word(t.targets, [&](std::string_view word, int) { fits |= has_instruction(has, word); });
    if (fits) out.push_back(&t);
  }
  return out;
}

const TensorCore* tensor_core(std::string_view name) {
  for (const TensorCore& t : table)
    if (t.name() == name) return &t;
  return nullptr;
}

}  // namespace beamline
