// Memory-bound kernels written by hand, chosen for this machine's vectors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace beamline::bench {

enum class HandOp { Add, Gelu, Softmax, LayerNorm, Transpose, MaxPool, RowSum, ColumnSum };

/// Of f32 in C order. Gelu is the tanh form; MaxPool is 2x2 with stride 2, all planes one below the
/// other; sums and norms are over the last axis, ColumnSum over the first.
struct HandArgs {
  float* out = nullptr;
  const float* in[3] = {};  // Add: 2; LayerNorm: x, weight, bias
  int64_t rows = 0, columns = 0;
  float epsilon = 1e-5f;  // of LayerNorm
};
using HandKernel = void (*)(const HandArgs&);

struct HandVariant {
  std::string name;  // "AVX-512, streaming stores"
  HandKernel run = nullptr;
};
/// With ordinary and with streaming stores, where there are both; empty on a machine without AVX2.
std::vector<HandVariant> hand_variants(HandOp op);

// One file each, whose functions are compiled for those vectors.
HandKernel hand_avx2(HandOp op, bool streaming);
HandKernel hand_avx512(HandOp op, bool streaming);

}  // namespace beamline::bench
