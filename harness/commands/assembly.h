// Machine code of a kernel as text; made by the compile helper, since this program links no
// compiler.
#pragma once
#include <string>

namespace beamline::cli {

/// Throws UsageError when the compiler refuses the kernel.
std::string assembly_of(const std::string& ast, const std::string& opts, const std::string& target);

}  // namespace beamline::cli
