// One thread of a kernel in the interpreter: the list with its operands resolved, what the threads
// of a group share, and a thread that runs from barrier to barrier. Private to interpret().
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/interpret/kernel.h"
#include "engine/interpret/matrix_product.h"
#include "engine/ir/uop.h"

namespace beamline {

/// What a thread may not do; run() throws it, interpret() tells it with the node.
struct InterpreterFailure {
  std::string what;
};

/// The list, with operands and memory by their places in it, and the place of every value's lanes
/// among all of a thread.
struct InterpreterCode {
  std::span<const UOp> list;
  std::vector<size_t> first_source, sources;  // of node i: sources from first_source[i] on
  std::vector<size_t> lanes;                  // where those of node i begin
  std::vector<size_t> widths;
  std::vector<size_t> memory;  // of a LOAD or STORE: its PARAM or BUFFER; of an END: its RANGE
  size_t all_lanes = 0;

  explicit InterpreterCode(std::span<const UOp> nodes);
  size_t source(size_t i, size_t k) const { return sources[first_source[i] + k]; }
};

/// Memory that the threads of a group share. Who touched an element since the last barrier is
/// remembered: what depends on the threads' order is an error.
struct InterpreterShared {
  static constexpr int nobody = -1, several = -2;
  struct Cell {
    std::optional<Lane> value;
    int writer = nobody, reader = nobody;  // since the barrier numbered `phase`
    int64_t phase = -1;
  };
  std::unordered_map<size_t, std::vector<Cell>> memory;                // by the place of a BUFFER
  std::unordered_map<size_t, std::unordered_map<size_t, int>> stored;  // PARAM, element -> thread
  int64_t phase = 0;
  bool alone = true;  // one thread: nobody can be in its way

  Cell& touch(size_t m, size_t size, size_t i);
  void write(Cell& c, size_t i, int thread, Lane v);
  Lane read(Cell& c, size_t i, int thread);
};

/// Where a thread is: its coordinates by the name of a SPECIAL.
using InterpreterPlace = std::map<std::string, int64_t, std::less<>>;

class InterpreterThread {
 public:
  /// Borrows the first three.
  InterpreterThread(const InterpreterCode& code, std::vector<InterpreterBuffer>& buffers,
                    InterpreterShared& shared, InterpreterPlace place, int thread);

  /// To the next barrier or matrix product, which is returned, or to the end.
  UOp run();
  UOp at() const { return code_.list[pc_]; }
  /// Operand k of the matrix product that run() returned, and where its result goes.
  const Lane* operand(size_t k) const { return &lanes_[code_.lanes[code_.source(pc_ - 1, k)]]; }
  Lane* result() { return value(pc_ - 1); }

 private:
  Lane* value(size_t i) { return &lanes_[code_.lanes[i]]; }
  Lane lane(size_t i, size_t k) const {
    return lanes_[code_.lanes[i] + (code_.widths[i] == 1 ? 0 : k)];
  }
  int64_t element(size_t address, size_t k) const;
  size_t checked(UOp memory, int64_t i) const;
  InterpreterShared::Cell& shared_cell(size_t place, size_t i);
  bool closed(UOp u, size_t k) const;
  void load(UOp u);
  void store(UOp u);
  void multiply(UOp u);
  void evaluate(UOp u);

  const InterpreterCode& code_;
  std::vector<InterpreterBuffer>& buffers_;
  InterpreterShared& shared_;
  InterpreterPlace place_;
  int thread_;
  size_t pc_ = 0;
  std::vector<Lane> lanes_;
  std::unordered_map<size_t, std::vector<std::optional<Lane>>> registers_;  // by place
};

}  // namespace beamline
