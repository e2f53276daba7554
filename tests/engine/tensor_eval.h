// A plain evaluator of tensor graphs for tests: every value is a double rounded to its dtype (or a
// wrapped integer). Slow, and independent of rangeify and everything after it.
#pragma once
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline::test {

struct Tensor {
  Ints shape;
  std::vector<double> data;
};

inline int64_t numel(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}
inline Ints unravel(int64_t flat, std::span<const int64_t> shape) {
  Ints at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) at[i] = flat % shape[i];
  return at;
}
// Element of t at a right-aligned index of a shape it broadcasts to.
inline double element(const Tensor& t, std::span<const int64_t> at) {
  int64_t flat = 0;
  const size_t skip = at.size() - t.shape.size();
  for (size_t i = 0; i < t.shape.size(); i++)
    flat = flat * t.shape[i] + (t.shape[i] == 1 ? 0 : at[i + skip]);
  return t.data[static_cast<size_t>(flat)];
}

inline double settle(DType t, double v) {
  if (is_float(t)) return round_to(t, v);
  if (t == DType::Bool) return v != 0;
  return static_cast<double>(wrap_to(t, static_cast<int64_t>(v)));
}

inline double scalar(Op op, double a, double b, double c) {
  switch (op) {
    case Op::ADD: return a + b;
    case Op::MUL: return a * b;
    case Op::MAX: return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
    case Op::CMPLT: return a < b;
    case Op::CMPNE: return a != b;
    case Op::AND: return static_cast<double>(static_cast<int64_t>(a) & static_cast<int64_t>(b));
    case Op::OR: return static_cast<double>(static_cast<int64_t>(a) | static_cast<int64_t>(b));
    case Op::XOR: return static_cast<double>(static_cast<int64_t>(a) ^ static_cast<int64_t>(b));
    case Op::FLOORDIV: return std::floor(a / b);
    case Op::FLOORMOD: return a - std::floor(a / b) * b;
    case Op::WHERE: return a != 0 ? b : c;
    case Op::EXP2: return std::exp2(a);
    case Op::LOG2: return std::log2(a);
    case Op::SIN: return std::sin(a);
    case Op::SQRT: return std::sqrt(a);
    case Op::RECIPROCAL: return 1 / a;
    case Op::TRUNC: return std::trunc(a);
    case Op::CAST: return a;
    default: return NAN;
  }
}

inline Tensor evaluate_node(UOp u, const std::vector<const Tensor*>& src,
                            const std::vector<Tensor>& inputs) {
  Tensor out{Ints(u.shape().begin(), u.shape().end()), {}};
  if (u.op() == Op::PARAM) return inputs.at(static_cast<size_t>(u.param().slot));
  const int64_t n = numel(out.shape);
  for (int64_t i = 0; i < n; i++) {
    const Ints at = unravel(i, out.shape);
    double v = 0;
    switch (u.op()) {
      case Op::CONST: v = u.number(); break;
      case Op::RESHAPE: v = src[0]->data[static_cast<size_t>(i)]; break;
      case Op::CONTIGUOUS:
      case Op::EXPAND: v = element(*src[0], std::span(at).last(src[0]->shape.size())); break;
      case Op::PERMUTE: {
        Ints in(at.size());
        for (size_t k = 0; k < at.size(); k++) in[static_cast<size_t>(u.ints()[k])] = at[k];
        v = element(*src[0], in);
        break;
      }
      case Op::FLIP: {
        Ints in = at;
        for (int64_t a : u.ints())
          in[static_cast<size_t>(a)] =
              out.shape[static_cast<size_t>(a)] - 1 - in[static_cast<size_t>(a)];
        v = element(*src[0], in);
        break;
      }
      case Op::PAD:
      case Op::SHRINK: {
        Ints in = at;
        bool inside = true;
        for (size_t k = 0; k < at.size(); k++) {
          const int64_t offset = u.src(1).src(k).ival();
          in[k] = u.op() == Op::PAD ? at[k] - offset : at[k] + offset;
          inside &= in[k] >= 0 && in[k] < src[0]->shape[k];
        }
        v = inside ? element(*src[0], in) : 0;
        break;
      }
      case Op::REDUCE: {
        const std::span<const int64_t> lead = std::span(src[0]->shape).first(u.reduce_dims());
        const int64_t count = numel(lead);
        for (int64_t r = 0; r < count; r++) {
          Ints in = unravel(r, lead);
          in.insert(in.end(), at.begin(), at.end());
          const double x = element(*src[0], in);
          v = r == 0 ? x : settle(u.dtype(), scalar(u.reduce_op(), v, x, 0));
        }
        break;
      }
      default: {
        double a[3] = {0, 0, 0};
        for (size_t k = 0; k < src.size() && k < 3; k++) a[k] = element(*src[k], at);
        v = scalar(u.op(), a[0], a[1], a[2]);
      }
    }
    out.data.push_back(settle(u.dtype(), v));
  }
  return out;
}

/// The values of the roots of a SINK (or of one node), inputs by slot.
inline std::vector<Tensor> evaluate(UOp root, const std::vector<Tensor>& inputs) {
  std::unordered_map<UOp, Tensor, UOpHash> done;
  for (UOp u : toposort(root)) {
    if (!u.has_shape() || u.op() == Op::STACK) continue;
    std::vector<const Tensor*> src;
    for (UOp s : u.srcs()) src.push_back(&done[s]);
    done[u] = evaluate_node(u, src, inputs);
  }
  if (root.op() != Op::SINK) return {done.at(root)};
  std::vector<Tensor> out;
  for (UOp s : root.srcs()) out.push_back(done.at(s));
  return out;
}

}  // namespace beamline::test
