// What `peers` compares: a workload, and what its competitors need to know to do the same work.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/hand.h"
#include "tests/bench/onednn.h"

namespace beamline::bench {

struct Case {
  enum class Kind { Product, Convolution, Memory };
  std::string name;   // "gemm/512x512x512"
  std::string group;  // of the summary
  std::string toml;   // one workload, f32; inputs in the order a, b or x, w(, b)
  Kind kind = Kind::Product;
  int64_t m = 0, n = 0, k = 0;  // Product: c[m, n] = op(a) op(b)
  bool ta = false, tb = false;  // stored transposed
  ConvShape conv;
  HandOp op = HandOp::Add;
  int64_t rows = 0, columns = 0;  // Memory

  double flops() const;  // 0 for Memory: its arithmetic bounds nothing worth naming
  double bytes() const;  // read and written once
  bool exact() const { return kind != Kind::Memory; }
};

/// The shapes of the design study, squares, the layers of ResNet-50, memory-bound kernels, and a
/// seeded sample of 16 products and 8 convolutions of DeepBench under 10 GFLOP and 1 GB; or, with
/// `all`, all sizes of DeepBench that fit into memory.
std::vector<Case> peer_cases(bool all);

Case product_case(const std::string& group, int64_t m, int64_t n, int64_t k, bool ta = false,
                  bool tb = false);
Case conv_case(const std::string& group, const ConvShape& shape);

}  // namespace beamline::bench
