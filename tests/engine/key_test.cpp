// Keys do not depend on the thread, on the order in which nodes were made, on what else is in the
// arena, or on the compiler: the digest below is the same under g++ and clang, -O0 and -O2.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>

#include "engine/base/sha256.h"
#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/rules/rules.h"

namespace beamline {
namespace {

// Graphs of index math, made without any call whose arguments have side effects: the order in which
// a compiler evaluates those is its own.
class Graphs {
 public:
  explicit Graphs(uint64_t seed) : rng_(seed) {}
  UOp next() {
    std::vector<UOp> pool, conditions;
    for (int64_t i = 0; i < 4; i++) {
      const int64_t size = 2 + pick(30);
      pool.push_back(range(size, i, i % 2 != 0 ? AxisType::REDUCE : AxisType::LOOP));
    }
    pool.push_back(variable("n", 1, 40));
    const UOp flag = variable("p", 0, 1, DType::Bool);
    conditions.push_back(flag);
    for (int i = 0; i < 24; i++) {
      const UOp a = pool[static_cast<size_t>(pick(static_cast<int64_t>(pool.size())))];
      const UOp b = pool[static_cast<size_t>(pick(static_cast<int64_t>(pool.size())))];
      const UOp c = conditions[static_cast<size_t>(pick(static_cast<int64_t>(conditions.size())))];
      const UOp k = iconst(1 + pick(12));
      switch (pick(9)) {
        case 0: pool.push_back(a + b); break;
        case 1: pool.push_back(a * k); break;
        case 2: pool.push_back(a / k); break;
        case 3: pool.push_back(a % k); break;
        case 4: pool.push_back(maximum(a, b)); break;
        case 5: pool.push_back(where(c, a, b)); break;
        case 6: pool.push_back(a + k); break;
        case 7: conditions.push_back(a < b); break;
        default: {
          const UOp less = a < k;
          conditions.push_back(c & less);
        }
      }
    }
    const UOp last = pool.back();
    return where(conditions.back(), last, invalid());
  }

 private:
  int64_t pick(int64_t n) {
    return static_cast<int64_t>(rng_() %
                                static_cast<uint64_t>(n));  // the engine's bits are standard
  }
  std::mt19937_64 rng_;
};

// What a thread makes of the graphs; `noise` nodes that nobody asked for come first.
std::string digest_of(int noise) {
  std::string keys;
  for (uint64_t seed = 0; seed < 150; seed++) {
    Arena arena;
    const Arena::Scope scope(arena);
    for (int i = 0; i < noise; i++) {
      const UOp k = iconst(noise - i);
      const UOp r = range(2 + i % 30, i % 4, i % 8 < 4 ? AxisType::REDUCE : AxisType::LOOP);
      (void)(r * k);
    }
    const UOp u = Graphs(seed).next();
    keys += kernel_key(u) + kernel_key(simplify(u));
  }
  return sha256_hex(keys);
}

// A change of this value changes stored keys: it needs a new engine_version.
constexpr std::string_view golden =
    "2ea45784a6f03db1ff005c8fd613917eee78ed9090bcecd6b1bcd14035e14c90";

TEST(Keys, AreTheSameUnderEveryCompiler) { EXPECT_EQ(digest_of(0), golden); }
TEST(Keys, AreTheSameOnEveryThreadInEveryOrder) {
  std::array<std::string, 4> digest;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < digest.size(); t++)
    threads.emplace_back([&digest, t] { digest[t] = digest_of(static_cast<int>(50 * t)); });
  for (std::thread& t : threads) t.join();
  for (const std::string& d : digest) EXPECT_EQ(d, golden);
}

}  // namespace
}  // namespace beamline
