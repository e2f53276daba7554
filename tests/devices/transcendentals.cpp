#include "tests/devices/transcendentals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "devices/cpu/llvm_compiler.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/opt/heuristic.h"
#include "engine/rangeify/rangeify.h"
#include "engine/render/render_kernel.h"

namespace beamline {
namespace {

// clang-format off
const Transcendental table[] = {
    {"sin",        &TensorOps::sin,        [](double x) { return std::sin(x); },  Symmetry::Odd,  1.5},
    {"cos",        &TensorOps::cos,        [](double x) { return std::cos(x); },  Symmetry::Even, 1.5},
    {"exp2",       &TensorOps::exp2,       [](double x) { return std::exp2(x); }, Symmetry::None, 1.5},
    {"log2",       &TensorOps::log2,       [](double x) { return std::log2(x); }, Symmetry::None, 1.5},
    {"exp",        &TensorOps::exp,        [](double x) { return std::exp(x); },  Symmetry::None, 1.5},
    {"log",        &TensorOps::log,        [](double x) { return std::log(x); },  Symmetry::None, 1.5},
    {"tanh",       &TensorOps::tanh,       [](double x) { return std::tanh(x); }, Symmetry::Odd,  3},
    {"erf",        &TensorOps::erf,        [](double x) { return std::erf(x); },  Symmetry::Odd,  2},
    {"sqrt",       &TensorOps::sqrt,       [](double x) { return std::sqrt(x); }, Symmetry::None, 1.5},
    {"reciprocal", &TensorOps::reciprocal, [](double x) { return 1 / x; },        Symmetry::Odd,  1.5},
};

constexpr float edges[] = {
    0.0f, 1.0f, 0.5f, 2.0f, INFINITY, std::numeric_limits<float>::quiet_NaN(),
    0x1p-126f, 0x1p-149f, 0x1.fffffep-127f, 0x1.fffffep127f, 0x1p-24f, 0x1p-12f,
    0.99999994f, 1.0000001f, 0.70710677f, 0.70710683f, 0.625f, 0.62499994f,     // where log2 and tanh change
    126.0f, 126.5f, 127.99999f, 128.0f, 129.0f, 148.9f, 149.0f, 149.5f, 150.0f, 150.5f, 151.0f, 1000.0f,  // of exp2
    87.3365479f, 88.7228317f, 88.7228394f, 103.278923f, 103.972076f, 103.972084f, 104.5f,                 // of exp
    0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.921fb4p0f, 0x1.921fb6p-1f, 0x1p20f, 0x1p30f, 0x1p31f, 0x1p60f, 16367173.0f * 0x1p72f,
};
// clang-format on

// Its error near 2^-149 is that unit.
double unit_at(double exact) {
  const int biased = static_cast<int>(std::bit_cast<uint64_t>(exact) >> 52 & 0x7ff);
  const int exponent = std::clamp(biased - 1023, -126, 127) - 23;
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// Runs the code over values and compares; what is left of `in` is computed, not compared.
class Batch {
 public:
  Batch(const Transcendental& f, const CodeBlob& code, int64_t count)
      : f_(f), code_(code), in_(static_cast<size_t>(count)), out_(in_.size()), back_(in_.size()) {}
  void add(float x) {
    in_[used_++] = x;
    if (used_ == in_.size()) flush();
  }
  UlpError finish() {
    flush();
    return worst_;
  }

 private:
  void flush() {
    run(out_);
    for (float& x : in_) x = -x;
    run(back_);
    for (size_t i = 0; i < used_; i++) {
      const double x = in_[i], exact = f_.exact(-x);
      worst_.add({ulps(out_[i], exact), -in_[i]});
      const double opposite = f_.symmetry == Symmetry::Odd    ? -exact
                              : f_.symmetry == Symmetry::Even ? exact
                                                              : f_.exact(x);
      worst_.add({ulps(back_[i], opposite), in_[i]});
    }
    used_ = 0;
  }
  void run(std::vector<float>& out) {
    void* buffers[] = {out.data(), in_.data()};
    code_.entry()(buffers, 0);
  }

  const Transcendental& f_;
  const CodeBlob& code_;
  std::vector<float> in_, out_, back_;
  size_t used_ = 0;
  UlpError worst_;
};

}  // namespace

std::span<const Transcendental> transcendentals() { return table; }

double ulps(float got, double exact) {
  constexpr double limit = 0x1p128;
  double value = got;
  if (std::isnan(value) || std::isnan(exact))
    return std::isnan(value) == std::isnan(exact) ? 0 : INFINITY;
  if (std::isinf(value)) value = std::copysign(limit, value);
  if (std::fabs(exact) > limit) exact = std::copysign(limit, exact);
  return value == exact ? 0 : std::fabs(value - exact) / unit_at(exact);
}

CodeBlob code_of(const Transcendental& f, int64_t count, const Target& target) {
  Arena arena;
  const Arena::Scope scope(arena);
  const int64_t shape[] = {count};
  TensorOps ops;
  const UOp root = (ops.*f.build)(param({}, DType::F32, shape));
  const KernelGraph g = make_kernels(make(Op::SINK, DType::Void, {root}));
  const UOp ast = g.kernels.at(0).ast;
  const auto rendered =
      render_kernel({print_uops(ast), opts_text(cpu_heuristic(ast, target)), target, false});
  if (const auto* r = std::get_if<Refusal>(&rendered)) throw std::runtime_error(r->reason);
  const auto& text = std::get<RenderedKernel>(rendered);
  const auto compiled =
      compile_ir(text.source, text.entry, {.cpu = target.cpu, .features = target.features});
  if (const auto* e = std::get_if<CompileError>(&compiled)) throw std::runtime_error(e->reason);
  const auto& blob = std::get<CompiledBlob>(compiled);
  auto mapped = CodeBlob::map(blob.code, blob.entry_offset);
  if (const auto* why = std::get_if<std::string>(&mapped)) throw std::runtime_error(*why);
  return std::get<CodeBlob>(std::move(mapped));
}

UlpError greatest_error(const Transcendental& f, const CodeBlob& code, int64_t count,
                        uint64_t first, uint64_t end, uint64_t step) {
  Batch batch(f, code, count);
  for (uint64_t bits = first; bits < end; bits += step)
    batch.add(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return batch.finish();
}

UlpError greatest_error_at_edges(const Transcendental& f, const CodeBlob& code, int64_t count) {
  Batch batch(f, code, count);
  for (float x : edges) batch.add(x);
  return batch.finish();
}

}  // namespace beamline
