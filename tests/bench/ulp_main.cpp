// ulp: the greatest error of the functions of real numbers over all floats.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "devices/cpu/cpu_target.h"
#include "tests/devices/transcendentals.h"

using namespace beamline;

namespace {

constexpr const char* help = R"(usage: ulp [options]

Compares the machine code of sin, cos, exp2, log2, exp, log, tanh, erf, sqrt and reciprocal, with the
heuristic's schedule, with libm's double precision on every bit pattern of a float, and prints the greatest
error of each in units of the last place. About ten minutes on two cores. Built with the tests;
build/release/bin/ulp.

  --step N     every Nth pattern only
  --only NAME  one function (repeatable)
  --help       this text

Exit codes: 0 all within their bounds, 1 failed, 2 bad usage, 3 a bound is exceeded.
)";

[[noreturn]] void usage_error(const std::string& what) {
  fmt::print(stderr, "ulp: {}; see --help\n", what);
  std::exit(2);
}

// Parts of the patterns are taken in turn by every processing unit.
UlpError exhaust(const Transcendental& f, const Target& target, uint64_t step, size_t threads) {
  constexpr int64_t count = 1 << 14;
  constexpr uint64_t end = uint64_t{1} << 31, parts = 512;
  const CodeBlob code = code_of(f, count, target);
  UlpError worst = greatest_error_at_edges(f, code, count);
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  std::vector<std::thread> pool;
  for (size_t t = 0; t < threads; t++)
    pool.emplace_back([&] {
      for (uint64_t part = next++; part < parts; part = next++) {
        const uint64_t from = (end / parts * part + step - 1) / step * step;
        const UlpError e = greatest_error(f, code, count, from, end / parts * (part + 1), step);
        const std::lock_guard lock(mutex);
        worst.add(e);
      }
    });
  for (std::thread& t : pool) t.join();
  return worst;
}

int run(uint64_t step, const std::vector<std::string>& only) {
  const CpuTopology topology = read_topology();
  const Target target = cpu_target(read_cpu_model(), topology, 1);
  bool exceeded = false;
  fmt::print("{:<12}{:>10}{:>8}  {:<24}{:>8}\n", "function", "max ULP", "bound", "at", "seconds");
  for (const Transcendental& f : transcendentals()) {
    if (!only.empty() && std::ranges::find(only, f.name) == only.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const UlpError e = exhaust(f, target, step, std::max<size_t>(1, topology.pus.size()));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    exceeded |= !(e.ulps <= f.bound);
    fmt::print("{:<12}{:>10.3f}{:>8.1f}  {:<24a}{:>8.0f}{}\n", f.name, e.ulps, f.bound, e.at,
               took.count(), e.ulps <= f.bound ? "" : "  exceeded");
    std::fflush(stdout);
  }
  return exceeded ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t step = 1;
  std::vector<std::string> only;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    if (a == "--help") {
      fmt::print("{}", help);
      return 0;
    }
    if (a != "--step" && a != "--only") usage_error(fmt::format("'{}' is no option", a));
    if (i + 1 == argc) usage_error(a + " needs a value");
    const std::string value = argv[++i];
    if (a == "--step") {
      char* end = nullptr;
      step = std::strtoull(value.c_str(), &end, 10);
      if (*end != '\0' || step == 0 || step > UINT32_MAX)
        usage_error(fmt::format("--step: '{}' is not a number from 1 to 2^32 - 1", value));
    } else if (std::ranges::none_of(transcendentals(),
                                    [&](const Transcendental& f) { return value == f.name; })) {
      usage_error(fmt::format("--only: there is no function '{}'", value));
    } else {
      only.push_back(value);
    }
  }
  try {
    return run(step, only);
  } catch (const std::exception& e) {
    fmt::print(stderr, "ulp: {}\n", e.what());
    return 1;
  }
}
