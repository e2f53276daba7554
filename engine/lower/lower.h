// lower(): from a kernel's AST and Opts to a linear list of UOps that a renderer prints or the
// interpreter runs. The passes are a flat named list; each can be traced by name.
#pragma once
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "engine/ir/target.h"
#include "engine/lower/estimates.h"
#include "engine/opt/schedule.h"
#include "engine/rewrite/rule.h"
#include "engine/rules/verify.h"

namespace beamline {

struct LinearArg {
  int64_t slot = 0;
  DType dtype = DType::Void;
  int64_t elements = 0;
  bool written = false;
};

/// How a kernel is launched.
struct Grid {
  int64_t threads = 1;                 // core ids it must be called with
  std::vector<int64_t> global, local;  // groups, and threads of a group; at most 3, x first
};

/// The bounded variables of a kernel, in the order in which they are its arguments, behind the
/// buffers: each a buffer of one element, of the variable's type or, where that is weak, of
/// Target::index_dtype (I32 where a target with groups needs no more). Values beyond the bounds are
/// the caller's fault.
std::vector<UOp> kernel_variables(UOp ast);

struct LinearLayout;

/// A kernel as a list: every node after its operands, RANGE ... END in nesting order.
struct LinearKernel {
  std::string name;
  std::vector<UOp> list;
  std::vector<LinearArg> args;  // by slot; an operand that is laid out counts as it is then
  std::vector<LinearLayout> layouts;
  Grid grid;
  Opts opts;                 // as applied, amounts of 0 resolved
  std::string instructions;  // Target::instructions
  Estimates estimates;
};

/// Of a buffer that the kernel is given.
bool is_written(const LinearKernel& kernel, UOp param);

/// An operand that the kernel reads in an order of its own: `kernel` writes its slot 0, which has
/// its place among the arguments then, from slot 1, the operand as it is given.
struct LinearLayout {
  int64_t slot = 0;
  LinearKernel kernel;
};

struct LowerOptions {
  bool reference =
      false;  // compute floats in f64 and store them so: the expected outputs of a kernel
  int check = default_check_level();  // the verifier's level, after every pass; a failure aborts
  Trace* trace = nullptr;             // receives the rewrites of every pass
  std::vector<std::string> skip;      // passes left out by name, to find the one at fault
  /// Called after every pass with its name, the graph (after linearize: the SINK) and the ns it
  /// took.
  std::function<void(std::string_view pass, UOp graph, double ns)> after_pass;
};

std::variant<LinearKernel, OptRefusal> lower(UOp prepared, const Opts& opts, const Target& target,
                                             const LowerOptions& options = {});

/// Names of the passes, in order.
std::vector<std::string_view> pass_names();

}  // namespace beamline
