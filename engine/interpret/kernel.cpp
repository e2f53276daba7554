#include "engine/interpret/kernel.h"

#include <fmt/format.h>

#include "engine/interpret/matrix_product.h"
#include "engine/interpret/thread.h"

namespace beamline {
namespace {

// The n-th point of a grid, x fastest.
void locate(InterpreterPlace& place, const char* prefix, const std::vector<int64_t>& sizes,
            int64_t n) {
  for (size_t d = 0; d < sizes.size(); d++) {
    place[fmt::format("{}{}", prefix, d)] = n % sizes[d];
    n /= sizes[d];
  }
}
int64_t points(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// Of every warp of the group, whose threads have come to the matrix product u.
std::optional<std::string> multiply(UOp u, std::vector<InterpreterThread>& threads) {
  const TensorCore& core = *tensor_core(u.text());
  const auto warp = static_cast<size_t>(core.shape->threads);
  if (threads.size() % warp != 0)
    return fmt::format("a group of {} threads is not made of warps of {}", threads.size(), warp);
  for (size_t first = 0; first < threads.size(); first += warp) {
    WarpValues values;
    for (size_t t = first; t < first + warp; t++) {
      values.a.push_back(threads[t].operand(0));
      values.b.push_back(threads[t].operand(1));
      values.c.push_back(threads[t].operand(2));
      values.d.push_back(threads[t].result());
    }
    if (auto error = multiply_matrices(core, values)) return error;
  }
  return std::nullopt;
}

std::optional<std::string> run_group(const InterpreterCode& code,
                                     std::vector<InterpreterBuffer>& buffers,
                                     const InterpreterPlace& place,
                                     const std::vector<int64_t>& local) {
  InterpreterShared shared;
  shared.alone = points(local) == 1;
  std::vector<InterpreterThread> threads;
  for (int64_t t = 0; t < points(local); t++) {
    InterpreterPlace own = place;
    locate(own, "lidx", local, t);
    threads.emplace_back(code, buffers, shared, std::move(own), static_cast<int>(t));
  }
  while (true) {
    UOp barrier;
    for (size_t t = 0; t < threads.size(); t++) {
      try {
        const UOp reached = threads[t].run();
        if (t == 0) barrier = reached;
        if (!(reached == barrier))
          return "BARRIER: the threads of a group wait at different places";
      } catch (const InterpreterFailure& f) {
        return fmt::format("{}: {}", op_name(threads[t].at().op()), f.what);
      }
    }
    if (!barrier) return std::nullopt;
    if (barrier.op() == Op::BARRIER) {
      shared.phase++;
    } else if (const auto error = multiply(barrier, threads)) {
      return fmt::format("WMMA: {}", *error);
    }
  }
}

}  // namespace

InterpreterBuffer make_buffer(DType t, size_t elements) {
  InterpreterBuffer b{t, {}, {}};
  if (is_float(t))
    b.floats.assign(elements, 0);
  else
    b.ints.assign(elements, 0);
  return b;
}

std::optional<std::string> interpret(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers,
                                     const InterpreterGrid& grid) {
  for (UOp u : list)
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global &&
        u.param().slot >= static_cast<int64_t>(buffers.size()))
      return fmt::format("PARAM {} has no buffer", u.param().slot);
  const InterpreterCode code(list);
  for (int64_t core = 0; core < grid.threads; core++)
    for (int64_t group = 0; group < points(grid.global); group++) {
      InterpreterPlace place{{"core_id", core}};
      locate(place, "gidx", grid.global, group);
      if (auto error = run_group(code, buffers, place, grid.local)) return error;
    }
  return std::nullopt;
}

std::optional<std::string> interpret(const LinearKernel& kernel,
                                     std::vector<InterpreterBuffer>& buffers) {
  const auto exchange = [&](const LinearLayout& l, InterpreterBuffer& other) {
    std::swap(buffers.at(static_cast<size_t>(l.slot)), other);
  };
  std::vector<InterpreterBuffer> aside;
  std::optional<std::string> error;
  for (const LinearLayout& l : kernel.layouts) {
    const LinearArg& made = l.kernel.args.at(0);
    std::vector<InterpreterBuffer> both(2);
    both[0] = make_buffer(made.dtype, static_cast<size_t>(made.elements));
    exchange(l, both[1]);
    if (!error) error = interpret(l.kernel, both);
    exchange(l, both[0]);
    aside.push_back(std::move(both[1]));
  }
  if (!error)
    error = interpret(kernel.list, buffers,
                      {kernel.grid.threads, kernel.grid.global, kernel.grid.local});
  for (size_t i = 0; i < aside.size(); i++) exchange(kernel.layouts[i], aside[i]);
  return error;
}

}  // namespace beamline
