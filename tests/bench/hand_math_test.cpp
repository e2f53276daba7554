// The functions written by hand are what they say, on both vector widths.
#include "tests/bench/hand_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "devices/cpu/topology.h"
#include "tests/devices/transcendentals.h"

namespace beamline::bench {
namespace {

TEST(HandMath, IsAsExactAsWhatItIsComparedWith) {
  struct Line {
    const char* name;
    HandFunction f;
  };
  const Line lines[] = {
      {"sin", HandFunction::Sin},   {"cos", HandFunction::Cos}, {"exp2", HandFunction::Exp2},
      {"log2", HandFunction::Log2}, {"exp", HandFunction::Exp}, {"log", HandFunction::Log},
      {"tanh", HandFunction::Tanh}, {"erf", HandFunction::Erf},
  };
  const CpuModel model = read_cpu_model();
  if (!model.has("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  std::vector<float> in, out;
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 65537) {
    const auto b = static_cast<uint32_t>(bits);
    float x;
    std::memcpy(&x, &b, sizeof x);
    in.push_back(x);
  }
  in.resize(in.size() / 32 * 32);
  out.resize(in.size());
  for (const Line& l : lines)
    for (const bool wide : {false, true}) {
      if (wide && !model.has("avx512vl")) continue;
      (wide ? hand_math_avx512(l.f) : hand_math_avx2(l.f))(out.data(), in.data(),
                                                           static_cast<int64_t>(in.size()));
      const auto all = transcendentals();
      const auto exact = std::ranges::find(all, std::string_view(l.name),
                                           [](const Transcendental& t) { return t.name; });
      for (size_t i = 0; i < in.size(); i++)
        ASSERT_LE(ulps(out[i], exact->exact(in[i])), exact->bound)
            << l.name << " of " << in[i] << (wide ? ", 16 lanes" : ", 8 lanes");
    }
}

}  // namespace
}  // namespace beamline::bench
