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

/// `compile`: machine code too, by as many compile helpers; 0 = only what this process renders
/// (the target is another machine's). One view a request, in order; what fails is in its note.
std::vector<KernelView> view_kernels(const std::vector<ViewRequest>& requests, const Target& target,
                                     int compilers);

}  // namespace beamline::cli
