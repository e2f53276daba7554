#include "engine/interpret/thread.h"

#include <fmt/format.h>

#include "engine/interpret/arithmetic.h"
#include "engine/ir/node_map.h"

namespace beamline {
namespace {

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
  if (!r)
    throw InterpreterFailure{
        fmt::format("{} of {} and {} is undefined", op_name(u.op()), a.i, b.i)};
  return {*r, 0};
}

}  // namespace

InterpreterCode::InterpreterCode(std::span<const UOp> nodes) : list(nodes) {
  NodeMap<size_t> place;
  for (size_t i = 0; i < list.size(); i++) {
    const UOp u = list[i];
    place.insert(u.node(), i);
    first_source.push_back(sources.size());
    for (size_t k = 0; k < u.nsrc(); k++) sources.push_back(*place.find(u.src(k).node()));
    widths.push_back(u.shape().empty() ? 1 : static_cast<size_t>(u.shape()[0]));
    const bool is_memory =
        u.op() == Op::PARAM || u.op() == Op::BUFFER || u.op() == Op::AFTER || u.op() == Op::SHRINK;
    lanes.push_back(all_lanes);
    if (!is_memory) all_lanes += widths.back();
    const bool accesses = u.op() == Op::LOAD || u.op() == Op::STORE;
    memory.push_back(accesses            ? *place.find(memory_of(u.src(0)).node())
                     : u.op() == Op::END ? *place.find(u.src(1).node())
                                         : 0);
  }
}

InterpreterShared::Cell& InterpreterShared::touch(size_t m, size_t size, size_t i) {
  std::vector<Cell>& cells = memory[m];
  if (cells.empty()) cells.resize(size);
  Cell& c = cells[i];
  if (c.phase != phase) c.phase = phase, c.writer = c.reader = nobody;
  return c;
}

void InterpreterShared::write(Cell& c, size_t i, int thread, Lane v) {
  const bool other =
      (c.writer != nobody && c.writer != thread) || (c.reader != nobody && c.reader != thread);
  if (other)
    throw InterpreterFailure{fmt::format("shared element {} is touched by another thread too", i)};
  c.writer = thread;
  c.value = v;
}

Lane InterpreterShared::read(Cell& c, size_t i, int thread) {
  if (c.writer != nobody && c.writer != thread)
    throw InterpreterFailure{
        fmt::format("shared element {} is read without a barrier after its write", i)};
  if (!c.value)
    throw InterpreterFailure{fmt::format("shared element {} is read before it is written", i)};
  c.reader = c.reader == nobody || c.reader == thread ? thread : several;
  return *c.value;
}

InterpreterThread::InterpreterThread(const InterpreterCode& code,
                                     std::vector<InterpreterBuffer>& buffers,
                                     InterpreterShared& shared, InterpreterPlace place, int thread)
    : code_(code),
      buffers_(buffers),
      shared_(shared),
      place_(std::move(place)),
      thread_(thread),
      lanes_(code.all_lanes) {}

UOp InterpreterThread::run() {
  for (; pc_ < code_.list.size(); pc_++) {
    const UOp u = code_.list[pc_];
    switch (u.op()) {
      case Op::RANGE: *value(pc_) = {0, 0}; break;
      case Op::END: {
        const size_t r = code_.memory[pc_];
        if (++value(r)->i < lane(code_.source(r, 0), 0).i) pc_ = r;
        break;
      }
      case Op::BUFFER:
        if (u.addrspace() != AddrSpace::Local)
          registers_[pc_].assign(static_cast<size_t>(u.numel()), std::nullopt);
        break;
      case Op::BARRIER: pc_++; return u;
      case Op::WMMA:
        if (tensor_core(u.text())->shape->by_lane()) {
          multiply(u);
          break;
        }
        pc_++;
        return u;
      case Op::STORE: store(u); break;
      case Op::INDEX:
        if (u.src(0).addrspace() == AddrSpace::None)
          *value(pc_) = lane(code_.source(pc_, 0), static_cast<size_t>(u.src(1).ival()));
        break;
      case Op::PARAM:
      case Op::SHRINK:
      case Op::AFTER:
      case Op::GROUP:
      case Op::NOOP:
      case Op::SINK: break;
      default: evaluate(u);
    }
  }
  return UOp{};
}

int64_t InterpreterThread::element(size_t address, size_t k) const {
  const UOp u = code_.list[address];
  const size_t index = code_.source(address, 1);
  // A SHRINK's offset is a STACK of one.
  if (u.op() == Op::SHRINK) return lane(index, 0).i + static_cast<int64_t>(k);
  return lane(index, k).i;
}

size_t InterpreterThread::checked(UOp memory, int64_t i) const {
  const auto size = memory.op() == Op::BUFFER
                        ? static_cast<size_t>(memory.numel())
                        : buffers_.at(static_cast<size_t>(memory.param().slot)).size();
  if (i < 0 || i >= static_cast<int64_t>(size))
    throw InterpreterFailure{fmt::format("element {} of {} {} with {} elements", i,
                                         op_name(memory.op()), memory.param().slot, size)};
  return static_cast<size_t>(i);
}

InterpreterShared::Cell& InterpreterThread::shared_cell(size_t place, size_t i) {
  return shared_.touch(place, static_cast<size_t>(code_.list[place].numel()), i);
}

bool InterpreterThread::closed(UOp u, size_t k) const {
  return u.nsrc() == 3 && lane(code_.source(pc_, 2), k).i == 0;
}

void InterpreterThread::load(UOp u) {
  const size_t place = code_.memory[pc_], address = code_.source(pc_, 0);
  const UOp m = code_.list[place];
  Lane* out = value(pc_);
  for (size_t k = 0; k < code_.widths[pc_]; k++) {
    if (closed(u, k)) {
      out[k] = lane(code_.source(pc_, 1), k);
      continue;
    }
    const size_t at = checked(m, element(address, k));
    if (m.addrspace() == AddrSpace::Local) {
      out[k] = shared_.read(shared_cell(place, at), at, thread_);
    } else if (m.op() == Op::BUFFER) {
      const auto& r = registers_.at(place)[at];
      if (!r) throw InterpreterFailure{fmt::format("register {} is read before it is written", at)};
      out[k] = *r;
    } else {
      const InterpreterBuffer& b = buffers_[static_cast<size_t>(m.param().slot)];
      out[k] = is_float(b.dtype) ? Lane{0, b.floats[at]} : Lane{b.ints[at], 0};
    }
  }
}

void InterpreterThread::store(UOp u) {
  const size_t place = code_.memory[pc_], address = code_.source(pc_, 0),
               from = code_.source(pc_, 1);
  const UOp m = code_.list[place];
  for (size_t k = 0; k < code_.widths[address]; k++) {
    if (closed(u, k)) continue;
    const size_t at = checked(m, element(address, k));
    const Lane v = lane(from, k);
    if (m.addrspace() == AddrSpace::Local) {
      shared_.write(shared_cell(place, at), at, thread_, v);
      continue;
    }
    if (m.op() == Op::BUFFER) {
      registers_.at(place)[at] = v;
      continue;
    }
    if (!shared_.alone && shared_.stored[place].try_emplace(at, thread_).first->second != thread_)
      throw InterpreterFailure{fmt::format(
          "element {} of PARAM {} is written by two threads of a group", at, m.param().slot)};
    InterpreterBuffer& b = buffers_[static_cast<size_t>(m.param().slot)];
    if (is_float(b.dtype))
      b.floats[at] = v.f;
    else
      b.ints[at] = v.i;
  }
}

void InterpreterThread::multiply(UOp u) {
  LaneValues v;
  v.lanes = code_.widths[pc_];
  const auto source = [&](size_t k, const Lane*& at, size_t& elements) {
    at = value(code_.source(pc_, k)), elements = code_.widths[code_.source(pc_, k)];
  };
  source(0, v.a, v.a_elements), source(1, v.b, v.b_elements), source(2, v.c, v.c_elements);
  v.d = value(pc_);
  multiply_lanes(*tensor_core(u.text()), v);
}

void InterpreterThread::evaluate(UOp u) {
  Lane* out = value(pc_);
  switch (u.op()) {
    case Op::CONST:
      *out = is_float(u.dtype()) ? Lane{0, u.fval()} : Lane{wrap_to(u.dtype(), u.ival()), 0};
      return;
    case Op::SPECIAL: {
      const auto it = place_.find(u.text());
      if (it == place_.end()) throw InterpreterFailure{fmt::format("the grid has no {}", u.text())};
      *out = {it->second, 0};
      return;
    }
    case Op::LOAD: load(u); return;
    case Op::STACK:
      for (size_t i = 0; i < u.nsrc(); i++) out[i] = lane(code_.source(pc_, i), 0);
      return;
    case Op::REDUCE: {
      const size_t from = code_.source(pc_, 0);
      Lane sum = lane(from, 0);
      for (size_t k = 1; k < code_.widths[from]; k++) {
        const Lane v = lane(from, k);
        if (is_float(u.dtype()))
          sum.f = round_to(u.dtype(), real_arithmetic(u.reduce_op(), sum.f, v.f, 0));
        else
          sum.i = whole_arithmetic(u.reduce_op(), u.dtype(), sum.i, v.i, 0).value_or(0);
      }
      *out = sum;
      return;
    }
    default: break;
  }
  if (!ops::elementwise.has(u.op()))
    throw InterpreterFailure{"this op does not belong into a linear kernel"};
  for (size_t k = 0; k < code_.widths[pc_]; k++) {
    const auto arg = [&](size_t i) {
      return u.nsrc() > i ? lane(code_.source(pc_, i), k) : Lane{};
    };
    out[k] = alu_op(u, arg(0), arg(1), arg(2));
  }
}

}  // namespace beamline
