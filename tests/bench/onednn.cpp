#include "tests/bench/onednn.h"

#include <omp.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <dnnl.hpp>

#include "devices/cpu/topology.h"

namespace beamline::bench {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

memory::desc plain(const Dims& dims, Tag tag) { return {dims, f32, tag}; }
memory::desc any(const Dims& dims) { return {dims, f32, Tag::any}; }
memory at(const memory::desc& d, float* data) { return {d, engine(), data}; }
memory own(const memory::desc& d) { return {d, engine()}; }

using Arguments = std::unordered_map<int, memory>;
struct Step {
  dnnl::primitive primitive;
  Arguments arguments;
};

// Steps in order, done when run() returns.
DnnlRun steps(std::string name, std::vector<Step> list) {
  DnnlRun out;
  out.reference = name.find("ref") != std::string::npos;
  out.name = std::move(name);
  auto held = std::make_shared<std::vector<Step>>(std::move(list));
  auto stream = std::make_shared<dnnl::stream>(engine());
  out.run = [held, stream] {
    for (Step& s : *held) s.primitive.execute(*stream, s.arguments);
    stream->wait();
  };
  return out;
}

template <class Descriptor>
DnnlRun one(const Descriptor& pd, const dnnl::primitive& primitive, Arguments arguments) {
  return steps(pd.impl_info_str(), {{primitive, std::move(arguments)}});
}

Step reorder(const memory& from, const memory& to) {
  return {dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

memory laid_out(memory from, const memory::desc& wanted) {
  if (from.get_desc() == wanted) return from;
  const memory to = own(wanted);
  steps("", {reorder(from, to)}).run();
  return to;
}

DnnlRun conv(const ConvShape& s, bool blocked, float* y, float* x, float* w) {
  const Dims in{s.n, s.c, s.h, s.w}, weights{s.k, s.c, s.r, s.s};
  const Dims out{s.n, s.k, s.out_h(), s.out_w()};
  const auto layout = [&](const Dims& d) { return blocked ? any(d) : plain(d, Tag::nchw); };
  const dnnl::convolution_forward::desc d(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, layout(in),
      any(weights), layout(out), {s.stride_h, s.stride_w}, {s.pad_h, s.pad_w}, {s.pad_h, s.pad_w});
  const dnnl::convolution_forward::primitive_desc pd(d, engine());
  const memory from = at(plain(in, Tag::nchw), x), to = at(plain(out, Tag::nchw), y);
  const memory filter = laid_out(at(plain(weights, Tag::oihw), w), pd.weights_desc());
  std::vector<Step> list;
  memory source = from, result = to;
  if (pd.src_desc() != from.get_desc()) {
    source = own(pd.src_desc());
    list.push_back(reorder(from, source));
  }
  if (pd.dst_desc() != to.get_desc()) result = own(pd.dst_desc());
  list.push_back({dnnl::convolution_forward(pd),
                  {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, filter}, {DNNL_ARG_DST, result}}});
  if (pd.dst_desc() != to.get_desc()) list.push_back(reorder(result, to));
  return steps(fmt::format("{}, {}", blocked ? "blocked" : "plain", pd.impl_info_str()),
               std::move(list));
}

}  // namespace

std::string dnnl_crippled(int threads, bool own_variables) {
  for (char** e = environ; *e != nullptr && !own_variables; e++) {
    const std::string_view entry(*e);
    for (const char* prefix : {"DNNL_", "ONEDNN_", "OMP_", "GOMP_"})
      if (entry.starts_with(prefix))
        return fmt::format("oneDNN is forced: {} is set", entry.substr(0, entry.find('=')));
  }
  omp_set_num_threads(threads);
  if (omp_get_max_threads() != threads)
    return fmt::format("oneDNN runs on {} threads", omp_get_max_threads());
  const CpuModel model = read_cpu_model();
  const auto isa = dnnl::get_effective_cpu_isa();
  if (model.has("avx512vl") && isa < dnnl::cpu_isa::avx512_core)
    return "oneDNN does not use this processor's AVX-512: " + dnnl_version_and_core();
  if (model.has("avx2") && isa < dnnl::cpu_isa::avx2)
    return "oneDNN does not use this processor's AVX2: " + dnnl_version_and_core();
  return {};
}

std::string dnnl_version_and_core() {
  const auto* v = dnnl_version();
  const int isa = static_cast<int>(dnnl::get_effective_cpu_isa());
  const auto name = [&]() -> std::string {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41: return "SSE4.1";
      case dnnl::cpu_isa::avx: return "AVX";
      case dnnl::cpu_isa::avx2: return "AVX2";
      case dnnl::cpu_isa::avx512_core: return "AVX512_CORE";
      case dnnl::cpu_isa::avx512_core_vnni: return "AVX512_CORE_VNNI";
      case dnnl::cpu_isa::avx512_core_bf16: return "AVX512_CORE_BF16";
      case dnnl::cpu_isa::avx512_core_amx: return "AVX512_CORE_AMX";
      default: return fmt::format("instruction set {:#x}", isa);
    }
  };
  return fmt::format("{}.{}.{}, {}", v->major, v->minor, v->patch, name());
}

DnnlRun dnnl_matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, float* c, float* a,
                    float* b) {
  const memory::desc da = plain({m, k}, ta ? Tag::ba : Tag::ab);
  const memory::desc db = plain({k, n}, tb ? Tag::ba : Tag::ab);
  const memory::desc dc = plain({m, n}, Tag::ab);
  const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(da, db, dc), engine());
  return one(pd, dnnl::matmul(pd),
             {{DNNL_ARG_SRC, at(da, a)}, {DNNL_ARG_WEIGHTS, at(db, b)}, {DNNL_ARG_DST, at(dc, c)}});
}

std::vector<DnnlRun> dnnl_conv(const ConvShape& shape, float* y, float* x, float* w) {
  return {conv(shape, false, y, x, w), conv(shape, true, y, x, w)};
}

DnnlRun dnnl_softmax(int64_t rows, int64_t columns, float* y, float* x) {
  const memory::desc d = plain({rows, columns}, Tag::ab);
  const dnnl::softmax_forward::primitive_desc pd(
      dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, d, 1), engine());
  return one(pd, dnnl::softmax_forward(pd), {{DNNL_ARG_SRC, at(d, x)}, {DNNL_ARG_DST, at(d, y)}});
}

DnnlRun dnnl_layer_norm(int64_t rows, int64_t columns, float epsilon, float* y, float* x, float* w,
                        float* b) {
  using Flags = dnnl::normalization_flags;
  const memory::desc d = plain({rows, columns}, Tag::ab), v = plain({columns}, Tag::a);
  const dnnl::layer_normalization_forward::primitive_desc pd(
      dnnl::layer_normalization_forward::desc(dnnl::prop_kind::forward_inference, d, epsilon,
                                              Flags::use_scale | Flags::use_shift),
      engine());
  return one(pd, dnnl::layer_normalization_forward(pd),
             {{DNNL_ARG_SRC, at(d, x)},
              {DNNL_ARG_SCALE, at(v, w)},
              {DNNL_ARG_SHIFT, at(v, b)},
              {DNNL_ARG_DST, at(d, y)}});
}

DnnlRun dnnl_gelu(int64_t count, float* y, float* x) {
  const memory::desc d = plain({count}, Tag::a);
  const dnnl::eltwise_forward::primitive_desc pd(
      dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference,
                                  dnnl::algorithm::eltwise_gelu_tanh, d, 0.0f, 0.0f),
      engine());
  return one(pd, dnnl::eltwise_forward(pd), {{DNNL_ARG_SRC, at(d, x)}, {DNNL_ARG_DST, at(d, y)}});
}

DnnlRun dnnl_add(int64_t count, float* y, float* a, float* b) {
  const memory::desc d = plain({count}, Tag::a);
  const dnnl::binary::primitive_desc pd(dnnl::binary::desc(dnnl::algorithm::binary_add, d, d, d),
                                        engine());
  return one(pd, dnnl::binary(pd),
             {{DNNL_ARG_SRC_0, at(d, a)}, {DNNL_ARG_SRC_1, at(d, b)}, {DNNL_ARG_DST, at(d, y)}});
}

DnnlRun dnnl_transpose(int64_t rows, int64_t columns, float* y, float* x) {
  const memory from = at(plain({rows, columns}, Tag::ab), x);
  const memory to = at(plain({rows, columns}, Tag::ba), y);
  const dnnl::reorder::primitive_desc pd(from, to);
  return one(pd, dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

DnnlRun dnnl_max_pool(int64_t planes, int64_t h, int64_t w, float* y, float* x) {
  const memory::desc in = plain({1, planes, h, w}, Tag::nchw);
  const memory::desc out = plain({1, planes, h / 2, w / 2}, Tag::nchw);
  const dnnl::pooling_forward::primitive_desc pd(
      dnnl::pooling_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::pooling_max,
                                  in, out, {2, 2}, {2, 2}, {0, 0}, {0, 0}),
      engine());
  return one(pd, dnnl::pooling_forward(pd),
             {{DNNL_ARG_SRC, at(in, x)}, {DNNL_ARG_DST, at(out, y)}});
}

DnnlRun dnnl_sum(int64_t rows, int64_t columns, bool over_rows, float* y, float* x) {
  const memory::desc in = plain({rows, columns}, Tag::ab);
  const memory::desc out = plain(over_rows ? Dims{1, columns} : Dims{rows, 1}, Tag::ab);
  const dnnl::reduction::primitive_desc pd(
      dnnl::reduction::desc(dnnl::algorithm::reduction_sum, in, out, 0.0f, 0.0f), engine());
  return one(pd, dnnl::reduction(pd), {{DNNL_ARG_SRC, at(in, x)}, {DNNL_ARG_DST, at(out, y)}});
}

}  // namespace beamline::bench
