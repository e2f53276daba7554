// Integers of a model while its params have no values: polynomials of params with 64-bit
// coefficients, quotients kept as a text where they do not divide. Params are taken as at least 1.
// What would leave 64 bits is poison: valid() is false, and so is everything made of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace beamline::onnx {

class Dim {
 public:
  Dim(int64_t v = 0);  // NOLINT: a number is a dim
  static Dim param(const std::string& name);

  bool valid() const { return valid_; }
  std::optional<int64_t> value() const;  // where it names no param
  bool is(int64_t v) const { return value() == v; }
  /// An expression of the compute language, in brackets if it is more than a name or a number.
  std::string text() const;
  /// -1, 0 or 1 as this is below, equal to or above v for all values of the params; nothing where
  /// that differs or is not known.
  std::optional<int> compare(const Dim& v) const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floordiv(const Dim& a, const Dim& b);  // rounds down; b is not 0
  friend bool operator==(const Dim& a, const Dim& b) = default;

 private:
  using Product = std::vector<std::string>;  // names and bracketed texts, sorted
  void add(const Product& p, int64_t coefficient);
  std::map<Product, int64_t> terms_;  // no coefficient is 0
  bool valid_ = true;
};

using Dims = std::vector<Dim>;
/// "[N, 3, 2*H]"
std::string list_text(std::span<const Dim> dims);
Dim product(std::span<const Dim> dims);
bool known(std::span<const Dim> dims);

}  // namespace beamline::onnx
