#include "tests/bench/openblas.h"

#include <cblas.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "devices/cpu/topology.h"

namespace beamline::bench {
namespace {

int rows = 0, columns = 0, depth = 0;

// Set by raise_openblas() only: what OpenBLAS had chosen by itself.
constexpr const char* raised_from = "BEAMLINE_BENCH_OPENBLAS_CHOSE";

std::string core_name() {
  const char* name = openblas_get_corename();
  return name == nullptr ? "" : name;
}

// Kernels of OpenBLAS for an instruction set; the wide ones first.
struct Kernels {
  const char* feature;
  const char* ask_for;
  std::initializer_list<std::string_view> as_wide;
};
const Kernels widest[] = {
    {"avx512vl", "SkylakeX", {"SkylakeX", "Cooperlake", "SapphireRapids"}},
    {"avx2", "Haswell", {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}},
};

}  // namespace

void raise_openblas(char** argv) {
  if (getenv(raised_from) != nullptr || getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const CpuModel model = read_cpu_model();
  const std::string core = core_name();
  for (const Kernels& k : widest) {
    if (!model.has(k.feature)) continue;
    if (std::ranges::find(k.as_wide, core) != k.as_wide.end()) return;
    setenv("OPENBLAS_CORETYPE", k.ask_for, 1);
    setenv(raised_from, core.c_str(), 1);
    execv("/proc/self/exe", argv);
    throw std::system_error(errno, std::generic_category(), "execv");
  }
}

std::string openblas_core() {
  const char* raised = getenv(raised_from);
  return raised == nullptr ? core_name() : fmt::format("{} (it chose {})", core_name(), raised);
}

std::string openblas_crippled(int threads, bool own_variables) {
  for (char** e = environ; *e != nullptr; e++) {
    const std::string_view entry(*e);
    if (entry.starts_with("OPENBLAS_CORETYPE=") && getenv(raised_from) != nullptr) continue;
    for (const char* prefix : {"OPENBLAS_", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"})
      if (entry.starts_with(prefix) && !(own_variables && entry.starts_with("OMP_")))
        return fmt::format("OpenBLAS is forced: {} is set", entry.substr(0, entry.find('=')));
  }
  openblas_set_num_threads(threads);
  if (openblas_get_num_threads() != threads)
    return fmt::format("OpenBLAS runs on {} threads", openblas_get_num_threads());
  if (core_name().empty()) return "OpenBLAS does not say which kernels it chose";
  const char* config = openblas_get_config();
  if (config == nullptr || std::strstr(config, "DEBUG") != nullptr)
    return fmt::format("OpenBLAS is a debug build: {}", config == nullptr ? "" : config);
  return {};
}

void set_openblas_shape(int64_t m, int64_t n, int64_t k) {
  rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
}

void openblas_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, float* c, const float* a,
                      const float* b) {
  const auto im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
  if (n == 1)  // its matrix is a as stored
    cblas_sgemv(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, ta ? ik : im, ta ? im : ik, 1.0f, a,
                ta ? im : ik, b, 1, 0.0f, c, 1);
  else
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, im,
                in, ik, 1.0f, a, ta ? im : ik, b, tb ? ik : in, 0.0f, c, in);
}

void openblas_matmul(void* const* buffers, int64_t) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, 1.0f,
              static_cast<const float*>(buffers[1]), depth, static_cast<const float*>(buffers[2]),
              columns, 0.0f, static_cast<float*>(buffers[0]), columns);
}

}  // namespace beamline::bench
