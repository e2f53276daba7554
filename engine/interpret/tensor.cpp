#include "engine/interpret/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/interpret/arithmetic.h"
#include "engine/ir/derive.h"
#include "engine/ir/node_map.h"

namespace beamline {
namespace {

int64_t product(std::span<const int64_t> shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

// Steps through the elements of `shape` in row-major order, and with them through operands that
// have a stride (possibly 0 or negative) along each dim.
class Walk {
 public:
  explicit Walk(std::span<const int64_t> shape) : shape_(shape.begin(), shape.end()) {
    at_.assign(shape_.size(), 0);
  }
  void add(Ints strides, int64_t start) {
    strides_.push_back(std::move(strides));
    place_.push_back(start);
  }
  size_t place(size_t k) const { return static_cast<size_t>(place_[k]); }
  int64_t at(size_t dim) const { return at_[dim]; }
  void next() {
    for (size_t d = shape_.size(); d-- > 0;) {
      at_[d]++;
      for (size_t k = 0; k < place_.size(); k++) place_[k] += strides_[k][d];
      if (at_[d] < shape_[d]) return;
      for (size_t k = 0; k < place_.size(); k++) place_[k] -= strides_[k][d] * shape_[d];
      at_[d] = 0;
    }
  }

 private:
  Ints shape_, at_;
  std::vector<Ints> strides_;
  std::vector<int64_t> place_;
};

Ints row_major(std::span<const int64_t> shape) {
  Ints s(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) s[i] = stride;
  return s;
}
// Strides of a value that broadcasts to a shape of `rank` dims.
Ints broadcast_strides(std::span<const int64_t> shape, size_t rank) {
  const Ints own = row_major(shape);
  Ints s(rank, 0);
  for (size_t i = 0; i < shape.size(); i++)
    if (shape[i] != 1) s[rank - shape.size() + i] = own[i];
  return s;
}

uint64_t element_bits(DType t, const TensorValue& v, size_t i) {
  if (!is_float(t)) return static_cast<uint64_t>(v.wholes[i]);
  return float_to_bits(t, v.reals[i]);
}

bool compare(Op op, DType t, const TensorValue& x, size_t i, const TensorValue& y, size_t j) {
  if (!is_float(t)) return compare_wholes(op, t, x.wholes[i], y.wholes[j]);
  const double a = x.reals[i], b = y.reals[j];
  return op == Op::CMPLT ? a < b : op == Op::CMPNE ? a != b : a == b;
}

class NodeEvaluator {
 public:
  NodeEvaluator(UOp u, std::span<const TensorValue* const> src, Rounding rounding)
      : u_(u), src_(src), typed_(rounding == Rounding::Typed), out_(u.dtype(), u.shape()) {}

  TensorValue run() {
    const size_t rank = u_.shape().size();
    if (u_.op() == Op::CONST) {
      if (is_float(u_.dtype()))
        out_.reals[0] = u_.fval();
      else
        out_.wholes[0] = wrap_to(u_.dtype(), u_.ival());
    } else if (u_.op() == Op::REDUCE) {
      fold();
    } else if (u_.op() == Op::RESHAPE || u_.op() == Op::CONTIGUOUS || u_.op() == Op::DETACH) {
      out_.reals = src_[0]->reals, out_.wholes = src_[0]->wholes;
    } else if (ops::movement.has(u_.op())) {
      move(rank);
    } else {
      CHECK(ops::elementwise.has(u_.op()));
      Walk w(u_.shape());
      for (const TensorValue* s : src_) w.add(broadcast_strides(s->shape, rank), 0);
      for (size_t i = 0; i < out_.size(); i++, w.next()) element(w, i);
    }
    return std::move(out_);
  }

 private:
  void copy(size_t to, size_t from) {
    if (is_float(out_.dtype))
      out_.reals[to] = src_[0]->reals[from];
    else
      out_.wholes[to] = src_[0]->wholes[from];
  }
  double settled(double v) const { return typed_ ? round_to(u_.dtype(), v) : v; }

  void move(size_t rank) {
    const TensorValue& in = *src_[0];
    const Ints own = row_major(in.shape);
    Ints strides(rank, 0);
    int64_t start = 0;
    switch (u_.op()) {
      case Op::EXPAND: strides = broadcast_strides(in.shape, rank); break;
      case Op::PERMUTE:
        for (size_t i = 0; i < rank; i++) strides[i] = own[static_cast<size_t>(u_.ints()[i])];
        break;
      case Op::FLIP:
        strides = own;
        for (int64_t a : u_.ints()) {
          const auto d = static_cast<size_t>(a);
          start += own[d] * (in.shape[d] - 1), strides[d] = -own[d];
        }
        break;
      default:  // PAD, SHRINK
        strides = own;
        for (size_t i = 0; i < rank; i++) {
          const int64_t offset = u_.src(1).src(i).ival();
          start += (u_.op() == Op::PAD ? -offset : offset) * own[i];
        }
    }
    Walk w(u_.shape());
    w.add(strides, start);
    for (size_t i = 0; i < out_.size(); i++, w.next()) {
      bool inside = true;
      if (u_.op() == Op::PAD)
        for (size_t d = 0; d < rank && inside; d++) {
          const int64_t k = w.at(d) - u_.src(1).src(d).ival();
          inside = k >= 0 && k < in.shape[d];
        }
      if (inside) copy(i, w.place(0));
    }
  }

  void fold() {
    const TensorValue& in = *src_[0];
    const size_t n = out_.size();
    const auto steps = static_cast<size_t>(product(std::span(in.shape).first(u_.reduce_dims())));
    const Op op = u_.reduce_op();
    for (size_t i = 0; i < n; i++) {
      if (is_float(u_.dtype())) {
        double v = reduce_identity(op, u_.dtype()).fval();
        for (size_t r = 0; r < steps; r++)
          v = settled(real_arithmetic(op, v, in.reals[r * n + i], 0));
        out_.reals[i] = v;
      } else {
        int64_t v = wrap_to(u_.dtype(), reduce_identity(op, u_.dtype()).ival());
        for (size_t r = 0; r < steps; r++)
          v = u_.dtype() == DType::Bool
                  ? (op == Op::MUL ? v & in.wholes[r * n + i] : v | in.wholes[r * n + i])
                  : whole_arithmetic(op, u_.dtype(), v, in.wholes[r * n + i], 0).value_or(0);
        out_.wholes[i] = v;
      }
    }
  }

  void element(const Walk& w, size_t i) {
    const DType t = u_.dtype(), in = src_[0]->dtype;
    const Op op = u_.op();
    if (op == Op::WHERE) {
      const size_t k = src_[0]->wholes[w.place(0)] != 0 ? 1 : 2;
      if (is_float(t))
        out_.reals[i] = src_[k]->reals[w.place(k)];
      else
        out_.wholes[i] = src_[k]->wholes[w.place(k)];
    } else if (ops::comparison.has(op)) {
      out_.wholes[i] = compare(op, in, *src_[0], w.place(0), *src_[1], w.place(1));
    } else if (op == Op::BITCAST) {
      const uint64_t bits = element_bits(in, *src_[0], w.place(0));
      if (is_float(t))
        out_.reals[i] = float_from_bits(t, bits);
      else
        out_.wholes[i] = wrap_to(t, static_cast<int64_t>(bits));
    } else if (op == Op::CAST) {
      if (is_float(t))
        out_.reals[i] = settled(src_[0]->number(w.place(0)));
      else if (t == DType::Bool)
        out_.wholes[i] = src_[0]->number(w.place(0)) != 0;
      else
        out_.wholes[i] = is_float(in) ? saturated(src_[0]->reals[w.place(0)], t)
                                      : wrap_to(t, src_[0]->wholes[w.place(0)]);
    } else if (is_float(t)) {
      double v[3] = {0, 0, 0};
      for (size_t k = 0; k < src_.size(); k++) v[k] = src_[k]->number(w.place(k));
      out_.reals[i] = settled(real_arithmetic(op, v[0], v[1], v[2]));
    } else {
      int64_t v[3] = {0, 0, 0};
      for (size_t k = 0; k < src_.size(); k++) v[k] = src_[k]->wholes[w.place(k)];
      out_.wholes[i] = whole_arithmetic(op, t, v[0], v[1], v[2]).value_or(0);
    }
  }

  UOp u_;
  std::span<const TensorValue* const> src_;
  bool typed_;
  TensorValue out_;
};

bool has_value(UOp u) { return u.has_shape() && u.op() != Op::STACK; }

}  // namespace

TensorValue::TensorValue(DType t, std::span<const int64_t> dims)
    : dtype(t), shape(dims.begin(), dims.end()) {
  const auto n = static_cast<size_t>(product(shape));
  if (is_float(t))
    reals.assign(n, 0);
  else
    wholes.assign(n, 0);
}

double TensorValue::number(size_t i) const {
  if (is_float(dtype)) return reals[i];
  return dtype == DType::U64 ? static_cast<double>(static_cast<uint64_t>(wholes[i]))
                             : static_cast<double>(wholes[i]);
}

int64_t evaluation_work(UOp root) {
  int64_t n = 0;
  for (UOp u : toposort(root)) {
    if (!has_value(u)) continue;
    const int64_t elements = u.op() == Op::REDUCE ? u.src(0).numel() : u.numel();
    if (__builtin_add_overflow(n, elements, &n)) return std::numeric_limits<int64_t>::max();
  }
  return n;
}

TensorValue evaluate_node(UOp u, std::span<const TensorValue* const> operands, Rounding rounding) {
  return NodeEvaluator(u, operands, rounding).run();
}

std::vector<TensorValue> evaluate_tensors(UOp root, std::span<const TensorValue> inputs,
                                          Rounding rounding) {
  NodeMap<TensorValue> done;
  NodeMap<size_t> uses;
  const std::vector<UOp> order = toposort(root);
  for (UOp u : order)
    for (UOp s : u.srcs())
      if (!uses.insert(s.node(), 1)) ++*uses.find(s.node());
  for (UOp u : order) {
    if (!has_value(u)) continue;
    if (u.op() == Op::PARAM) {
      const TensorValue& v = inputs[static_cast<size_t>(u.param().slot)];
      CHECK(v.dtype == u.dtype() && std::ranges::equal(v.shape, u.shape()));
      done.insert(u.node(), v);
      continue;
    }
    std::vector<const TensorValue*> src;
    for (UOp s : u.srcs())
      if (has_value(s)) src.push_back(done.find(s.node()));
    TensorValue v = evaluate_node(u, src, rounding);
    for (UOp s : u.srcs())  // values that no one needs any more make room
      if (has_value(s) && --*uses.find(s.node()) == 0) *done.find(s.node()) = {};
    done.insert(u.node(), std::move(v));
  }
  if (root.op() != Op::SINK) return {std::move(*done.find(root.node()))};
  std::vector<TensorValue> out;
  for (UOp s : root.srcs()) out.push_back(*done.find(s.node()));
  return out;
}

}  // namespace beamline
