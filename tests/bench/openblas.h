// The competitor for matrix products: OpenBLAS of the distribution, one thread, its kernel chosen
// by itself. A forced, threaded or debug library is crippled: comparing with it would say nothing.
#pragma once
#include <cstdint>
#include <string>

#include "devices/cpu/blob.h"

namespace beamline::bench {

/// Starts the program again with better kernels asked for, where OpenBLAS fell back to kernels that
/// are too narrow; returns otherwise. Call it first in main(). A variable set by the user is left
/// alone, and openblas_crippled() complains about it.
void raise_openblas(char** argv);
/// Limits it to `threads`; empty, or why a comparison with it would not be fair. Variables of
/// OpenMP are allowed only where the program has set them itself (`own_variables`).
std::string openblas_crippled(int threads = 1, bool own_variables = false);
/// "Cooperlake": which kernels it uses; "SkylakeX (it chose Prescott)" where they had to be asked
/// for.
std::string openblas_core();

/// c[m, n] = op(a) op(b) of f32 in C order; an operand is stored transposed where its flag is set.
/// By the product with a vector where n is 1.
void openblas_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, float* c, const float* a,
                      const float* b);
/// The same, nothing transposed, as a kernel on the buffers (c, a, b). The shape is that of the
/// last call of set_openblas_shape().
void set_openblas_shape(int64_t m, int64_t n, int64_t k);
void openblas_matmul(void* const* buffers, int64_t core_id);

}  // namespace beamline::bench
