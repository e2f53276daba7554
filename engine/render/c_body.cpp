#include "engine/render/c_body.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"
#include "engine/rules/linear.h"

namespace beamline {

std::string CBody::value(UOp u, int64_t w) {
  if (alone_ && lanes_of(u) > 0) return lanes_.at(u).at(*alone_);
  const std::string scalar = u.is_const() ? scalar_literal(u) : names_.at(u);
  if (w == width(u)) return scalar;
  CHECK(width(u) == 0);
  return fmt::format("(({}){}({}))", type(u.dtype(), w), u.dtype() == DType::Bool ? "-" : "",
                     scalar);
}
std::string CBody::lane(UOp u, int64_t k) {
  if (lanes_of(u) == 0) return value(u, 0);
  if (splits()) return lanes_.at(u).at(static_cast<size_t>(k));
  const std::string v = element(names_.at(u), k);
  return u.dtype() == DType::Bool ? fmt::format("({} != 0)", v) : v;
}
std::string CBody::pointer(UOp buffer) {
  return fmt::format("{}{}", buffer.op() == Op::PARAM ? "p" : "acc", buffer.param().slot);
}
std::string CBody::place(UOp at, int64_t k) {
  const UOp index = at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1);
  const std::string i =
      at.op() == Op::SHRINK ? fmt::format("{} + {}", value(index, 0), k) : lane(index, k);
  return fmt::format("{}[{}]", pointer(memory_of(at)), i);
}
std::string_view CBody::space(UOp memory) const {
  return memory.addrspace() == AddrSpace::Global  ? dialect_.global_space
         : memory.addrspace() == AddrSpace::Local ? dialect_.local_space
                                                  : dialect_.thread_space;
}
bool CBody::moves_whole(UOp at, int64_t w) {
  if (at.op() != Op::SHRINK || memory_of(at).addrspace() == AddrSpace::Reg) return false;
  if (!std::has_single_bit(static_cast<uint64_t>(w)) || w * dtype_bytes(at.dtype()) > 16)
    return false;
  const auto sum = linear(at.src(1).src(0));
  return sum && sum->constant % w == 0 &&
         std::ranges::all_of(sum->terms, [&](const Term& t) { return t.coef % w == 0; });
}
std::vector<std::string> CBody::load_lanes(UOp u) {
  const UOp at = u.src(0);
  const int64_t w = lanes_of(u);
  const bool gated = u.nsrc() == 3;
  if (!gated && moves_whole(at, w)) {
    const std::string t = moved_type(u.dtype(), w), name = fmt::format("v{}", next_++);
    put("{1} {2} = *({0}const {1}*)&{3};", space(memory_of(at)), t, name, place(at, 0));
    return lanes_of_struct(name, u.dtype(), w);
  }
  std::vector<std::string> out;
  const std::string t(scalar_type(u.dtype()));
  for (int64_t k = 0; k < w; k++)
    out.push_back(gated ? let(t, "{} ? {} : {}", lane(u.src(2), k), place(at, k), lane(u.src(1), k))
                        : let(t, "{}", place(at, k)));
  return out;
}
std::string CBody::gathered(UOp u, DType t, int64_t w) {
  std::string list;
  for (int64_t k = 0; k < w; k++) list += (k ? ", " : "") + lane(u, k);
  return let(moved_type(t, w), "{{{{{}}}}}", list);
}
std::string CBody::load(UOp u) {
  const UOp at = u.src(0);
  const DType t = u.dtype();
  const int64_t w = width(u);
  const bool gated = u.nsrc() == 3, byte = t == DType::Bool;
  if (w == 0) {
    const std::string p = place(at, 0);
    return gated ? let(type(u), "{} ? {} : {}", value(u.src(2), 0), p, value(u.src(1), 0))
                 : let(type(u), "{}", p);
  }
  const std::string name = fmt::format("v{}", next_++);
  if (at.op() == Op::SHRINK && !gated) {
    put("{} {};", type(u), name);
    put("{}",
        fmt::format(fmt::runtime(dialect_.vector_load), name, place(at, 0), w * dtype_bytes(t), w));
    if (byte) put("{0} = {0} != 0;", name);
    return name;
  }
  put("{} {} = {};", type(u), name,
      gated ? value(u.src(1), w) : fmt::format("({})({})", type(u), 0));
  for (int64_t k = 0; k < w; k++)
    put("{}{} = {}{};", gated ? fmt::format("if ({}) ", lane(u.src(2), k)) : "", element(name, k),
        byte ? "-" : "", place(at, k));
  return name;
}
void CBody::store(UOp u) {
  const UOp at = u.src(0), v = u.src(1);
  const DType t = memory_of(at).dtype();
  const int64_t w = at.op() == Op::SHRINK ? at.src(2).src(0).ival() : width(at.src(1));
  const bool gated = u.nsrc() == 3;
  if (splits() && w > 0 && !gated && moves_whole(at, w)) {
    const std::string x = gathered(v, t, w);
    put("*({}{}*)&{} = {};", space(memory_of(at)), moved_type(t, w), place(at, 0), x);
    return;
  }
  if (at.op() == Op::SHRINK && !gated && t != DType::Bool && !splits()) {
    const std::string x = let(type(t, w), "{}", value(v, w));
    put("{}",
        fmt::format(fmt::runtime(dialect_.vector_store), x, place(at, 0), w * dtype_bytes(t), w));
    return;
  }
  for (int64_t k = 0; k < std::max<int64_t>(w, 1); k++)
    put("{}{} = {};", gated ? fmt::format("if ({}) ", lane(u.src(2), k)) : "", place(at, k),
        lane(v, k));
}

// The address is a number: it may lie beyond the buffer.
void CBody::prefetch(UOp at, bool written) {
  if (dialect_.prefetch.empty()) return;
  const UOp index = at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1);
  for (int64_t k = 0; k < std::max<int64_t>(width(index), 1); k++)
    put("{}", fmt::format(fmt::runtime(dialect_.prefetch), pointer(memory_of(at)), lane(index, k),
                          dtype_bytes(at.dtype()), written ? "1" : "0, 2"));
}

}  // namespace beamline
