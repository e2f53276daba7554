// The part of LlvmBody that multiplies by lanes: processors' products of neighbours.
#include <algorithm>

#include "engine/render/llvm_body.h"

namespace beamline {

using namespace llvm_words;

namespace {

struct Multiply {
  std::string_view name;
  bool adds;  // to a third operand
};
// By type of the factors and lanes. Without an operand to add to, the code generator fuses the
// addition where the processor has the instruction for it.
Multiply instruction_of(const TensorCore& core) {
  const bool wide = core.shape->n == 16, half = core.shape->n == 8;
  switch (core.in) {
    case DType::BF16:
      return {wide   ? "llvm.x86.avx512bf16.dpbf16ps.512"
              : half ? "llvm.x86.avx512bf16.dpbf16ps.256"
                     : "llvm.x86.avx512bf16.dpbf16ps.128",
              true};
    case DType::U8:
      return {wide   ? "llvm.x86.avx512.vpdpbusd.512"
              : half ? "llvm.x86.avx512.vpdpbusd.256"
                     : "llvm.x86.avx512.vpdpbusd.128",
              true};
    default:
      return {wide   ? "llvm.x86.avx512.pmaddw.d.512"
              : half ? "llvm.x86.avx2.pmadd.wd"
                     : "llvm.x86.sse2.pmadd.wd",
              false};
  }
}

}  // namespace

// The first lanes of a vector, or a longer one whose other lanes nobody reads.
std::string LlvmBody::resized(const std::string& v, std::string_view scalar, int64_t from,
                              int64_t to) {
  if (from == to) return v;
  std::string mask;
  for (int64_t i = 0; i < to; i++)
    mask += fmt::format("{}i32 {}", i ? ", " : "", i < from ? fmt::format("{}", i) : "poison");
  return line("shufflevector {0} {1}, {0} poison, <{2} x i32> <{3}>", type(scalar, from), v, to,
              mask);
}

// The neighbours of one group as one integer. Of scalars it is put together as such: as a vector
// the code generator would put together every lane of the splat.
std::string LlvmBody::one_group(UOp u, DType t, const std::string& group) {
  const bool scalars = u.op() == Op::STACK && std::ranges::none_of(u.srcs(), [](UOp s) {
                         return s.is_const() || is_lane(s);
                       });
  if (!scalars) return line("bitcast {} {} to {}", type(u), value(u, llvm_words::width(u)), group);
  const int64_t bits = dtype_bytes(t) * 8;
  std::string all;
  for (size_t i = 0; i < u.nsrc(); i++) {
    std::string part = value(u.src(i), 0);
    part = line("zext i{} {} to {}", bits, part, group);
    if (i > 0) part = line("shl {} {}, {}", group, part, bits * static_cast<int64_t>(i));
    all = i > 0 ? line("or {} {}, {}", group, all, part) : part;
  }
  return all;
}

// What `width` lanes multiply, of which `lanes` count: a group of neighbours for each, or one for
// all of them.
std::string LlvmBody::factor(UOp u, DType t, const MatrixShape& shape, int64_t lanes,
                             int64_t width) {
  const int64_t have = llvm_words::width(u);
  const std::string_view scalar = scalar_type(t);
  const std::string v = value(u, have);
  if (have != shape.k || lanes == 1) return resized(v, scalar, have, width * shape.k);
  const std::string group = fmt::format("i{}", shape.k * dtype_bytes(t) * 8);
  std::string& all = splats_[u];
  if (all.empty() || splat_width_[u] != width) {
    const std::string one = one_group(u, t, group);
    all = line("bitcast {} {} to {}", type(group, width), splat(one, group, width),
               type(scalar, width * shape.k));
    splat_width_[u] = width;
  }
  return all;
}

std::string LlvmBody::product_by_lane(UOp u) {
  const TensorCore& core = *tensor_core(u.text());
  const MatrixShape& shape = *core.shape;
  if (!shape.by_lane()) throw Unsupported{fmt::format("tensor core {}", core.name())};
  const int64_t lanes = std::max<int64_t>(1, llvm_words::width(u)), n = shape.n;
  const std::string_view out = scalar_type(core.out);
  std::string sum = value(u.src(2), llvm_words::width(u));
  if (llvm_words::width(u) == 0)
    sum = line("insertelement {} poison, {} {}, i64 0", type(out, 1), out, sum);
  sum = resized(sum, out, lanes, n);
  const std::string a = factor(u.src(0), core.factor(0), shape, lanes, n),
                    b = factor(u.src(1), core.factor(1), shape, lanes, n);
  // As the instructions are declared: for bytes, of whole lanes.
  const auto declared_type = [&](int operand) {
    if (core.in == DType::U8) return type(out, n);
    return type(core.in == DType::BF16 ? "bfloat" : scalar_type(core.factor(operand)), n * shape.k);
  };
  const auto as_declared = [&](const std::string& v, int operand) {
    const std::string from = type(scalar_type(core.factor(operand)), n * shape.k);
    return from == declared_type(operand)
               ? v
               : line("bitcast {} {} to {}", from, v, declared_type(operand));
  };
  const std::string ta = declared_type(0), tb = declared_type(1), to = type(out, n),
                    x = as_declared(a, 0), y = as_declared(b, 1);
  const Multiply i = instruction_of(core);
  if (i.adds) {
    declare(to, i.name, fmt::format("{}, {}, {}", to, ta, tb));
    sum = line("call {0} @{1}({0} {2}, {3} {4}, {5} {6})", to, i.name, sum, ta, x, tb, y);
  } else {
    declare(to, i.name, fmt::format("{}, {}", ta, tb));
    sum =
        line("add {} {}, {}", to, sum, line("call {} @{}({} {}, {} {})", to, i.name, ta, x, tb, y));
  }
  sum = resized(sum, out, n, lanes);
  return llvm_words::width(u) ? sum : line("extractelement {} {}, i64 0", type(out, lanes), sum);
}

}  // namespace beamline
