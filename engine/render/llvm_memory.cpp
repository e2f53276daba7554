// The part of LlvmBody that reads and writes memory.
#include <algorithm>

#include "engine/render/llvm_body.h"

namespace beamline {

using namespace llvm_words;

// A power of two that divides an index: what is known from its sums and multiples.
int64_t LlvmBody::divisor(UOp u) const {
  if (u.is_const())
    return u.ival() == 0 ? stream_align : std::min(stream_align, u.ival() & -u.ival());
  const auto at = divisors_.find(u);
  return at == divisors_.end() ? 1 : at->second;
}

void LlvmBody::note_divisor(UOp u) {
  if (!streaming_ || is_float(u.dtype()) || u.nsrc() == 0) return;
  int64_t d = 1;
  switch (u.op()) {
    case Op::ADD:
    case Op::SUB: d = std::min(divisor(u.src(0)), divisor(u.src(1))); break;
    case Op::MUL: d = divisor(u.src(0)) * divisor(u.src(1)); break;
    case Op::SHL: d = u.src(1).is_const() ? divisor(u.src(0)) << u.src(1).ival() : 1; break;
    case Op::CAST: d = divisor(u.src(0)); break;
    default: return;
  }
  divisors_.emplace(u, std::min(d, stream_align));
}

// A whole vector at an address that is a multiple of its size, if that of the memory is.
bool LlvmBody::streams(UOp at, int64_t w, DType t) const {
  const int64_t bytes = w * dtype_bytes(t);
  return streaming_ && at.op() == Op::SHRINK && memory_of(at).op() == Op::PARAM &&
         (bytes == 16 || bytes == 32 || bytes == 64) &&
         divisor(at.src(1).src(0)) * dtype_bytes(t) % bytes == 0;
}

std::string LlvmBody::pointer(UOp buffer) {
  return buffer.op() == Op::PARAM ? fmt::format("%p{}", buffer.param().slot)
                                  : fmt::format("%acc{}", buffer.param().slot);
}

// base + index elements; a constant at the end of the sum becomes an offset of its own.
std::string LlvmBody::element(UOp buffer, UOp index) {
  const std::string_view t = memory_type(buffer.dtype());
  if (index.op() == Op::ADD && index.src(1).is_const()) {
    const std::string p =
        line("getelementptr {}, ptr {}, i64 {}", t, pointer(buffer), value(index.src(0), 0));
    return line("getelementptr {}, ptr {}, i64 {}", t, p, literal(index.src(1)));
  }
  return line("getelementptr {}, ptr {}, i64 {}", t, pointer(buffer), value(index, 0));
}

std::string LlvmBody::lane_index(UOp index, int64_t lane, const std::string& gate, int64_t gates) {
  std::string i = value(index, width(index));
  if (width(index)) i = line("extractelement {} {}, i64 {}", type(index), i, lane);
  if (gate.empty()) return i;
  // A gated-off access reads element 0, which every buffer has; its value is not used.
  const std::string g =
      gates ? line("extractelement <{} x i1> {}, i64 {}", gates, gate, lane) : gate;
  return line("select i1 {}, i64 {}, i64 0", g, i);
}

std::string LlvmBody::to_value(const std::string& v, DType t, int64_t w) {
  return t == DType::Bool ? line("icmp ne {} {}, {}", type("i8", w), v, w ? "zeroinitializer" : "0")
                          : v;
}

std::string LlvmBody::load(UOp u) {
  const UOp at = u.src(0), buffer = memory_of(at);
  const DType t = u.dtype();
  const std::string_view m = memory_type(t);
  const int64_t w = width(u);
  const bool gated = u.nsrc() == 3;
  const UOp gate = gated ? u.src(2) : UOp{};
  if (at.op() == Op::SHRINK) {
    const std::string p = element(buffer, at.src(1).src(0)), vt = type(m, w);
    if (!gated) return to_value(line("load {}, ptr {}, align {}", vt, p, dtype_bytes(t)), t, w);
    const std::string name =
        fmt::format("llvm.masked.load.{}.p0", suffix(t == DType::Bool ? DType::I8 : t, w));
    declare(vt, name, fmt::format("ptr, i32, <{} x i1>, {}", w, vt));
    const UOp alt = u.src(1);
    const std::string passthru = t == DType::Bool ? "zeroinitializer" : value(alt, w);
    return to_value(line("call {} @{}(ptr {}, i32 {}, <{} x i1> {}, {} {})", vt, name, p,
                         dtype_bytes(t), w, value(gate, w), vt, passthru),
                    t, w);
  }
  const UOp index = at.src(1);
  const std::string g = gated ? value(gate, width(gate)) : "";
  if (!w) {
    const std::string p = gated ? line("getelementptr {}, ptr {}, i64 {}", m, pointer(buffer),
                                       lane_index(index, 0, g, 0))
                                : element(buffer, index);
    const std::string v = to_value(line("load {}, ptr {}, align {}", m, p, dtype_bytes(t)), t, 0);
    return gated ? line("select i1 {}, {} {}, {} {}", g, scalar_type(t), v, scalar_type(t),
                        value(u.src(1), 0))
                 : v;
  }
  std::string v = "poison";
  for (int64_t i = 0; i < w; i++) {
    const std::string p = line("getelementptr {}, ptr {}, i64 {}", m, pointer(buffer),
                               lane_index(index, i, g, gated ? width(gate) : 0));
    v = line("insertelement {} {}, {} {}, i64 {}", type(m, w), v, m,
             line("load {}, ptr {}, align {}", m, p, dtype_bytes(t)), i);
  }
  v = to_value(v, t, w);
  if (!gated) return v;
  return line("select <{} x i1> {}, {} {}, {} {}", w, value(gate, w), type(u), v, type(u),
              value(u.src(1), w));
}

void LlvmBody::store(UOp u) {
  const UOp at = u.src(0), buffer = memory_of(at), v = u.src(1);
  const DType t = buffer.dtype();
  const std::string_view m = memory_type(t);
  const int64_t w = at.op() == Op::SHRINK ? at.src(2).src(0).ival() : width(at.src(1));
  std::string x = value(v, w);
  if (t == DType::Bool) x = line("zext {} {} to {}", type("i1", w), x, type("i8", w));
  const bool gated = u.nsrc() == 3, past = !gated && streams(at, w, t);
  ordinary_stores_ |= !past && buffer.op() == Op::PARAM;
  if (at.op() == Op::SHRINK || w == 0) {
    const std::string p = element(buffer, at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1)),
                      vt = type(m, w);
    if (!gated) {
      body_ +=
          fmt::format("  store {} {}, ptr {}, align {}{}\n", vt, x, p,
                      past ? w * dtype_bytes(t) : dtype_bytes(t), past ? ", !nontemporal !0" : "");
      return;
    }
    const int64_t n = w ? w : 1;
    const std::string mt = type(m, n),
                      name = fmt::format("llvm.masked.store.{}.p0",
                                         suffix(t == DType::Bool ? DType::I8 : t, n));
    std::string g = value(u.src(2), w);
    if (!w) {
      x = line("insertelement {} poison, {} {}, i64 0", mt, m, x);
      g = line("insertelement <1 x i1> poison, i1 {}, i64 0", g);
    }
    declare("void", name, fmt::format("{}, ptr, i32, <{} x i1>", mt, n));
    body_ += fmt::format("  call void @{}({} {}, ptr {}, i32 {}, <{} x i1> {})\n", name, mt, x, p,
                         dtype_bytes(t), n, g);
    return;
  }
  const std::string mt = type(m, w),
                    name = fmt::format("llvm.masked.scatter.{}.v{}p0",
                                       suffix(t == DType::Bool ? DType::I8 : t, w), w);
  const std::string p =
      line("getelementptr {}, ptr {}, <{} x i64> {}", m, pointer(buffer), w, value(at.src(1), w));
  declare("void", name, fmt::format("{}, <{} x ptr>, i32, <{} x i1>", mt, w, w));
  body_ += fmt::format("  call void @{}({} {}, <{} x ptr> {}, i32 {}, <{} x i1> {})\n", name, mt, x,
                       w, p, dtype_bytes(t), w,
                       gated ? value(u.src(2), w) : fmt::format("splat (i1 true)"));
}

// For writing into the innermost cache, else into the second: there is time. The address may lie
// beyond the buffer: it is only a hint.
void LlvmBody::prefetch(UOp at, bool written) {
  declare("void", "llvm.prefetch.p0", "ptr, i32, i32, i32");
  const UOp index = at.op() == Op::SHRINK ? at.src(1).src(0) : at.src(1);
  for (int64_t k = 0; k < std::max<int64_t>(width(index), 1); k++) {
    const std::string p = width(index)
                              ? line("getelementptr {}, ptr {}, i64 {}", memory_type(at.dtype()),
                                     pointer(memory_of(at)), lane_index(index, k, "", 0))
                              : element(memory_of(at), index);
    body_ += fmt::format("  call void @llvm.prefetch.p0(ptr {}, i32 {}, i32 1)\n", p,
                         written ? "1, i32 3" : "0, i32 2");
  }
}

}  // namespace beamline
