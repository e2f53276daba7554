// The reference interpreter of linear kernels: plain and slow, the meaning of every op. Integers
// wrap to their width, floats round to theirs after every step; every access is checked against its
// buffer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/lower/lower.h"

namespace beamline {

/// A buffer of a kernel: one number per element, held as a double (floats) or an integer.
struct InterpreterBuffer {
  DType dtype = DType::Void;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  size_t size() const { return is_float(dtype) ? floats.size() : ints.size(); }
};
InterpreterBuffer make_buffer(DType t, size_t elements);

/// How often and as whom the list runs: each core id in order; each group of the grid in order, its
/// threads from barrier to barrier one after the other. Sizes x first; none: a dimension of one.
struct InterpreterGrid {
  int64_t threads = 1;
  std::vector<int64_t> global = {}, local = {};
};

/// Runs the list as the grid says. `buffers` by PARAM slot. The error names the node: an access out
/// of bounds, a read of memory of the kernel's own that was never written, an element of shared
/// memory that one thread writes and another touches without a barrier between them, an element of
/// a buffer that two threads of a group write, threads of a group that wait at different barriers,
/// a matrix product whose threads hold different copies of an element,
/// an op without meaning.
std::optional<std::string> interpret(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers,
                                     const InterpreterGrid& grid = {});

/// The same of a whole kernel: laid out operands first.
std::optional<std::string> interpret(const LinearKernel& kernel,
                                     std::vector<InterpreterBuffer>& buffers);

}  // namespace beamline
