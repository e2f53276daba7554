#include "workloads/input_data.h"

#include <cmath>
#include <numbers>

#include "workloads/elements.h"
#include "workloads/npy.h"
#include "workloads/onnx/model.h"

namespace beamline::workloads {
namespace {

// splitmix64 as a counter-based generator: its finaliser is a bijection with good avalanche.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

uint64_t stream_of(const InputSpec& spec, uint64_t seed) {
  uint64_t h = mix(seed);
  for (char c : spec.name) h = mix(h ^ static_cast<unsigned char>(c));
  return h;
}

double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // [0, 1)

double value(const Dist& d, uint64_t stream, uint64_t i) {
  const uint64_t bits = mix(stream ^ mix(2 * i));
  if (d.kind == DistKind::Uniform) return d.first + (d.second - d.first) * unit(bits);
  // Box-Muller; 1 - u keeps the logarithm's argument off zero.
  const double radius = std::sqrt(-2 * std::log(1 - unit(bits)));
  const double angle = 2 * std::numbers::pi * unit(mix(stream ^ mix(2 * i + 1)));
  return d.first + d.second * radius * std::cos(angle);
}

// What the dtype would hold as a denormal becomes its smallest normal number; what rounds beyond
// the largest (a normal's tail in fp8) becomes the mean.
double tame(DType t, double v, double fallback) {
  const double least = smallest_normal(t);
  if (v != 0 && std::fabs(v) < least) return std::copysign(least, v);
  return std::isfinite(round_to(t, v)) ? v : fallback;
}

}  // namespace

std::variant<std::vector<std::byte>, std::string> input_data(const InputSpec& spec, uint64_t seed) {
  const Dist& d = spec.dist;
  if (d.kind == DistKind::File)
    return onnx::is_tensor_reference(d.path) ? onnx::read_tensor(d.path, spec.dtype, spec.shape)
                                             : read_npy(d.path, spec.dtype, spec.shape);
  std::vector<std::byte> out(static_cast<size_t>(spec.bytes()));
  const auto n = static_cast<size_t>(spec.elements());
  const uint64_t stream = stream_of(spec, seed);
  for (size_t i = 0; i < n; i++) {
    if (d.kind == DistKind::Ones) {
      store(out, spec.dtype, i, int64_t{1});
    } else if (d.kind == DistKind::Int) {
      // The bias of the remainder is below count / 2^64; a count of 0 stands for all of 64 bits.
      const uint64_t count = static_cast<uint64_t>(d.highest) - static_cast<uint64_t>(d.lowest) + 1;
      const uint64_t bits = mix(stream ^ mix(i));
      const uint64_t offset = count == 0 ? bits : bits % count;
      store(out, spec.dtype, i, static_cast<int64_t>(static_cast<uint64_t>(d.lowest) + offset));
    } else {
      store(out, spec.dtype, i, tame(spec.dtype, value(d, stream, i), d.first));
    }
  }
  return out;
}

}  // namespace beamline::workloads
