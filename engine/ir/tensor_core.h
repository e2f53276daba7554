// Matrix units, as data. Those of GPUs: what one instruction of a warp multiplies and how its
// threads hold the matrices. D(m, n) = sum over k of A(m, k) * B(k, n) + C(m, n). Every index is
// taken apart into bits: bits of the lane ("l"), bits of the register of a thread ("u"), bits of k
// ("r"). Source of the tables: the vendors' manuals of the instructions, as engine.md appendix F
// sums them up.
// Those of processors multiply lane by lane: lane i of a vector of sums gets the products of k
// neighbours that lie side by side, A(i, 0..k) and B(i, 0..k). A factor that all lanes share is
// held once. A vector may be shorter than n.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/target.h"

namespace beamline {

enum class BitKind : uint8_t { Lane, Register, Step };
/// One bit of an index: the i-th of its kind.
struct MatrixBit {
  BitKind kind = BitKind::Lane;
  int i = 0;
  friend bool operator==(const MatrixBit&, const MatrixBit&) = default;
};

/// The shape of an instruction and its layout, shared by the types it comes in.
struct MatrixShape {
  std::string_view family;
  int n = 0, m = 0, k = 0;
  int threads = 0;
  int elements[3] = {};     // that a thread holds of A, B and C
  std::string_view recipe;  // "u0 l1 ...": the next bit of n (0) or m (1) is one of u or l
  // "lanes | registers | steps" for A and for B: a place of the hardware holds that logical bit.
  // What does not move the matrix fills the places left over.
  std::string_view swizzle[2];

  int steps() const;  // bits of k
  int lanes() const;  // bits of a lane
  /// A processor's.
  bool by_lane() const { return threads == 1; }
  /// Bits of n (0) or m (1), lowest first.
  std::vector<MatrixBit> bits_of(int dim) const;
  /// The logical bit that a place of the hardware holds, for A (0) or B (1).
  MatrixBit held_at(int operand, MatrixBit place) const;
  /// The bits of an element's number within a thread, highest first: of A, B (0, 1) or C (2).
  std::vector<MatrixBit> element_bits(int operand) const;
};

struct TensorCore {
  const MatrixShape* shape = nullptr;
  DType in = DType::Void, out = DType::Void;
  bool tf32 = false;  // f32 factors are rounded to 10 bits of mantissa
  std::string_view
      targets;  // names of the emulated GPUs that have it, or instructions: any will do
  DType second = DType::Void;  // of B, where it is not that of A
  DType factor(int operand) const { return operand == 1 && second != DType::Void ? second : in; }
  /// "cuda 8x16x16 f16 f32": family, n x m x k, types of the factors and of the sum.
  std::string name() const;
};

/// All of them, in the order in which a target's are numbered.
const std::vector<TensorCore>& all_tensor_cores();
/// Those of a target; a TC opt selects by the place in this list.
std::vector<const TensorCore*> tensor_cores(const Target& target);
/// Null for an unknown name.
const TensorCore* tensor_core(std::string_view name);

}  // namespace beamline
