// OpenCL C through the system's OpenCL on the CPU (PoCL, Debian's pocl-opencl-icd).
#pragma once
#include <string>
#include <vector>

#include "engine/render/render_kernel.h"

namespace beamline::fuzz {

/// Empty, or why there is no OpenCL device that is this CPU.
std::string no_opencl_cpu();

/// What the exception says of a kernel with f16 on a device without (PoCL 3 has none on CPUs).
inline constexpr const char* no_halves = "OpenCL: the device has no f16";

/// Runs the kernel on its buffers, by slot, of `bytes` each. Throws std::runtime_error with what
/// OpenCL says.
void run_on_opencl(const RenderedKernel& kernel, const std::vector<void*>& buffers,
                   const std::vector<size_t>& bytes);

}  // namespace beamline::fuzz
