#include "harness/probe_kernels.h"

#include <fmt/format.h>

#include <algorithm>

namespace beamline {
namespace {

constexpr int64_t fma_rounds = 20'000;
constexpr int64_t bytes_a_call = 4 << 20;  // small footprints are passed over again until so much

std::string vector_type(const Target& target, DType t) {
  return fmt::format("<{} x {}>", std::max(1, target.lanes(t)),
                     t == DType::F64 ? "double" : "float");
}

// The frame of both memory probes: passes over the thread's share, `step` bytes a turn of the inner
// loop, whose body is given.
std::string passes(int64_t share, int64_t step, int64_t count, const std::string& before,
                   const std::string& phis, const std::string& body, const std::string& after) {
  return fmt::format(R"(define void @probe(ptr %buffers, i64 %core) nounwind {{
entry:
  %base = load ptr, ptr %buffers
  %begin = mul i64 %core, {0}
  %mine = getelementptr i8, ptr %base, i64 %begin
{3}  br label %pass
pass:
  %r = phi i64 [ 0, %entry ], [ %rn, %passed ]
  br label %loop
loop:
  %i = phi i64 [ 0, %pass ], [ %in, %loop ]
{4}{5}  %in = add i64 %i, {1}
  %more = icmp ult i64 %in, {0}
  br i1 %more, label %loop, label %passed
passed:
  %rn = add i64 %r, 1
  %again = icmp ult i64 %rn, {2}
  br i1 %again, label %pass, label %done
done:
{6}  ret void
}}
)",
                     share, step, count, before, phis, body, after);
}

}  // namespace

ProbeKernel fma_probe(const Target& target, DType dtype, int threads) {
  const int chains = target.vector_registers >= 32 ? 24 : 10;  // latency times width, and no spill
  const std::string v = vector_type(target, dtype);
  const std::string name =
      fmt::format("v{}f{}", target.lanes(dtype), dtype == DType::F64 ? 64 : 32);
  std::string phis, body, sum = fmt::format("  %s0 = fadd {0} %b0, %b1\n", v);
  for (int c = 0; c < chains; ++c) {
    phis += fmt::format("  %a{0} = phi {1} [ %start, %entry ], [ %b{0}, %loop ]\n", c, v);
    body += fmt::format("  %b{0} = call {1} @llvm.fmuladd.{2}({1} %a{0}, {1} %m, {1} %start)\n", c,
                        v, name);
    if (c >= 2) sum += fmt::format("  %s{0} = fadd {1} %s{2}, %b{3}\n", c - 1, v, c - 2, c);
  }
  ProbeKernel k;
  k.ir = fmt::format(R"(declare {0} @llvm.fmuladd.{1}({0}, {0}, {0})
define void @probe(ptr %buffers, i64 %core) nounwind {{
entry:
  %base = load ptr, ptr %buffers
  %begin = mul i64 %core, 4096
  %mine = getelementptr i8, ptr %base, i64 %begin
  %second = getelementptr i8, ptr %mine, i64 64
  %start = load {0}, ptr %mine, align 64
  %m = load {0}, ptr %second, align 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %in, %loop ]
{2}{3}  %in = add i64 %i, 1
  %more = icmp ult i64 %in, {4}
  br i1 %more, label %loop, label %done
done:
{5}  store {0} %s{6}, ptr %mine, align 64
  ret void
}}
)",
                     v, name, phis, body, fma_rounds, sum, chains - 2);
  k.threads = threads;
  k.flops = 2.0 * static_cast<double>(fma_rounds) * chains * target.lanes(dtype) * threads;
  return k;
}

ProbeKernel read_probe(const Target& target, int64_t footprint, int threads) {
  constexpr int chains = 8;
  const std::string v = vector_type(target, DType::F32);
  const int64_t step = int64_t{chains} * target.vector_bytes;
  const int64_t share = std::max(step, footprint / threads / step * step);
  const int64_t count = std::max<int64_t>(1, bytes_a_call / threads / share);
  std::string phis, body, sum;
  for (int c = 0; c < chains; ++c) {
    phis += fmt::format("  %a{0} = phi {1} [ zeroinitializer, %pass ], [ %b{0}, %loop ]\n", c, v);
    body += fmt::format(
        "  %o{0} = add i64 %i, {2}\n  %p{0} = getelementptr i8, ptr %mine, i64 %o{0}\n"
        "  %v{0} = load {1}, ptr %p{0}, align 64\n  %b{0} = fadd {1} %a{0}, %v{0}\n",
        c, v, int64_t{c} * target.vector_bytes);
  }
  sum = fmt::format("  %s0 = fadd {0} %b0, %b1\n", v);
  for (int c = 2; c < chains; ++c)
    sum += fmt::format("  %s{0} = fadd {1} %s{2}, %b{3}\n", c - 1, v, c - 2, c);
  sum += fmt::format("  store {} %s{}, ptr %mine, align 64\n", v, chains - 2);
  ProbeKernel k;
  k.ir = passes(share, step, count, "", phis, body, sum);
  k.bytes = static_cast<double>(share) * static_cast<double>(count) * threads;
  k.threads = threads;
  return k;
}

ProbeKernel triad_probe(const Target& target, int64_t footprint, int threads) {
  constexpr int unroll = 4;
  const std::string v = vector_type(target, DType::F32);
  const std::string name = fmt::format("v{}f32", target.lanes(DType::F32));
  const int64_t step = int64_t{unroll} * target.vector_bytes;
  const int64_t share = std::max(step, footprint / threads / 3 / step * step);  // of each array
  const int64_t count = std::max<int64_t>(1, bytes_a_call / threads / (3 * share));
  const int64_t array = share * threads;
  std::string body;
  for (int c = 0; c < unroll; ++c)
    body += fmt::format(
        "  %o{0} = add i64 %i, {3}\n  %pa{0} = getelementptr i8, ptr %mine, i64 %o{0}\n"
        "  %pb{0} = getelementptr i8, ptr %second, i64 %o{0}\n"
        "  %pc{0} = getelementptr i8, ptr %third, i64 %o{0}\n"
        "  %vb{0} = load {1}, ptr %pb{0}, align 64\n  %vc{0} = load {1}, ptr %pc{0}, align 64\n"
        "  %t{0} = call {1} @llvm.fmuladd.{2}({1} %vc{0}, {1} %vc{0}, {1} %vb{0})\n"
        "  store {1} %t{0}, ptr %pa{0}, align 64\n",
        c, v, name, int64_t{c} * target.vector_bytes);
  const std::string before = fmt::format(
      "  %second = getelementptr i8, ptr %mine, i64 {}\n  %third = getelementptr i8, ptr %mine, "
      "i64 {}\n",
      array, 2 * array);
  ProbeKernel k;
  k.ir = fmt::format("declare {0} @llvm.fmuladd.{1}({0}, {0}, {0})\n", v, name) +
         passes(share, step, count, before, "", body, "");
  k.bytes = 3.0 * static_cast<double>(share) * static_cast<double>(count) * threads;
  k.threads = threads;
  return k;
}

}  // namespace beamline
