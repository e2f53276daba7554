// From texts to text: the whole engine behind one call. This is what a compile worker runs; it
// opens its own arena, so nothing of a candidate outlives it. Thread safe.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "engine/ir/target.h"
#include "engine/lower/estimates.h"

namespace beamline {

struct RenderRequest {
  std::string ast_text;   // a prepared kernel (SINK) in UOp text
  std::string opts_text;  // "" = unoptimised
  Target target;
  bool reference =
      false;  // expected outputs: floats widened to f64, written buffers of floats are f64
  std::vector<std::string>
      origins{};           // by node of the text: the source gets comments where it changes
  std::string renderer{};  // "llvm", "c", "opencl", "cuda", "hip", "metal"; "" = the target's own
};

struct RenderedArg {
  int slot = 0;
  std::string dtype;  // of the buffer that the kernel is called with
  int64_t elements = 0;
  bool written = false;
};

struct RenderedLayout;

struct RenderedKernel {
  std::string source;  // LLVM IR, or C for the target cpu:c: entry(buffers, core_id), buffers in
                       // slot order; for targets with groups the dialect of their vendor
  std::string entry;
  std::vector<RenderedArg> args;  // of an operand that is laid out: as it is then
  std::vector<RenderedLayout> layouts;
  Estimates estimates;
  int threads = 1;                     // call once for each core id below this
  std::vector<int64_t> global, local;  // groups, and threads of a group, of targets that have them
  std::string opts_text;
};

/// An operand that the kernel reads in an order of its own: a kernel of two buffers, the operand
/// as it will be and as it is given. It runs once, on one thread, before the other.
struct RenderedLayout {
  int slot = 0;
  RenderedKernel kernel;
};

/// A refusal: `stage` is "rejected" (an illegal opt, a limit) or "compile_error" (the text is no
/// kernel).
struct Refusal {
  std::string stage;
  std::string reason;
};

std::variant<RenderedKernel, Refusal> render_kernel(const RenderRequest& request);

}  // namespace beamline
