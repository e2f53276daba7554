// rangeify: from a tensor graph to kernels. Every node gets the index tuple it is read at, decided
// from its consumers backwards; what must be stored becomes a STAGE; a STAGE that is cheap to
// recompute is put back; the rest are cut into kernels at their stores.
#pragma once
#include <string>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

struct BufferInfo {
  enum class Kind { Input, Output, Temp };
  Kind kind = Kind::Input;
  DType dtype = DType::Void;
  int64_t elements = 0;
  int64_t input_slot = -1;  // Input: the PARAM's slot; void and empty when unread
  Ints shape{};
  int64_t offset = -1;  // Temp: its place in the arena, in bytes; -1 for one without elements
};
struct KernelAst {
  UOp ast;                      // prepared: SINK(END(STORE(...), ranges))
  std::string name;             // from its axes, e.g. r_512_512_512; not part of the key
  std::string key;              // kernel_key(ast)
  std::vector<size_t> buffers;  // by PARAM slot: index into KernelGraph::buffers
};
/// Kernels in dependency order. Nodes live in the arena current at the call.
struct KernelGraph {
  std::vector<BufferInfo> buffers;  // inputs by slot, then temporaries and outputs
  std::vector<KernelAst> kernels;
  std::vector<size_t> outputs;  // buffers of the results, in the order of the SINK
  int64_t arena_bytes = 0;      // what the temporaries need together (memory_plan.h)
};

/// What kernels may change of floats (rules.h): nothing but rounding, or NaN and Inf too.
enum class Math : uint8_t { Strict, Relaxed };

/// `sink`: SINK over the results of a tensor graph whose leaves are PARAM (global) and CONST.
KernelGraph make_kernels(UOp sink, Math math = Math::Strict);

}  // namespace beamline
