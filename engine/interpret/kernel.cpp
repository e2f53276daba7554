#include "engine/interpret/kernel.h"

#include <cmath>
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

class Interpreter {
 public:
  Interpreter(std::span<const UOp> list, std::vector<InterpreterBuffer>& buffers, int64_t core)
      : list_(list), buffers_(buffers), core_(core) {}

  void run() {
    std::unordered_map<UOp, size_t, UOpHash> start;
    for (size_t pc = 0; pc < list_.size(); pc++) {
      const UOp u = list_[pc];
      at_ = u;
      switch (u.op()) {
        case Op::RANGE:
          start[u] = pc;
          values_[u] = {{0, 0}};
          break;
        case Op::END: {
          const UOp r = u.src(1);
          int64_t& i = values_.at(r)[0].i;
          if (++i < values_.at(r.src(0))[0].i) pc = start.at(r);
          break;
        }
        case Op::BUFFER:
          registers_[u] = std::vector<std::optional<Lane>>(static_cast<size_t>(u.numel()));
          break;
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
  }
  UOp at() const { return at_; }

 private:
  static UOp memory_of(UOp p) {
    while (p.op() != Op::PARAM && p.op() != Op::BUFFER) p = p.src(0);
    return p;
  }
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
                          ? registers_.at(memory).size()
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
      if (m.op() == Op::BUFFER) {
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
      case Op::SPECIAL: return {{core_, 0}};
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
  int64_t core_;
  UOp at_;
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

std::optional<std::string> interpret(std::span<const UOp> list,
                                     std::vector<InterpreterBuffer>& buffers, int64_t threads) {
  for (UOp u : list)
    if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Global &&
        u.param().slot >= static_cast<int64_t>(buffers.size()))
      return fmt::format("PARAM {} has no buffer", u.param().slot);
  for (int64_t core = 0; core < threads; core++) {
    Interpreter run(list, buffers, core);
    try {
      run.run();
    } catch (const Failure& f) {
      return fmt::format("{}: {}", op_name(run.at().op()), f.what);
    }
  }
  return std::nullopt;
}

}  // namespace beamline
