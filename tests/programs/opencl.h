// OpenCL C without an OpenCL: clang checks the text as the language it is, then compiles it as C
// behind a few macros, and a thread of the system stands for each thread of a group.
#pragma once
#include <string>
#include <vector>

#include "engine/render/render_kernel.h"

namespace beamline::fuzz {

/// Runs the kernel on its buffers, by slot; throws std::runtime_error with what clang says, or
/// where there is no clang.
void run_opencl(const RenderedKernel& kernel, std::vector<void*> buffers);

}  // namespace beamline::fuzz
