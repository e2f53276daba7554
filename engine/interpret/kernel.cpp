#include "engine/interpret/kernel.h"

#include <cmath>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/interpret/arithmetic.h"

namespace beamline {
namespace {

struct Lane {
  int64_t i = 0;
  double f = 0;
};
using Value = std::vector<Lane>;  // one lane for a scalar

struct Failure {
  std::string what;
};

// Bits of an element as its type stores them, for BITCAST.
uint64_t to_bits(DType t, Lane v) {
  return is_float(t) ? float_to_bits(t, v.f) : static_cast<uint64_t>(v.i);
}
Lane from_bits(DType t, uint64_t b) {
  if (is_float(t)) return {0, float_from_bits(t, b)};
  return {wrap_to(t, static_cast<int64_t>(b)), 0};
}

Lane alu_op(UOp u, Lane a, Lane b, Lane c) {
  const DType in = u.src(u.op() == Op::WHERE ? 1 : 0).dtype(), out = u.dtype();
  if (u.op() == Op::WHERE) return a.i ? b : c;
  if (u.op() == Op::CAST) {
    if (out == DType::Bool) return {is_float(in) ? a.f != 0 : a.i != 0, 0};
    if (is_float(out))
      return {0, round_to(out, is_float(in)      ? a.f
                               : is_unsigned(in) ? static_cast<double>(static_cast<uint64_t>(a.i))
                                                 : static_cast<double>(a.i))};
    return {is_float(in) ? saturated(a.f, out) : wrap_to(out, a.i), 0};
  }
  if (u.op() == Op::BITCAST) return from_bits(out, to_bits(in, a));
  if (is_float(in)) {
    if (u.op() == Op::CMPLT) return {a.f < b.f, 0};
    if (u.op() == Op::CMPNE) return {a.f != b.f, 0};
    if (u.op() == Op::CMPEQ) return {a.f == b.f, 0};
    return {0, round_to(out, real_arithmetic(u.op(), a.f, b.f, c.f))};
  }
  if (ops::comparison.has(u.op())) return {compare_wholes(u.op(), in, a.i, b.i), 0};
  const auto r = whole_arithmetic(u.op(), out, a.i, b.i, c.i);
  if (!r) throw Failure{fmt::format("{} of {} and {} is undefined", op_name(u.op()), a.i, b.i)};
  return {*r, 0};
}

// Memory that the threads of a group share. Who touched an element since the last barrier is
// remembered: what depends on the threads' order is an error.
struct Shared {
  static constexpr int nobody = -1, several = -2;
  struct Cell {
    std::optional<Lane> value;
    int writer = nobody, reader = nobody;  // since the barrier numbered `phase`
    int64_t phase = -1;
  };
  std::unordered_map<UOp, std::vector<Cell>, UOpHash> memory;
  std::map<std::pair<int64_t, int64_t>, int> stored;  // slot and element -> thread of this group
  int64_t phase = 0;
  bool alone = true;  // one thread: nobody can be in its way

  Cell& touch(UOp m, size_t i) {
    std::vector<Cell>& cells = memory[m];
    if (cells.empty()) cells.resize(static_cast<size_t>(m.numel()));
    Cell& c = cells[i];
    if (c.phase != phase) c.phase = phase, c.writer = c.reader = nobody;
    return c;
  }
  void write(UOp m, size_t i, int thread, Lane v) {
    Cell& c = touch(m, i);
    const bool other =
        (c.writer != nobody && c.writer != thread) || (c.reader != nobody && c.reader != thread);
    if (other) throw Failure{fmt::format("shared element {} is touched by another thread too", i)};
    c.writer = thread;
    c.value = v;
  }
  Lane read(UOp m, size_t i, int thread) {
    Cell& c = touch(m, i);
    if (c.writer != nobody && c.writer != thread)
      throw Failure{fmt::format("shared element {} is read without a barrier after its write", i)};
    if (!c.value) throw Failure{fmt::format("shared element {} is read before it is written", i)};
    c.reader = c.reader == nobody || c.reader == thread ? thread : several;
    return *c.value;
  }
};

// Where a thread is: its coordinates by the name of a SPECIAL.
using Place = std::map<std::string, int64_t, std::less<>>;

class Interpreter {
 public:
  Interpreter(std::span<const UOp> list, std::vector<InterpreterBuffer>& buffers, Shared& shared,
              Place place, int thread)
      : list_(list),
        buffers_(buffers),
        shared_(shared),
        place_(std::move(place)),
        thread_(thread) {}

  // To the next barrier, which is returned, or to the end.
  UOp run() {
    for (; pc_ < list_.size(); pc_++) {
      const UOp u = list_[pc_];
      at_ = u;
      switch (u.op()) {
        case Op::RANGE:
          start_[u] = pc_;
          values_[u] = {{0, 0}};
          break;
        case Op::END: {
          const UOp r = u.src(1);
          int64_t& i = values_.at(r)[0].i;
          if (++i < values_.at(r.src(0))[0].i) pc_ = start_.at(r);
          break;
        }
        case Op::BUFFER:
          if (u.addrspace() != AddrSpace::Local)
            registers_[u] = std::vector<std::optional<Lane>>(static_cast<size_t>(u.numel()));
          break;
        case Op::BARRIER: pc_++; return u;
        case Op::STORE: store(u); break;
        case Op::INDEX:
          if (u.src(0).addrspace() == AddrSpace::None)
            values_[u] = {lane(u.src(0), static_cast<size_t>(u.src(1).ival()))};
          break;
        case Op::PARAM:
        case Op::SHRINK:
        case Op::AFTER:
        case Op::GROUP:
        case Op::SINK: break;
        default: values_[u] = evaluate(u);
      }
    }
    return UOp{};
  }
  UOp at() const { return at_; }

 private:
  Lane lane(UOp u, size_t k) const {
    const Value& v = values_.at(u);
    return v[v.size() == 1 ? 0 : k];
  }
  static size_t width(UOp u) { return u.shape().empty() ? 1 : static_cast<size_t>(u.shape()[0]); }
  int64_t element(UOp address, size_t k) const {
    if (address.op() == Op::SHRINK)
      return lane(address.src(1).src(0), 0).i + static_cast<int64_t>(k);
    return lane(address.src(1), k).i;
  }
  void check(UOp memory, int64_t i) const {
    const auto size = memory.op() == Op::BUFFER
                          ? static_cast<size_t>(memory.numel())
                          : buffers_.at(static_cast<size_t>(memory.param().slot)).size();
    if (i < 0 || i >= static_cast<int64_t>(size))
      throw Failure{fmt::format("element {} of {} {} with {} elements", i, op_name(memory.op()),
                                memory.param().slot, size)};
  }

  Value load(UOp u) {
    const UOp m = memory_of(u.src(0));
    Value v(width(u));
    for (size_t k = 0; k < v.size(); k++) {
      if (u.nsrc() == 3 && !lane(u.src(2), k).i) {
        v[k] = lane(u.src(1), k);
        continue;
      }
      const int64_t i = element(u.src(0), k);
      check(m, i);
      const auto at = static_cast<size_t>(i);
      if (m.addrspace() == AddrSpace::Local) {
        v[k] = shared_.read(m, at, thread_);
      } else if (m.op() == Op::BUFFER) {
        const auto& r = registers_.at(m)[at];
        if (!r) throw Failure{fmt::format("register {} is read before it is written", i)};
        v[k] = *r;
      } else {
        const InterpreterBuffer& b = buffers_[static_cast<size_t>(m.param().slot)];
        if (is_float(b.dtype))
          v[k].f = b.floats[at];
        else
          v[k].i = b.ints[at];
      }
    }
    return v;
  }
  void store(UOp u) {
    const UOp address = u.src(0), m = memory_of(address);
    const size_t w = width(address);
    for (size_t k = 0; k < w; k++) {
      if (u.nsrc() == 3 && !lane(u.src(2), k).i) continue;
      const int64_t i = element(address, k);
      check(m, i);
      const auto at = static_cast<size_t>(i);
      const Lane v = lane(u.src(1), k);
      if (m.addrspace() == AddrSpace::Local) {
        shared_.write(m, at, thread_, v);
        continue;
      }
      if (m.op() != Op::BUFFER && !shared_.alone) {
        const auto [it, first] = shared_.stored.try_emplace({m.param().slot, i}, thread_);
        if (it->second != thread_)
          throw Failure{fmt::format("element {} of PARAM {} is written by two threads of a group",
                                    i, m.param().slot)};
      }
      if (m.op() == Op::BUFFER)
        registers_.at(m)[at] = v;
      else if (InterpreterBuffer& b = buffers_[static_cast<size_t>(m.param().slot)];
               is_float(b.dtype))
        b.floats[at] = v.f;
      else
        b.ints[at] = v.i;
    }
  }
  Value evaluate(UOp u) {
    switch (u.op()) {
      case Op::CONST:
        return {is_float(u.dtype()) ? Lane{0, u.fval()} : Lane{wrap_to(u.dtype(), u.ival()), 0}};
      case Op::SPECIAL: {
        const auto it = place_.find(u.text());
        if (it == place_.end()) throw Failure{fmt::format("the grid has no {}", u.text())};
        return {{it->second, 0}};
      }
      case Op::LOAD: return load(u);
      case Op::STACK: {
        Value v;
        for (size_t i = 0; i < u.nsrc(); i++) v.push_back(lane(u.src(i), 0));
        return v;
      }
      case Op::REDUCE: {
        Lane sum = lane(u.src(0), 0);
        for (size_t k = 1; k < width(u.src(0)); k++) {
          const Lane v = lane(u.src(0), k);
          if (is_float(u.dtype()))
            sum.f = round_to(u.dtype(), real_arithmetic(u.reduce_op(), sum.f, v.f, 0));
          else
            sum.i = whole_arithmetic(u.reduce_op(), u.dtype(), sum.i, v.i, 0).value_or(0);
        }
        return {sum};
      }
      default: break;
    }
    if (!ops::elementwise.has(u.op()))
      throw Failure{"this op does not belong into a linear kernel"};
    Value v(width(u));
    for (size_t k = 0; k < v.size(); k++) {
      const Lane a = lane(u.src(0), k), b = u.nsrc() > 1 ? lane(u.src(1), k) : Lane{},
                 c = u.nsrc() > 2 ? lane(u.src(2), k) : Lane{};
      v[k] = alu_op(u, a, b, c);
    }
    return v;
  }

  std::span<const UOp> list_;
  std::vector<InterpreterBuffer>& buffers_;
  Shared& shared_;
  Place place_;
  int thread_;
  size_t pc_ = 0;
  UOp at_;
  std::unordered_map<UOp, size_t, UOpHash> start_;
  std::unordered_map<UOp, Value, UOpHash> values_;
  std::unordered_map<UOp, std::vector<std::optional<Lane>>, UOpHash> registers_;
};

}  // namespace

InterpreterBuffer make_buffer(DType t, size_t elements) {
  InterpreterBuffer b{t, {}, {}};
  if (is_float(t))
    b.floats.assign(elements, 0);
  else
    b.ints.assign(elements, 0);
  return b;
}

namespace {

// The n-th point of a grid, x fastest.
void locate(Place& place, const char* prefix, const std::vector<int64_t>& sizes, int64_t n) {
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

std::optional<std::string> run_group(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers, const Place& place,
                                     const std::vector<int64_t>& local) {
  Shared shared;
  shared.alone = points(local) == 1;
  std::vector<Interpreter> threads;
  for (int64_t t = 0; t < points(local); t++) {
    Place own = place;
    locate(own, "lidx", local, t);
    threads.emplace_back(list, buffers, shared, std::move(own), static_cast<int>(t));
  }
  for (;; shared.phase++) {
    UOp barrier;
    for (size_t t = 0; t < threads.size(); t++) {
      try {
        const UOp reached = threads[t].run();
        if (t == 0) barrier = reached;
        if (!(reached == barrier)) return "BARRIER: the threads of a group wait at different ones";
      } catch (const Failure& f) {
        return fmt::format("{}: {}", op_name(threads[t].at().op()), f.what);
      }
    }
    if (!barrier) return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> interpret(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers,
                                     const InterpreterGrid& grid) {
  for (UOp u : list)
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global &&
        u.param().slot >= static_cast<int64_t>(buffers.size()))
      return fmt::format("PARAM {} has no buffer", u.param().slot);
  for (int64_t core = 0; core < grid.threads; core++)
    for (int64_t group = 0; group < points(grid.global); group++) {
      Place place{{"core_id", core}};
      locate(place, "gidx", grid.global, group);
      if (auto error = run_group(list, buffers, place, grid.local)) return error;
    }
  return std::nullopt;
}

}  // namespace beamline
