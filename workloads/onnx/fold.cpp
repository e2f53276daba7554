#include <cmath>

#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

using Result = std::optional<Element>;

Element whole(Dim d) { return {std::move(d), 0, false}; }
Element real(double v) { return {Dim(0), v, true}; }
Result truth(std::optional<bool> b) {
  if (!b) return std::nullopt;
  return whole(Dim(*b ? 1 : 0));
}

// Division of ONNX integers rounds towards zero; of what is no number, both must be positive.
Result quotient(const Dim& a, const Dim& b) {
  const auto x = a.value(), y = b.value();
  if (x && y) {
    if (*y == 0 || (*x == INT64_MIN && *y == -1)) return std::nullopt;
    return whole(Dim(*x / *y));
  }
  if (a.compare(Dim(0)) != 1 || b.compare(Dim(0)) != 1) return std::nullopt;
  return whole(floordiv(a, b));
}

Result of_wholes(const std::string& op, const std::vector<Dim>& v) {
  if (v.size() == 1) {
    const auto sign = v[0].compare(Dim(0));
    if (op == "Neg") return whole(Dim(0) - v[0]);
    if (op == "Abs" && sign) return whole(*sign < 0 ? Dim(0) - v[0] : v[0]);
    if (op == "Not") return truth(v[0].is(0));
    if (op == "Floor" || op == "Ceil" || op == "Round") return whole(v[0]);
    return std::nullopt;
  }
  const Dim &a = v[0], &b = v[1];
  const auto order = a.compare(b);
  if (op == "Add" || op == "Sum") return whole(a + b);
  if (op == "Sub") return whole(a - b);
  if (op == "Mul") return whole(a * b);
  if (op == "Div") return quotient(a, b);
  if (op == "Mod" && b.compare(Dim(0)) == 1) return whole(a - floordiv(a, b) * b);
  if (op == "And") return truth(!a.is(0) && !b.is(0));
  if (op == "Or") return truth(!a.is(0) || !b.is(0));
  if (op == "Xor") return truth(a.is(0) != b.is(0));
  if (!order) return std::nullopt;
  if (op == "Equal") return truth(*order == 0);
  if (op == "Less") return truth(*order < 0);
  if (op == "LessOrEqual") return truth(*order <= 0);
  if (op == "Greater") return truth(*order > 0);
  if (op == "GreaterOrEqual") return truth(*order >= 0);
  if (op == "Max") return whole(*order < 0 ? b : a);
  if (op == "Min") return whole(*order < 0 ? a : b);
  return std::nullopt;
}

Result of_reals(const std::string& op, const std::vector<double>& v) {
  const double a = v[0];
  if (v.size() == 1) {
    if (op == "Neg") return real(-a);
    if (op == "Abs") return real(std::fabs(a));
    if (op == "Sqrt") return real(std::sqrt(a));
    if (op == "Reciprocal") return real(1 / a);
    if (op == "Floor") return real(std::floor(a));
    if (op == "Ceil") return real(std::ceil(a));
    return std::nullopt;
  }
  const double b = v[1];
  if (op == "Add" || op == "Sum") return real(a + b);
  if (op == "Sub") return real(a - b);
  if (op == "Mul") return real(a * b);
  if (op == "Div") return real(a / b);
  if (op == "Pow") return real(std::pow(a, b));
  if (op == "Max") return real(std::fmax(a, b));
  if (op == "Min") return real(std::fmin(a, b));
  if (op == "Equal") return truth(a == b);
  if (op == "Less") return truth(a < b);
  if (op == "Greater") return truth(a > b);
  return std::nullopt;
}

// What a float of the result's type holds of it.
Element rounded(Element e, DType t) {
  if (e.is_real && is_float(t)) e.real = round_to(t, e.real);
  return e;
}

Result element_of(const std::string& op, const std::vector<Element>& v) {
  if (op == "Where") {
    const auto c = v[0].whole.value();
    if (!c) return std::nullopt;
    return *c ? v[1] : v[2];
  }
  bool reals = false;
  for (const Element& e : v) reals |= e.is_real;
  if (!reals) {
    std::vector<Dim> d;
    for (const Element& e : v) d.push_back(e.whole);
    return of_wholes(op, d);
  }
  std::vector<double> n;
  for (const Element& e : v) {
    const auto x = e.number();
    if (!x) return std::nullopt;
    n.push_back(*x);
  }
  return of_reals(op, n);
}

}  // namespace

std::optional<Elements> fold(const std::string& op, const std::vector<ValueRef>& operands,
                             DType result) {
  size_t rank = 0;
  for (const ValueRef& v : operands) {
    if (!v->elements || !known(v->shape)) return std::nullopt;
    rank = std::max(rank, v->rank());
  }
  std::vector<size_t> shape(rank, 1);
  for (const ValueRef& v : operands)
    for (size_t i = 0; i < v->rank(); i++) {
      const auto n = static_cast<size_t>(*v->shape[i].value());
      if (n != 1) shape[rank - v->rank() + i] = n;
    }
  size_t count = 1;
  for (size_t n : shape)
    if ((count *= n) > most_known) return std::nullopt;
  Elements out;
  for (size_t at = 0; at < count; at++) {
    std::vector<Element> args;
    for (const ValueRef& v : operands) {
      // The element's place in an operand that repeats along its dims of 1.
      size_t rest = at, place = 0, stride = 1;
      for (size_t i = rank; i-- > 0;) {
        const size_t coordinate = rest % shape[i];
        rest /= shape[i];
        if (i < rank - v->rank()) continue;
        const auto n = static_cast<size_t>(*v->shape[i - (rank - v->rank())].value());
        place += n == 1 ? 0 : coordinate * stride;
        stride *= n;
      }
      if (place >= v->elements->size()) return std::nullopt;
      args.push_back((*v->elements)[place]);
    }
    const Result r = element_of(op, args);
    if (!r) return std::nullopt;
    out.push_back(rounded(*r, result));
  }
  return out;
}

}  // namespace beamline::onnx
