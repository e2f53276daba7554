// Operators that choose among elements, or put some beside them.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

// "x[:, :, item]"
std::string subscript(const std::string& x, size_t axis, const std::string& item) {
  std::string s = x + "[";
  for (size_t i = 0; i < axis; i++) s += ":, ";
  return s + item + "]";
}

// An index of data, counted from the front.
std::string from_front(NodeContext& n, const ValueRef& index, const Dim& size) {
  const std::string i = n.text(index);
  if (index->elements) {
    const bool front = std::ranges::all_of(
        *index->elements, [](const Element& e) { return e.whole.compare(Dim(-1)) == 1; });
    if (front) return i;
  }
  if (is_unsigned(index->dtype)) return i;
  return fmt::format("where({0} < 0, {0} + {1}, {0})", i, size.text());
}

void gather(NodeContext& n) {
  const ValueRef x = n.input(0), index = n.input(1);
  if (!n.ok()) return;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", 0), x->rank()));
  if (!n.ok()) return;
  if (is_float(index->dtype) || index->dtype == DType::Bool)
    return n.fail(fmt::format("the index is {}", dtype_name(index->dtype)), "integers");
  Dims shape(x->shape.begin(), x->shape.begin() + static_cast<std::ptrdiff_t>(a));
  shape.insert(shape.end(), index->shape.begin(), index->shape.end());
  shape.insert(shape.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(a) + 1, x->shape.end());
  const Dim& size = x->shape[a];
  n.bound_input(index, size);
  if (index->elements && size.value()) {
    std::vector<int64_t> at;
    for (const Element& e : *index->elements) {
      int64_t i = n.constant(e.whole, "the indices");
      if (i < 0) i += *size.value();
      if (n.ok() && (i < 0 || i >= *size.value()))
        n.fail(fmt::format("index {} of an axis of {}", e.whole.text(), size.text()));
      at.push_back(i);
    }
    if (!n.ok()) return;
    if (x->elements && x->rank() == 1) {
      Elements out;
      for (int64_t i : at) out.push_back((*x->elements)[static_cast<size_t>(i)]);
      return n.know(0, x->dtype, shape, std::move(out));
    }
    if (index->rank() == 0)
      return n.emit(subscript(n.text(x), a, fmt::format("{}", at[0])), x->dtype, shape);
  }
  n.emit(fmt::format("take({}, {}, axis={})", n.text(x), from_front(n, index, size), a), x->dtype,
         shape);
}

void gather_elements(NodeContext& n) {
  const ValueRef x = n.input(0), index = n.input(1);
  if (!n.ok()) return;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", 0), x->rank()));
  if (!n.ok()) return;
  n.bound_input(index, x->shape[a]);
  n.emit(fmt::format("gather({}, {}, {})", n.text(x), from_front(n, index, x->shape[a]), a),
         x->dtype, index->shape);
}

// The elements [begin, end) of x by step along an axis, as ONNX clamps them. Bounds that depend on
// a param are taken as they stand: 0 <= begin <= end <= size.
struct Cut {
  size_t axis = 0;
  Dim begin, end;
  int64_t step = 1;
};

Dim clamped(const Dim& bound, const Dim& size, int64_t lowest, const Dim& highest) {
  Dim b = bound;
  if (b.compare(Dim(0)) == -1) b = b + size;
  if (b.compare(Dim(lowest)) == -1) return Dim(lowest);
  if (const auto c = b.compare(highest); c && *c > 0) return highest;
  return b;
}

void cut_all(NodeContext& n, const ValueRef& x, const std::vector<Cut>& cuts) {
  Dims shape = x->shape;
  std::vector<std::string> items(x->rank(), ":");
  std::optional<Elements> kept = x->rank() == 1 ? x->elements : std::nullopt;
  for (const Cut& c : cuts) {
    const Dim& size = x->shape[c.axis];
    const bool forward = c.step > 0;
    // INT_MAX and INT_MIN stand for "to the end", also of dims that are not known.
    const bool whole_begin = forward ? c.begin.is(0) : c.begin.compare(Dim(INT32_MAX - 1)) == 1;
    const bool whole_end =
        forward ? c.end.compare(Dim(INT32_MAX - 1)) == 1 : c.end.compare(Dim(-INT32_MAX)) == -1;
    const Dim top = size - Dim(1);
    const Dim begin = whole_begin ? (forward ? Dim(0) : top)
                      : forward   ? clamped(c.begin, size, 0, size)
                                  : clamped(c.begin, size, 0, top);
    const Dim end = whole_end ? (forward ? size : Dim(-1))
                    : forward ? clamped(c.end, size, 0, size)
                              : clamped(c.end, size, -1, top);
    const Dim step(forward ? c.step : -c.step);
    Dim count = floordiv((forward ? end - begin : begin - end) + step - Dim(1), step);
    if (count.compare(Dim(0)) == -1) count = Dim(0);
    shape[c.axis] = count;
    const auto b = begin.value(), m = count.value();
    if (kept && b && m) {
      Elements some;
      for (int64_t i = 0; i < *m; i++)
        some.push_back((*kept)[static_cast<size_t>(*b + i * c.step)]);
      kept = std::move(some);
    } else {
      kept.reset();
    }
    if (count.is(0)) {
      items[c.axis] = "0:0";
      continue;
    }
    const bool to_end = forward ? end == size : end.is(-1);
    items[c.axis] = (begin.is(0) && forward ? "" : begin.text()) + ":" +
                    (to_end ? "" : end.text()) + (c.step == 1 ? "" : fmt::format(":{}", c.step));
  }
  if (!n.ok()) return;
  if (kept) return n.know(0, x->dtype, shape, std::move(*kept));
  if (shape == x->shape && std::ranges::all_of(cuts, [](const Cut& c) { return c.step == 1; }))
    return n.same(0, x);
  n.emit(fmt::format("{}[{}]", n.text(x), fmt::join(items, ", ")), x->dtype, shape);
}

void slice(NodeContext& n) {
  const ValueRef x = n.input(0);
  Dims starts, ends;
  std::optional<std::vector<int64_t>> axes, steps;
  if (n.opset() < 10) {
    const auto s = n.integers("starts"), e = n.integers("ends");
    if (!s || !e) return n.fail("starts or ends are missing");
    starts.assign(s->begin(), s->end()), ends.assign(e->begin(), e->end());
    axes = n.integers("axes");
  } else {
    starts = n.dims(1, "the starts").value_or(Dims{}),
    ends = n.dims(2, "the ends").value_or(Dims{});
    if (n.has(3)) axes = n.numbers(3, "the axes");
    if (n.has(4)) steps = n.numbers(4, "the steps");
  }
  if (!n.ok()) return;
  std::vector<Cut> cuts;
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()) ||
      (steps && steps->size() != starts.size()) || starts.size() > x->rank())
    return n.fail("starts, ends, axes and steps differ in length");
  for (size_t i = 0; i < starts.size(); i++) {
    Cut c;
    c.axis = static_cast<size_t>(n.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), x->rank()));
    c.begin = starts[i], c.end = ends[i], c.step = steps ? (*steps)[i] : 1;
    if (c.step == 0) return n.fail("a step is 0", "a step other than 0");
    if (c.step == INT64_MIN) c.step++;
    cuts.push_back(c);
  }
  if (n.ok()) cut_all(n, x, cuts);
}

void split(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto sizes = n.opset() < 13 ? n.integers("split")
                     : n.has(1)     ? n.numbers(1, "the sizes")
                                    : std::nullopt;
  if (!n.ok()) return;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", 0), x->rank()));
  const size_t parts = n.node.outputs.size();
  if (!n.ok()) return;
  if (parts == 0 || (sizes && sizes->size() != parts))
    return n.fail(fmt::format("{} outputs", parts), "as many as sizes");
  const Dim& size = x->shape[a];
  const Dim equal = floordiv(size, Dim(static_cast<int64_t>(parts)));
  if (!sizes && size.value() && size != equal * Dim(static_cast<int64_t>(parts)))
    return n.fail(fmt::format("{} elements do not fall into {} equal parts", size.text(), parts));
  Dim at(0);
  const std::string name = n.text(x);
  for (size_t i = 0; i < parts; i++) {
    const Dim length = sizes ? Dim((*sizes)[i]) : equal;
    if (length.compare(Dim(0)) == -1) return n.fail("a size is negative");
    Dims shape = x->shape;
    shape[a] = length;
    if (x->elements && x->rank() == 1 && at.value() && length.value() &&
        *at.value() + *length.value() <= static_cast<int64_t>(x->elements->size())) {
      const auto begin = x->elements->begin() + *at.value();
      n.know(i, x->dtype, shape, Elements(begin, begin + *length.value()));
    } else {
      n.emit(i, subscript(name, a, at.text() + ":" + (at + length).text()), x->dtype, shape);
    }
    at = at + length;
  }
  if (sizes && size.value() && at != size)
    n.fail(fmt::format("the sizes come to {}, the axis has {}", at.text(), size.text()));
}

void pad(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto pads = n.opset() < 11 ? n.integers("pads") : n.numbers(1, "the pads");
  if (!n.ok()) return;
  if (const std::string mode = n.word("mode", "constant"); mode != "constant")
    return n.fail(fmt::format("mode '{}'", mode), "constant");
  if (!pads || pads->size() != 2 * x->rank())
    return n.fail(fmt::format("{} pads for {} dims", pads ? pads->size() : 0, x->rank()),
                  "two for each dim");
  std::string value = "0";
  if (n.opset() < 11)
    value = Element{Dim(0), n.number("value", 0), true}.text();
  else if (n.has(2))
    value = n.operand(n.input(2), x->rank());
  if (x->dtype == DType::Bool && value == "0") value = "false";
  Dims shape = x->shape;
  std::string pairs;
  std::vector<std::string> items;
  bool cuts = false, fills = false;
  for (size_t i = 0; i < x->rank(); i++) {
    const int64_t lo = (*pads)[i], hi = (*pads)[x->rank() + i];
    constexpr int64_t most = int64_t{1} << 40;
    if (lo < -most || hi < -most || lo > most || hi > most) return n.fail("a pad beyond 2^40");
    shape[i] = shape[i] + Dim(lo) + Dim(hi);
    pairs += fmt::format("{}[{}, {}]", i ? ", " : "", std::max<int64_t>(lo, 0),
                         std::max<int64_t>(hi, 0));
    items.push_back((lo < 0 ? fmt::format("{}", -lo) : "") + ":" +
                    (hi < 0 ? fmt::format("{}", hi) : ""));
    cuts |= lo < 0 || hi<0, fills |= lo> 0 || hi > 0;
  }
  if (!cuts && !fills) return n.same(0, x);
  std::string text = n.text(x);
  if (cuts) text = fmt::format("{}[{}]", text, fmt::join(items, ", "));
  if (fills) text = fmt::format("pad({}, [{}], {})", text, pairs, value);
  n.emit(text, x->dtype, shape);
}

void trilu(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  Dim k(0);
  if (n.has(1)) {
    const auto d = n.dims(1, "the diagonal");
    if (!n.ok() || d->size() != 1) return n.fail("the diagonal is no number");
    k = d->front();
  }
  n.emit(fmt::format("{}({}, k={})", n.integer("upper", 1) ? "triu" : "tril", n.text(x), k.text()),
         x->dtype, x->shape);
}

void cumsum(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto axes = n.numbers(1, "the axis");
  if (!n.ok()) return;
  if (axes->size() != 1) return n.fail("the axis is no number");
  const int64_t a = n.axis(axes->front(), x->rank());
  const bool exclusive = n.integer("exclusive", 0), reverse = n.integer("reverse", 0);
  std::string text = n.text(x);
  if (reverse) text = fmt::format("flip({}, {})", text, a);
  if (exclusive) {  // one further, the last one left out
    std::string pairs;
    for (int64_t i = 0; i < static_cast<int64_t>(x->rank()); i++)
      pairs += fmt::format("{}[{}, 0]", i ? ", " : "", i == a ? 1 : 0);
    text = subscript(fmt::format("pad({}, [{}])", text, pairs), static_cast<size_t>(a), ":-1");
  }
  text = fmt::format("cumsum({}, {})", text, a);
  if (reverse) text = fmt::format("flip({}, {})", text, a);
  n.emit(text, x->dtype, x->shape);
}

void arg(NodeContext& n) {
  const ValueRef x = n.input(0);
  const bool keep = n.integer("keepdims", 1);
  if (n.integer("select_last_index", 0)) return n.fail("select_last_index", "0");
  if (!n.ok()) return;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", 0), x->rank()));
  if (!n.ok()) return;
  Dims shape = x->shape;
  shape[a] = Dim(1);
  if (!keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(a));
  n.emit(fmt::format("cast({}({}, {}, keepdims={}), i64)",
                     n.node.op == "ArgMax" ? "argmax" : "argmin", n.text(x), a, keep),
         DType::I64, shape);
}

void one_hot(NodeContext& n) {
  const ValueRef index = n.input(0), values = n.input(2);
  const auto depth = n.dims(1, "the depth");
  if (!n.ok()) return;
  if (depth->size() != 1 || is_float(index->dtype))
    return n.fail("the depth is no number, or the index no integer");
  const Dim& d = depth->front();
  const size_t rank = index->rank() + 1;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", -1), rank));
  Dims shape = index->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(a), d);
  std::string hot = fmt::format("one_hot({}, {})", from_front(n, index, d), d.text());
  if (a + 1 != rank) {
    std::vector<size_t> order;
    for (size_t i = 0; i + 1 < rank; i++) order.push_back(i);
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(a), rank - 1);
    hot = fmt::format("permute({}, [{}])", hot, fmt::join(order, ", "));
  }
  const std::string v = n.text(values);
  n.emit(fmt::format("where({} == 1, {}[1], {}[0])", hot, v, v), values->dtype, shape);
}

}  // namespace

const std::vector<Operator>& selection_operators() {
  static const std::vector<Operator> table = {
      {"ArgMax", arg},
      {"ArgMin", arg},
      {"CumSum", cumsum},
      {"Gather", gather},
      {"GatherElements", gather_elements},
      {"OneHot", one_hot},
      {"Pad", pad},
      {"Slice", slice},
      {"Split", split},
      {"Trilu", trilu},
  };
  return table;
}

}  // namespace beamline::onnx
