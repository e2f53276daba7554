// What a stored schedule looks like, made anew: axes, source and machine code of kernels from their
// stored AST and opts. Only texts are stored, so today's engine renders them; hashes tell whether
// that is what was measured.
#pragma once
#include <string>
#include <vector>

#include "engine/ir/target.h"
#include "reports/report.h"

namespace beamline::cli {

struct ViewRequest {
  std::string ast, opts;
  std::string source_hash, code_hash;  // of what was measured; "" = not known
};
struct KernelView {
  std::vector<reports::Axis> axes;
  std::string heuristic_opts;  // today's, "" where the AST cannot be read
  bool has_heuristic = false;
  reports::CodeView code;
};

struct ViewOptions {
  bool source = true;  // false: axes and the heuristic's opts only
  int compilers = 1;   // machine code too, by so many helpers; 0: the target is another machine's
};
/// One view a request, in order; what fails is in its note.
std::vector<KernelView> view_kernels(const std::vector<ViewRequest>& requests, const Target& target,
                                     const ViewOptions& options);

}  // namespace beamline::cli
