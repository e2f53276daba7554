// The whole way down: every text of the language cases through kernels and the interpreter.
#include <gtest/gtest.h>

#include "engine/interpret/kernel.h"
#include "engine/ir/arena.h"
#include "engine/lower/lower.h"
#include "engine/rangeify/rangeify.h"
#include "tests/workloads/language_cases.h"
#include "workloads/builder.h"

namespace beamline::workloads {
namespace {

using namespace language;

std::vector<InterpreterBuffer> memory_of(const KernelGraph& g) {
  std::vector<InterpreterBuffer> memory;
  for (const BufferInfo& b : g.buffers) {
    memory.push_back(make_buffer(b.dtype, static_cast<size_t>(std::max<int64_t>(1, b.elements))));
    if (b.kind != BufferInfo::Kind::Input) continue;
    const std::vector<double>& v = values[static_cast<size_t>(b.input_slot)].data;
    if (is_float(b.dtype))
      memory.back().floats = v;
    else
      memory.back().ints.assign(v.begin(), v.end());
  }
  return memory;
}

TEST(Pipeline, InterpreterGivesTheLanguagesValues) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.compute);
    Arena arena;
    const Arena::Scope scope(arena);
    const auto built = build(instance(c.compute));
    ASSERT_TRUE(std::holds_alternative<TensorGraph>(built));
    const KernelGraph g = make_kernels(std::get<TensorGraph>(built).sink);
    std::vector<InterpreterBuffer> memory = memory_of(g);
    for (const KernelAst& k : g.kernels) {
      const auto lowered = lower(k.ast, {}, Target{});
      ASSERT_TRUE(std::holds_alternative<LinearKernel>(lowered));
      std::vector<InterpreterBuffer> args;
      for (size_t id : k.buffers) args.push_back(memory[id]);
      const auto error = interpret(std::get<LinearKernel>(lowered).list, args);
      ASSERT_FALSE(error.has_value()) << *error;
      for (size_t i = 0; i < args.size(); i++) memory[k.buffers[i]] = std::move(args[i]);
    }
    const InterpreterBuffer& out = memory[g.outputs.at(0)];
    EXPECT_EQ(out.dtype, c.dtype);
    for (size_t i = 0; i < c.data.size(); i++) {
      const double have = is_float(out.dtype) ? out.floats[i] : static_cast<double>(out.ints[i]);
      EXPECT_TRUE(close(have, c.data[i])) << "[" << i << "]: " << have << ", not " << c.data[i];
    }
  }
}

}  // namespace
}  // namespace beamline::workloads
