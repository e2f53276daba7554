#include "engine/render/llvm_body.h"

#include "engine/base/check.h"

namespace beamline {

using namespace llvm_words;

namespace {

// Of two zeros MAX may give either: without the order of their signs it takes half the
// instructions.
std::string_view zeros_alike(DType t) { return is_float(t) ? "nsz " : ""; }

}  // namespace

std::string LlvmBody::function(std::string_view name, const std::string& params) const {
  return fmt::format("define internal void @{}({}) nounwind {{\nentry:\n{}{}  ret void\n}}\n\n",
                     name, params, allocas_, body_);
}

// The value of u in w lanes (0: as a scalar).
std::string LlvmBody::value(UOp u, int64_t w) {
  const int64_t have = width(u);
  if (u.is_const())
    return w ? fmt::format("splat ({} {})", scalar_type(u.dtype()), literal(u)) : literal(u);
  if (is_lane(u) && !names_.contains(u))
    names_[u] =
        line("extractelement {} {}, i64 {}", type(u.src(0)), names_.at(u.src(0)), u.src(1).ival());
  const std::string& v = names_.at(u);
  if (w == have) return v;
  CHECK(have == 0);
  // Blocks follow one another, and every loop runs at least once: what is defined stays defined.
  std::string& splatted = splats_[u];
  if (splatted.empty() || splat_width_[u] != w) {
    splatted = splat(v, scalar_type(u.dtype()), w);
    splat_width_[u] = w;
  }
  return splatted;
}

std::string LlvmBody::splat(const std::string& v, std::string_view scalar, int64_t w) {
  const std::string t = type(scalar, w);
  const std::string one = line("insertelement {} poison, {} {}, i64 0", t, scalar, v);
  return line("shufflevector {} {}, {} poison, <{} x i32> zeroinitializer", t, one, t, w);
}

// A STACK of lanes of at most two vectors is one shuffle of these.
bool LlvmBody::shuffled(UOp u) {
  UOp a, b;
  std::string mask;
  for (UOp s : u.srcs()) {
    if (!is_lane(s)) return false;
    const UOp v = s.src(0);
    if (!a)
      a = v;
    else if (!(v == a) && !b)
      b = v;
    if ((!(v == a) && !(v == b)) || width(v) != width(a)) return false;
    mask += fmt::format("{}i32 {}", mask.empty() ? "" : ", ",
                        s.src(1).ival() + (v == a ? 0 : width(a)));
  }
  names_[u] = line("shufflevector {0} {1}, {0} {2}, <{3} x i32> <{4}>", type(a), value(a, width(a)),
                   b ? value(b, width(a)) : "poison", width(u), mask);
  return true;
}

void LlvmBody::emit(UOp u) {
  switch (u.op()) {
    case Op::CONST:
    case Op::PARAM:
    case Op::INDEX:
    case Op::SHRINK:
    case Op::AFTER:
    case Op::GROUP:
    case Op::SINK:
      if (u.op() == Op::PARAM && u.addrspace() == AddrSpace::Alu)
        throw Unsupported{"run-time variables"};
      return;
    case Op::BUFFER:
      allocas_ += fmt::format("  %acc{} = alloca [{} x {}], align 64\n", u.param().slot, u.numel(),
                              memory_type(u.dtype()));
      return;
    case Op::STACK: {
      for (size_t i = 0; i < u.nsrc(); i++)
        if (!u.src(i).shape().empty()) return;  // a shape of shapes: never a value
      std::string v = "poison";
      if (u.dtype() == DType::WeakInt) return;  // a shape operand
      if (shuffled(u)) return;
      for (size_t i = 0; i < u.nsrc(); i++)
        v = line("insertelement {} {}, {} {}, i64 {}", type(u), v, scalar_type(u.dtype()),
                 value(u.src(i), 0), i);
      names_[u] = v;
      return;
    }
    case Op::SPECIAL:
      if (u.text() != "core_id") throw Unsupported{"grids"};
      names_[u] = "%core_id";
      return;
    case Op::RANGE: {
      const auto id = next_++;
      const std::string before = block_, t(scalar_type(u.dtype()));
      block_ = fmt::format("loop{}", id);
      body_ += fmt::format(
          "  br label %{0}\n{0}:\n  %i{1} = phi {2} [ 0, %{3} ], [ %n{1}, %latch{1} ]\n", block_,
          id, t, before);
      names_[u] = fmt::format("%i{}", id);
      loop_id_[u] = id;
      return;
    }
    case Op::END: {
      const UOp r = u.src(1);
      const auto id = loop_id_.at(r);
      const std::string t(scalar_type(r.dtype()));
      body_ += fmt::format("  br label %latch{0}\nlatch{0}:\n  %n{0} = add nuw nsw {1} %i{0}, 1\n",
                           id, t);
      const std::string more = line("icmp ult {} %n{}, {}", t, id, value(r.src(0), 0));
      body_ += fmt::format("  br i1 {0}, label %loop{1}, label %done{1}\ndone{1}:\n", more, id);
      block_ = fmt::format("done{}", id);
      return;
    }
    case Op::LOAD: names_[u] = load(u); return;
    case Op::STORE: store(u); return;
    case Op::NOOP: prefetch(u.src(0), is_written(kernel_, memory_of(u.src(0)))); return;
    case Op::CAST:
    case Op::BITCAST:
      names_[u] = convert(u);
      note_divisor(u);
      return;
    case Op::REDUCE: names_[u] = across(u); return;
    case Op::WMMA: names_[u] = product_by_lane(u); return;
    default:
      if (!ops::alu.has(u.op())) throw Unsupported{std::string(op_name(u.op()))};
      if (names_[u] = scaled(u); names_[u].empty()) names_[u] = alu_value(u);
      note_divisor(u);
  }
}

std::string LlvmBody::convert(UOp u) {
  const UOp s = u.src(0);
  const DType a = s.dtype(), b = u.dtype();
  const int64_t w = width(u);
  const std::string from = type(s), to = type(u), v = value(s, w);
  if (u.op() == Op::BITCAST) return line("bitcast {} {} to {}", from, v, to);
  if (b == DType::Bool)
    return is_float(a) ? line("fcmp une {} {}, {}", from, v, w ? "zeroinitializer" : "0.0")
                       : line("icmp ne {} {}, {}", from, v, w ? "zeroinitializer" : "0");
  if (is_float(a) && is_float(b)) {
    if (dtype_bytes(a) == dtype_bytes(b)) throw Unsupported{"casts between f16 and bf16"};
    return line("{} {} {} to {}", dtype_bytes(a) < dtype_bytes(b) ? "fpext" : "fptrunc", from, v,
                to);
  }
  if (is_float(b))
    return line("{} {} {} to {}", is_unsigned(a) || a == DType::Bool ? "uitofp" : "sitofp", from, v,
                to);
  if (is_float(a)) {
    const std::string name = fmt::format("llvm.fpto{}i.sat.{}.{}", is_unsigned(b) ? "u" : "s",
                                         suffix(b, w), suffix(a, w));
    declare(to, name, from);
    return line("call {} @{}({} {})", to, name, from, v);
  }
  if (a != DType::Bool && dtype_bytes(a) == dtype_bytes(b)) return v;
  if (a != DType::Bool && dtype_bytes(a) > dtype_bytes(b))
    return line("trunc {} {} to {}", from, v, to);
  return line("{} {} {} to {}", is_unsigned(a) || a == DType::Bool ? "zext" : "sext", from, v, to);
}

std::string LlvmBody::alu_value(UOp u) {
  const int64_t w = width(u);
  const DType t = u.src(u.op() == Op::WHERE ? 1 : 0).dtype();
  const auto pick = [&](std::string_view f, std::string_view s, std::string_view n) {
    return is_float(t) ? f : is_unsigned(t) || t == DType::Bool ? n : s;
  };
  const std::string vt = type(scalar_type(t), w);
  if (u.op() == Op::WHERE)
    return line("select {} {}, {} {}, {} {}", type("i1", w), value(u.src(0), w), vt,
                value(u.src(1), w), vt, value(u.src(2), w));
  if (u.op() == Op::NEG)
    return is_float(t) ? line("fneg {} {}", vt, value(u.src(0), w))
                       : line("sub {} {}, {}", vt, w ? "zeroinitializer" : "0", value(u.src(0), w));
  for (const Instruction& i : all_instructions())
    if (i.op == u.op())
      if (const auto name = pick(i.f, i.s, i.u); !name.empty())
        return line("{} {} {}, {}", name, vt, value(u.src(0), w), value(u.src(1), w));
  for (const Intrinsic& i : all_intrinsics()) {
    if (i.op != u.op()) continue;
    const auto base = pick(i.f, i.s, i.u);
    if (base.empty()) break;
    const std::string name = fmt::format("llvm.{}.{}", base, suffix(t, w));
    if (u.nsrc() == 1) {
      declare(vt, name, vt);
      return line("call {} @{}({} {})", vt, name, vt, value(u.src(0), w));
    }
    declare(vt, name, fmt::format("{}, {}", vt, vt));
    return line("call {}{} @{}({} {}, {} {})", zeros_alike(t), vt, name, vt, value(u.src(0), w), vt,
                value(u.src(1), w));
  }
  throw Unsupported{fmt::format("{} of {}", op_name(u.op()), dtype_name(t))};
}

std::string LlvmBody::across(UOp u) {
  const UOp s = u.src(0);
  const DType t = u.dtype();
  const std::string vt = type(s), st(scalar_type(t));
  for (const Intrinsic& i : all_intrinsics()) {
    if (i.op != u.reduce_op()) continue;
    const std::string name = fmt::format("llvm.vector.reduce.{}.{}",
                                         is_float(t)                          ? i.reduce_f
                                         : is_unsigned(t) || t == DType::Bool ? i.reduce_u
                                                                              : i.reduce_s,
                                         suffix(t, width(s)));
    if (is_float(t) && i.op != Op::MAX) {
      declare(st, name, fmt::format("{}, {}", st, vt));
      const UOp start = fconst(i.op == Op::ADD ? -0.0 : 1.0, t);
      return line("call reassoc {} @{}({} {}, {} {})", st, name, st, literal(start), vt,
                  value(s, width(s)));
    }
    declare(st, name, vt);
    return line("call {}{} @{}({} {})", zeros_alike(t), st, name, vt, value(s, width(s)));
  }
  throw Unsupported{fmt::format("REDUCE {}", op_name(u.reduce_op()))};
}

}  // namespace beamline
