// Machines with vectors of 32 and of 16 bytes get from the same rules what suits them: the kernels
// that matter, compiled for such a processor, compute on this one what the interpreter computes,
// and their tiles and machine code fit the vectors and registers that there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "devices/cpu/blob.h"
#include "devices/cpu/cpu_target.h"
#include "devices/cpu/llvm_compiler.h"
#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/lower.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"
#include "engine/tensor/tensor_ops.h"

namespace beamline {
namespace {

Target target_of(const std::string& cpu) {
  CpuModel model;
  model.isa = processor_features(cpu);
  Target t = cpu_target(model, CpuTopology{}, 1);
  t.cpu = cpu;
  return t;
}
bool runs_here(const std::string& cpu) {
  const CpuModel here = read_cpu_model();
  for (const std::string& f : processor_features(cpu))
    if (!here.has(f)) return false;
  return true;
}

UOp input(int64_t slot, Ints shape, DType t = DType::F32) {
  ParamArg a;
  a.slot = slot;
  return param(a, t, shape);
}
UOp conv(TensorOps& t, int64_t in, int64_t out, int64_t size, int64_t filter, int64_t stride) {
  TensorOps::Conv c;
  c.stride = {stride, stride};
  c.padding = {filter / 2, filter / 2};
  return t.conv2d(input(0, {1, in, size, size}), input(1, {out, in, filter, filter}), std::nullopt,
                  c);
}

struct Program {
  const char* name;
  UOp (*build)(TensorOps&);
  bool tile;       // of registers, which it should fill
  bool no_spills;  // in what is repeated most
};
// clang-format off
const Program programs[] = {
    {"matmul",       [](TensorOps& t) { return t.matmul(input(0, {72, 64}), input(1, {64, 96})); }, true, true},
    {"matmul_odd",   [](TensorOps& t) { return t.matmul(input(0, {31, 37}), input(1, {37, 29})); }, false, false},
    {"transposed_a", [](TensorOps& t) { return t.matmul(t.transpose(input(0, {64, 72}), 0, 1), input(1, {64, 96})); }, true, true},
    {"transposed_b", [](TensorOps& t) { return t.matmul(input(0, {24, 64}), t.transpose(input(1, {20, 64}), 0, 1)); }, false, true},
    {"matvec",       [](TensorOps& t) { return t.matmul(input(0, {40, 64}), input(1, {64})); }, false, true},
    {"half",         [](TensorOps& t) { return t.matmul(input(0, {24, 32}, DType::F16), input(1, {32, 48}, DType::F16)); }, true, false},
    {"brain",        [](TensorOps& t) { return t.matmul(input(0, {24, 32}, DType::BF16), input(1, {32, 48}, DType::BF16)); }, true, false},
    {"bytes",        [](TensorOps& t) { return t.matmul(input(0, {24, 32}, DType::I8), input(1, {32, 48}, DType::I8)); }, true, false},
    {"conv_3x3",     [](TensorOps& t) { return conv(t, 8, 16, 16, 3, 1); }, true, true},
    {"conv_1x1",     [](TensorOps& t) { return conv(t, 32, 32, 8, 1, 1); }, true, true},
    {"conv_stride",  [](TensorOps& t) { return conv(t, 8, 16, 16, 3, 2); }, false, false},
    {"softmax",      [](TensorOps& t) { return t.softmax(input(0, {9, 40}), {{-1}, false}); }, false, false},
    {"layer_norm",   [](TensorOps& t) { return t.layer_norm(input(0, {9, 40}), std::nullopt, std::nullopt, {{-1}, false}, 1e-5); }, false, false},
    {"transpose",    [](TensorOps& t) { return t.contiguous(t.transpose(input(0, {64, 48}), 0, 1)); }, false, true},
    {"row_sum",      [](TensorOps& t) { return t.sum(input(0, {9, 77}), {{1}, false}, false); }, false, true},
    {"column_sum",   [](TensorOps& t) { return t.sum(input(0, {37, 48}), {{0}, false}, false); }, false, true},
    {"gelu",         [](TensorOps& t) { return t.gelu(input(0, {5, 50}), false); }, false, false},
};
// clang-format on

class Restricted : public testing::TestWithParam<std::tuple<Program, std::string>> {};

size_t bytes_of(UOp u) {
  return u.shape().empty() ? 0 : static_cast<size_t>(u.shape()[0] * dtype_bytes(u.dtype()));
}

// What the greatest sum takes of vector registers.
int64_t registers_of_sums(const LinearKernel& k, const Target& target) {
  int64_t most = 0;
  for (UOp u : k.list) {
    if (u.op() != Op::STORE || (u.src(1).op() != Op::ADD && u.src(1).op() != Op::WMMA)) continue;
    const UOp memory = memory_of(u.src(0));
    if (memory.op() == Op::BUFFER)
      most = std::max(most, memory.numel() * dtype_bytes(memory.dtype()) / target.vector_bytes);
  }
  return most;
}

// Instructions of innermost loops that touch the stack: spills.
int stack_in_loops(const std::string& assembly) {
  std::vector<std::string> lines;
  std::stringstream in(assembly);
  for (std::string l; std::getline(in, l);) lines.push_back(l);
  int found = 0;
  static const std::regex jump("\\s+j[a-z]+\\s+(\\.LBB\\w+).*"), label("(\\.LBB\\w+):.*");
  std::map<std::string, size_t> place;
  size_t last_head = 0;
  for (size_t i = 0; i < lines.size(); i++) {
    std::smatch m;
    if (std::regex_match(lines[i], m, label)) place[m[1]] = i;
    if (!std::regex_match(lines[i], m, jump)) continue;
    const auto head = place.find(m[1]);
    if (head == place.end() || head->second < last_head) continue;  // forward, or not innermost
    last_head = i;
    for (size_t k = head->second; k < i; k++)
      found +=
          lines[k].find("(%rsp)") != std::string::npos && lines[k].find("mm") != std::string::npos;
  }
  return found;
}

TEST_P(Restricted, AgreesWithTheInterpreterAndFits) {
  const auto& [program, cpu] = GetParam();
  if (!runs_here(cpu)) GTEST_SKIP() << "SKIPPED: not a subset of this processor";
  Arena arena;
  const Arena::Scope scope(arena);
  TensorOps t;
  const UOp root = program.build(t);
  ASSERT_TRUE(t.ok()) << t.take_error();
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {root}));
  const Target target = target_of(cpu);
  std::mt19937 random(3);
  for (const KernelAst& k : g.kernels) {
    const Opts opts = cpu_heuristic(k.ast, target);
    const auto lowered = lower(k.ast, opts, target);
    ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
    const auto& kernel = std::get<LinearKernel>(lowered);
    const auto rendered = render_kernel({print_uops(k.ast), opts_text(opts), target, false});
    ASSERT_TRUE(std::holds_alternative<RenderedKernel>(rendered))
        << std::get<Refusal>(rendered).reason;
    const auto& source = std::get<RenderedKernel>(rendered);
    const auto compiled = compile_ir(source.source, source.entry, {cpu, target.features, true});
    ASSERT_TRUE(std::holds_alternative<CompiledBlob>(compiled))
        << std::get<CompileError>(compiled).reason;
    const auto& blob = std::get<CompiledBlob>(compiled);

    EXPECT_EQ(blob.assembly.find("%zmm"), std::string::npos) << opts_text(opts);
    if (target.vector_bytes < 32) {
      EXPECT_EQ(blob.assembly.find("%ymm"), std::string::npos) << opts_text(opts);
    }
    if (program.no_spills) {
      EXPECT_EQ(stack_in_loops(blob.assembly), 0) << opts_text(opts) << blob.assembly;
    }
    const int64_t sums = registers_of_sums(kernel, target);
    EXPECT_FALSE(opts.empty());
    if (program.tile) {
      EXPECT_LE(sums, target.vector_registers) << opts_text(opts);
      EXPECT_GE(3 * sums, 2 * (target.vector_registers - 4)) << opts_text(opts);
    }
    for (UOp u : kernel.list)
      if (u.op() == Op::LOAD) {
        EXPECT_LE(bytes_of(u), static_cast<size_t>(target.vector_bytes) * 2) << opts_text(opts);
      }

    const auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
    ASSERT_TRUE(std::holds_alternative<CodeBlob>(mapped));
    std::vector<InterpreterBuffer> want;
    std::vector<std::vector<std::byte>> got;
    std::vector<void*> pointers;
    for (size_t id : k.buffers) {
      const DType type = g.buffers[id].dtype;
      const auto n = static_cast<size_t>(g.buffers[id].elements),
                 size = static_cast<size_t>(dtype_bytes(type));
      want.push_back(make_buffer(type, n));
      got.emplace_back(n * size);
      for (size_t i = 0; i < n; i++) {
        const int whole = static_cast<int>(random() % 25) - 12;
        uint64_t bits = static_cast<uint64_t>(int64_t{whole});
        if (is_float(type))
          want.back().floats[i] = whole / 8.0, bits = float_to_bits(type, whole / 8.0);
        else
          want.back().ints[i] = whole;
        std::memcpy(got.back().data() + i * size, &bits, size);  // little endian
      }
    }
    for (auto& b : got) pointers.push_back(b.data());
    std::get<CodeBlob>(mapped).entry()(pointers.data(), 0);
    const auto error = interpret(kernel.list, want, {1});
    ASSERT_FALSE(error.has_value()) << *error;
    for (size_t b = 0; b < got.size(); b++)
      for (size_t i = 0; i < want[b].size(); i++) {
        const DType type = want[b].dtype;
        uint64_t bits = 0;
        const auto size = static_cast<size_t>(dtype_bytes(type));
        std::memcpy(&bits, got[b].data() + i * size, size);
        const double have = is_float(type)
                                ? float_from_bits(type, bits)
                                : static_cast<double>(wrap_to(type, static_cast<int64_t>(bits)));
        const double expected =
            is_float(type) ? want[b].floats[i] : static_cast<double>(want[b].ints[i]);
        ASSERT_NEAR(have, expected, (size == 2 ? 1e-2 : 1e-5) * (10 + std::fabs(expected)))
            << "opts " << opts_text(opts) << " buffer " << b << " element " << i;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Restricted,
                         testing::Combine(testing::ValuesIn(programs),
                                          testing::Values("haswell", "x86-64-v2", "x86-64")),
                         [](const auto& p) {
                           std::string s =
                               std::string(std::get<0>(p.param).name) + "_" + std::get<1>(p.param);
                           std::ranges::replace(s, '-', '_');
                           return s;
                         });

}  // namespace
}  // namespace beamline
