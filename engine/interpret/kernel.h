// The reference interpreter of linear kernels: plain and slow, the meaning of every op. Integers
// wrap to their width, floats round to theirs after every step; every access is checked against its
// buffer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

/// A buffer of a kernel: one number per element, held as a double (floats) or an integer.
struct InterpreterBuffer {
  DType dtype = DType::Void;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  size_t size() const { return is_float(dtype) ? floats.size() : ints.size(); }
};
InterpreterBuffer make_buffer(DType t, size_t elements);

/// Runs the list once for each core id below `threads`, in order. `buffers` by PARAM slot. The
/// error names the node: an access out of bounds, a read of a register that was never written, an
/// op without meaning.
std::optional<std::string> interpret(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers, int64_t threads = 1);

}  // namespace beamline
