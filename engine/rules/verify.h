// The verifier: what must hold of a graph at each stage, as a table of named checks. It runs on
// what comes from outside (a worker's request, a file, a database) always, and after every pass in
// debug builds and tests.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

enum class Stage : uint8_t {
  Tensor,     // what a workload builds: movement, elementwise, reduce
  Kernel,     // a prepared AST: SINK, END, STORE, INDEX, ranges
  Scheduled,  // one with opts applied: also matrix products
  Lowered,    // from loads to the list: register accumulators, vectors, no index inside a value
  Linear,     // the list
};

/// Bytes that a thread has for a packed tile or for kept rows; they lie on its stack.
constexpr int64_t max_private_bytes = int64_t{1} << 20;

/// The first check that fails, with the node: "store-index: %12 STORE ...". Level 0 checks nothing,
/// 1 the structure, 2 also that every access without a gate is in bounds by its index's vmin and
/// vmax.
std::optional<std::string> verify(UOp root, Stage stage, int level = 1);
/// The same for a list; also that operands precede their users and loops nest.
std::optional<std::string> verify_linear(std::span<const UOp> list, int level = 1);

/// Names of the checks, in order.
std::vector<std::string_view> check_names();

/// Verification level of this build: 1 with assertions, else 0.
constexpr int default_check_level() {
#ifdef NDEBUG
  return 0;
#else
  return 1;
#endif
}

}  // namespace beamline
