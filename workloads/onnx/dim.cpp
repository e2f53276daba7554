#include "workloads/onnx/dim.h"

#include <algorithm>

#include <fmt/format.h>

namespace beamline::onnx {

Dim::Dim(int64_t v) { add({}, v); }

Dim Dim::param(const std::string& name) {
  Dim d;
  d.add({name}, 1);
  return d;
}

void Dim::add(const Product& p, int64_t coefficient) {
  int64_t& c = terms_[p];
  if (__builtin_add_overflow(c, coefficient, &c)) valid_ = false;
  if (c == 0) terms_.erase(p);
}

std::optional<int64_t> Dim::value() const {
  if (!valid_) return std::nullopt;
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::string Dim::text() const {
  if (const auto v = value()) return *v < 0 ? fmt::format("({})", *v) : fmt::format("{}", *v);
  std::string s;
  // Names first, the constant last.
  for (const bool constant : {false, true})
    for (const auto& [product, c] : terms_) {
      if (product.empty() != constant) continue;
      const bool first = s.empty();
      const uint64_t size = c < 0 ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
      s += c < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
      if (size != 1 || constant) s += fmt::format("{}{}", size, constant ? "" : "*");
      for (size_t i = 0; i < product.size(); i++) s += (i ? "*" : "") + product[i];
    }
  const bool name =
      terms_.size() == 1 && terms_.begin()->first.size() == 1 && terms_.begin()->second == 1;
  return name ? s : "(" + s + ")";
}

std::optional<int> Dim::compare(const Dim& v) const {
  const Dim d = *this - v;
  if (!d.valid_) return std::nullopt;
  if (d.terms_.empty()) return 0;
  // Each product is at least 1 unless it holds a quotient.
  int64_t bound = 0;
  int sign = 0;
  for (const auto& [product, c] : d.terms_) {
    for (const std::string& name : product)
      if (name.front() == '(') return std::nullopt;
    if (!product.empty()) {
      const int s = c > 0 ? 1 : -1;
      if (sign != 0 && sign != s) return std::nullopt;
      sign = s;
    }
    if (__builtin_add_overflow(bound, c, &bound)) return std::nullopt;
  }
  if (sign >= 0 && bound > 0) return 1;
  if (sign <= 0 && bound < 0) return -1;
  return std::nullopt;
}

Dim operator+(const Dim& a, const Dim& b) {
  Dim r = a;
  r.valid_ = a.valid_ && b.valid_;
  for (const auto& [product, c] : b.terms_) r.add(product, c);
  return r;
}
Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }
Dim operator*(const Dim& a, const Dim& b) {
  Dim r;
  r.valid_ = a.valid_ && b.valid_;
  for (const auto& [p, c] : a.terms_)
    for (const auto& [q, d] : b.terms_) {
      Dim::Product both = p;
      both.insert(both.end(), q.begin(), q.end());
      std::ranges::sort(both);
      int64_t coefficient = 0;
      if (__builtin_mul_overflow(c, d, &coefficient)) r.valid_ = false;
      r.add(both, coefficient);
    }
  return r;
}

Dim floordiv(const Dim& a, const Dim& b) {
  Dim r;
  r.valid_ = a.valid_ && b.valid_ && !b.is(0);
  if (!r.valid_) return r;
  if (b.is(1)) return a;
  if (a == b) return Dim(1);
  const auto whole_a = a.value(), whole_b = b.value();
  if (whole_a && whole_b) {
    if (*whole_b == -1) return a * Dim(-1);
    const int64_t q = *whole_a / *whole_b;
    return Dim(*whole_a % *whole_b != 0 && (*whole_a < 0) != (*whole_b < 0) ? q - 1 : q);
  }
  if (b.terms_.size() == 1) {
    const auto& [divisor, d] = *b.terms_.begin();
    bool exact = d != -1;
    for (const auto& [p, c] : a.terms_) {
      exact = exact && c % d == 0 && std::ranges::includes(p, divisor);
      if (!exact) break;
      Dim::Product rest;
      std::ranges::set_difference(p, divisor, std::back_inserter(rest));
      r.add(rest, c / d);
    }
    if (exact) return r;
  }
  return Dim::param("(" + a.text() + " // " + b.text() + ")");
}

std::string list_text(std::span<const Dim> dims) {
  std::string s;
  for (const Dim& d : dims) {
    std::string t = d.text();
    if (t.front() == '(') t = t.substr(1, t.size() - 2);  // what text() brackets, it brackets whole
    s += (s.empty() ? "" : ", ") + t;
  }
  return "[" + s + "]";
}
Dim product(std::span<const Dim> dims) {
  Dim r(1);
  for (const Dim& d : dims) r = r * d;
  return r;
}
bool known(std::span<const Dim> dims) {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.value().has_value(); });
}

}  // namespace beamline::onnx
