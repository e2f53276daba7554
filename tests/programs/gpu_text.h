// Texts of kernels for GPUs without a GPU: clang checks them as the language they are, as far as
// the device's machine code where it can, then compiles them for the CPU behind a few definitions,
// and a thread of the system stands for each thread of a group.
#pragma once
#include <string>
#include <vector>

#include "engine/render/render_kernel.h"

namespace beamline::fuzz {

/// Runs the kernel on its buffers, by slot; `renderer` says what the text is. Throws
/// std::runtime_error with what clang says, or where there is no clang.
void run_gpu_text(const RenderedKernel& kernel, const std::string& renderer,
                  std::vector<void*> buffers);

/// Compiles texts for a GPU, together: `chip` is the name of an emulated one ("sm_80"). Empty, or
/// what clang says; of OpenCL and Metal as the language only.
std::string clang_refuses(const std::vector<std::string>& texts, const std::string& renderer,
                          const std::string& chip);
/// The same of nvcc, for CUDA.
bool has_nvcc();
std::string nvcc_refuses(const std::vector<std::string>& texts, const std::string& chip);

}  // namespace beamline::fuzz
