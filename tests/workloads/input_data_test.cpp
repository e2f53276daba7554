// Input data: deterministic, within its dist, free of denormals; elements and .npy files round
// trip.
#include "workloads/input_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/base/sha256.h"
#include "workloads/dist.h"
#include "workloads/elements.h"
#include "workloads/npy.h"

namespace beamline::workloads {
namespace {

InputSpec spec(DType t, std::vector<int64_t> shape, DistKind kind, double a = 0, double b = 0) {
  InputSpec s;
  s.name = "x", s.dtype = t, s.shape = std::move(shape);
  s.dist.kind = kind, s.dist.first = a, s.dist.second = b;
  s.dist.lowest = static_cast<int64_t>(a), s.dist.highest = static_cast<int64_t>(b);
  return s;
}
std::vector<std::byte> bytes(const InputSpec& s, uint64_t seed = 1) {
  return std::get<std::vector<std::byte>>(input_data(s, seed));
}
std::vector<double> numbers(const InputSpec& s, uint64_t seed = 1) {
  const auto b = bytes(s, seed);
  std::vector<double> v;
  for (int64_t i = 0; i < s.elements(); i++) v.push_back(load(b, s.dtype, static_cast<size_t>(i)));
  return v;
}

TEST(InputData, Deterministic) {
  InputSpec s = spec(DType::F32, {8, 5}, DistKind::Uniform, -1, 1);
  EXPECT_EQ(bytes(s).size(), 160U);
  EXPECT_EQ(bytes(s, 1), bytes(s, 1));
  EXPECT_NE(bytes(s, 1), bytes(s, 2));
  InputSpec longer = s;
  longer.shape = {100};
  const auto a = bytes(s), b = bytes(longer);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << "elements do not depend on the shape";
  InputSpec other = s;
  other.name = "y";
  EXPECT_NE(bytes(s), bytes(other));
  // Pinned: a change here makes stored results of other machines incomparable.
  const auto text = [](const std::vector<std::byte>& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), v.size());
  };
  EXPECT_EQ(sha256_hex(text(bytes(s, 42))).substr(0, 16), "ef2e8f3f704a6b01");
  EXPECT_EQ(
      sha256_hex(text(bytes(spec(DType::I32, {50}, DistKind::Int, -5, 1000), 42))).substr(0, 16),
      "3529f71fc2c00be4");
}

TEST(InputData, StaysWithinItsDist) {
  for (const std::string& name : dtype_names()) {
    const DType t = *dtype_from_name(name);
    for (double v : numbers(spec(t, {200}, DistKind::Ones))) EXPECT_EQ(v, 1) << name;
    const double top = t == DType::Bool ? 1 : 9;
    double lowest = 99, highest = -99;
    for (double v : numbers(spec(t, {500}, DistKind::Int, 0, top)))
      lowest = std::min(lowest, v), highest = std::max(highest, v);
    EXPECT_EQ(lowest, 0) << name;
    EXPECT_EQ(highest, is_float(t) ? round_to(t, top) : top) << name;
    if (!is_float(t)) continue;
    double sum = 0, squares = 0;
    for (double v : numbers(spec(t, {20000}, DistKind::Uniform, -1, 1))) {
      EXPECT_LE(std::fabs(v), 1) << name;
      EXPECT_TRUE(v == 0 || std::fabs(v) >= smallest_normal(t)) << name << " denormal " << v;
      sum += v, squares += v * v;
    }
    EXPECT_NEAR(sum / 20000, 0, 0.02) << name;
    EXPECT_NEAR(squares / 20000, 1.0 / 3, 0.02) << name;
    sum = squares = 0;
    for (double v : numbers(spec(t, {20000}, DistKind::Normal, 1, 2))) {
      EXPECT_TRUE(std::isfinite(v)) << name;
      EXPECT_TRUE(v == 0 || std::fabs(v) >= smallest_normal(t)) << name << " denormal " << v;
      sum += v, squares += v * v;
    }
    EXPECT_NEAR(sum / 20000, 1, 0.06) << name;
    EXPECT_NEAR(squares / 20000 - 1, 4, 0.2) << name;
  }
  EXPECT_TRUE(bytes(spec(DType::F32, {0, 4}, DistKind::Uniform, -1, 1)).empty());
  EXPECT_EQ(bytes(spec(DType::F64, {}, DistKind::Ones)).size(), 8U);
  InputSpec whole = spec(DType::I64, {64}, DistKind::Int);
  whole.dist.lowest = INT64_MIN, whole.dist.highest = INT64_MAX;
  double negative = 0;
  for (double v : numbers(whole)) negative += v < 0;
  EXPECT_GT(negative, 10);
  EXPECT_LT(negative, 54);
}

TEST(Elements, EveryPatternOfSmallFloats) {
  for (const auto& [t, bits] :
       {std::pair{DType::Fp8e4m3, 8}, {DType::Fp8e5m2, 8}, {DType::F16, 16}, {DType::BF16, 16}}) {
    for (uint64_t p = 0; p < (uint64_t{1} << bits); p++) {
      const double v = float_value(t, p);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(float_value(t, float_bits(t, v))));
        continue;
      }
      EXPECT_EQ(float_bits(t, v), p) << dtype_name(t) << " " << p << " " << v;
    }
  }
  EXPECT_EQ(float_bits(DType::F16, 1.0), 0x3c00U);
  EXPECT_EQ(float_bits(DType::BF16, 1.0), 0x3f80U);
  EXPECT_EQ(float_bits(DType::Fp8e4m3, 448), 0x7eU);
  EXPECT_EQ(float_bits(DType::Fp8e5m2, INFINITY), 0x7cU);
  EXPECT_EQ(float_bits(DType::F16, 65504.0), 0x7bffU);
  EXPECT_EQ(float_value(DType::F16, 1), 0x1p-24);
  EXPECT_EQ(smallest_normal(DType::F16), 0x1p-14);
  EXPECT_EQ(smallest_normal(DType::F32), 0x1p-126);
}

TEST(Elements, Integers) {
  std::vector<std::byte> b(16);
  store(b, DType::I16, 3, int64_t{-2});
  EXPECT_EQ(load(b, DType::I16, 3), -2);
  EXPECT_EQ(load(b, DType::U16, 3), 65534);
  store(b, DType::Bool, 0, int64_t{256});
  EXPECT_EQ(load(b, DType::Bool, 0), 1);
  store(b, DType::U8, 1, int64_t{300});
  EXPECT_EQ(load(b, DType::U8, 1), 44);
}

TEST(Npy, RoundTripsEveryDtype) {
  for (const std::string& name : dtype_names()) {
    const DType t = *dtype_from_name(name);
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {5}, {2, 3, 4}, {0, 3}}) {
      const InputSpec s = spec(t, shape, DistKind::Int, 0, 1);
      const std::string text = npy_text(bytes(s), t, shape);
      EXPECT_EQ((text.size() - bytes(s).size()) % 64, 0U);
      const auto r = parse_npy(text, t, shape);
      ASSERT_TRUE(std::holds_alternative<std::vector<std::byte>>(r))
          << name << ": " << std::get<std::string>(r);
      EXPECT_EQ(std::get<std::vector<std::byte>>(r), bytes(s));
    }
  }
}

std::string npy(std::string header, std::string data, char version = 1) {
  std::string s = "\x93NUMPY";
  s += {version, 0, static_cast<char>(header.size()), 0};
  if (version > 1) s += {0, 0};
  return s + header + data;
}

TEST(Npy, RefusesWhatDoesNotFit) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const std::string data(8, '\0');
  const std::vector<int64_t> shape = {2};
  const auto why = [&](const std::string& text, DType t = DType::F32) {
    const auto r = parse_npy(text, t, shape);
    return std::holds_alternative<std::string>(r) ? std::get<std::string>(r) : "read";
  };
  EXPECT_EQ(why(npy(good, data)), "read");
  EXPECT_EQ(why(npy(good, data, 2)), "read");
  EXPECT_EQ(why(npy("{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}", data)), "read");
  EXPECT_EQ(why(""), "not a .npy file");
  EXPECT_EQ(why("\x93NUMPZ123456"), "not a .npy file");
  EXPECT_EQ(why(npy(good, data, 9)), "unknown .npy version 9");
  EXPECT_EQ(why(npy(good, data).substr(0, 30)), "the header is cut off");
  EXPECT_EQ(why(npy("{'descr': '<f4'}", data)), "the header lacks descr, fortran_order or shape");
  EXPECT_EQ(why(npy(good, data), DType::F64), "holds type '<f4', f64 needs <f8");
  EXPECT_EQ(why(npy(good, data), DType::BF16), "holds type '<f4', bf16 needs <u2 or |V2");
  EXPECT_EQ(why(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", data)),
            "has shape (1, 2), the input (2)");
  EXPECT_EQ(why(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2", data)),
            "the header's shape is malformed");
  EXPECT_EQ(why(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", data)),
            "the header's shape is malformed");
  EXPECT_EQ(why(npy(good, data + "x")), "holds 9 bytes of data, its shape needs 8");
  // Any prefix of a good file is refused without reading beyond it.
  const std::string whole = npy(good, data);
  for (size_t n = 0; n < whole.size(); n++) EXPECT_NE(why(whole.substr(0, n)), "read");
}

TEST(Npy, FileInput) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("beamline_npy_" + std::to_string(getpid()));
  std::filesystem::create_directories(dir);
  const InputSpec made = spec(DType::F32, {3, 2}, DistKind::Uniform, -1, 1);
  std::ofstream(dir / "x.npy", std::ios::binary) << npy_text(bytes(made), DType::F32, made.shape);
  InputSpec s = spec(DType::F32, {3, 2}, DistKind::File);
  s.dist.path = (dir / "x.npy").string();
  EXPECT_EQ(bytes(s), bytes(made));
  s.dist.path = (dir / "y.npy").string();
  EXPECT_EQ(std::get<std::string>(input_data(s, 1)), s.dist.path + ": no such file");
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace beamline::workloads
