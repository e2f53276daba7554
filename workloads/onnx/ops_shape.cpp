// Operators that move elements without choosing among them, and those that make shapes.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

// The value under another shape.
void reshaped(NodeContext& n, const ValueRef& x, const Dims& shape) {
  if (!n.ok()) return;
  if (x->elements) return n.know(0, x->dtype, shape, *x->elements);
  if (shape == x->shape) return n.same(0, x);
  n.emit(fmt::format("reshape({}, {})", n.text(x), list_text(shape)), x->dtype, shape);
}

void reshape(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto wanted = n.dims(1, "the dims");
  if (!n.ok()) return;
  Dims shape;
  std::optional<size_t> open;
  for (size_t i = 0; i < wanted->size(); i++) {
    Dim d = (*wanted)[i];
    if (d.is(-1)) {
      if (open) return n.fail("the dims hold two -1", "at most one");
      open = i, d = Dim(1);
    } else if (d.is(0) && n.integer("allowzero", 0) == 0) {
      if (i >= x->rank())
        return n.fail(fmt::format("dim {} is copied from a tensor of {} dims", i, x->rank()));
      d = x->shape[i];
    }
    shape.push_back(d);
  }
  const Dim all = product(x->shape), rest = product(shape);
  if (open) {
    if (rest.is(0)) return n.fail("-1 beside a dim of 0", "dims that tell how many there are");
    shape[*open] = floordiv(all, rest);
  }
  const Dim now = product(shape);
  if (const auto a = all.value(), b = now.value(); a && b && *a != *b)
    return n.fail(fmt::format("shape {} cannot become {}", list_text(x->shape), list_text(shape)),
                  "as many elements");
  reshaped(n, x, shape);
}

void flatten(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  int64_t a = n.integer("axis", 1);
  const auto rank = static_cast<int64_t>(x->rank());
  if (a < -rank || a > rank) return n.fail(fmt::format("axis {} of a tensor of {} dims", a, rank));
  if (a < 0) a += rank;
  const std::span<const Dim> dims(x->shape);
  reshaped(
      n, x,
      {product(dims.first(static_cast<size_t>(a))), product(dims.subspan(static_cast<size_t>(a)))});
}

void squeeze(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto axes = n.axes("axes", 1, 13);
  if (!n.ok()) return;
  std::vector<bool> gone(x->rank(), false);
  if (axes) {
    for (int64_t a : *axes) gone[static_cast<size_t>(n.axis(a, x->rank()))] = n.ok();
  } else {
    for (size_t i = 0; i < x->rank(); i++) gone[i] = x->shape[i].is(1);
  }
  Dims shape;
  for (size_t i = 0; i < x->rank(); i++) {
    if (!gone[i]) shape.push_back(x->shape[i]);
    if (gone[i] && !x->shape[i].is(1))
      n.fail(fmt::format("axis {} of shape {} is squeezed", i, list_text(x->shape)), "a dim of 1");
  }
  reshaped(n, x, shape);
}

void unsqueeze(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto axes = n.axes("axes", 1, 13);
  if (n.ok() && !axes) n.fail("the axes are missing");
  if (!n.ok()) return;
  const size_t rank = x->rank() + axes->size();
  std::vector<bool> fresh(rank, false);
  for (int64_t a : *axes) {
    const auto i = static_cast<size_t>(n.axis(a, rank));
    if (n.ok() && fresh[i]) n.fail(fmt::format("axis {} is named twice", a));
    if (!n.ok()) return;
    fresh[i] = true;
  }
  Dims shape;
  for (size_t i = 0, from = 0; i < rank; i++) shape.push_back(fresh[i] ? Dim(1) : x->shape[from++]);
  reshaped(n, x, shape);
}

void transpose(NodeContext& n) {
  const ValueRef x = n.input(0);
  auto order = n.integers("perm");
  if (!n.ok()) return;
  if (!order) {
    order.emplace();
    for (size_t i = x->rank(); i-- > 0;) order->push_back(static_cast<int64_t>(i));
  }
  std::vector<bool> seen(x->rank(), false);
  Dims shape;
  for (int64_t& a : *order) {
    a = n.axis(a, x->rank());
    if (!n.ok()) return;
    if (seen[static_cast<size_t>(a)]) n.fail(fmt::format("axis {} is named twice", a));
    seen[static_cast<size_t>(a)] = true;
    shape.push_back(x->shape[static_cast<size_t>(a)]);
  }
  if (order->size() != x->rank())
    return n.fail(fmt::format("{} axes for {} dims", order->size(), x->rank()));
  if (x->rank() < 2) return n.same(0, x);
  n.emit(fmt::format("permute({}, [{}])", n.text(x), fmt::join(*order, ", ")), x->dtype, shape);
}

// What is spread over more elements than are kept is spread at run time.
void spread(NodeContext& n, const ValueRef& x, const Dims& shape) {
  const auto count = product(shape).value();
  if (x->elements && x->elements->size() == 1 && count && *count >= 0 &&
      *count <= static_cast<int64_t>(most_known) && known(shape))
    return n.know(0, x->dtype, shape, Elements(static_cast<size_t>(*count), x->elements->front()));
  if (shape == x->shape) return n.same(0, x);
  n.emit(fmt::format("expand({}, {})", n.text(x), list_text(shape)), x->dtype, shape);
}

void expand(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto wanted = n.dims(1, "the dims");
  if (!n.ok()) return;
  const Dims shape = n.broadcast(x->shape, *wanted);
  if (n.ok()) spread(n, x, shape);
}

void tile(NodeContext& n) {
  const ValueRef x = n.input(0);
  const auto repeats = n.dims(1, "the repeats");
  if (!n.ok()) return;
  if (repeats->size() != x->rank())
    return n.fail(fmt::format("{} repeats for {} dims", repeats->size(), x->rank()));
  // [a, b] repeated is [1, a, 1, b] expanded and merged.
  Dims apart, wide, merged;
  for (size_t i = 0; i < x->rank(); i++) {
    apart.insert(apart.end(), {Dim(1), x->shape[i]});
    wide.insert(wide.end(), {(*repeats)[i], x->shape[i]});
    merged.push_back((*repeats)[i] * x->shape[i]);
  }
  if (merged == x->shape) return n.same(0, x);
  n.emit(fmt::format("reshape(expand(reshape({}, {}), {}), {})", n.text(x), list_text(apart),
                     list_text(wide), list_text(merged)),
         x->dtype, merged);
}

void concat(NodeContext& n) {
  if (!n.attribute("axis")) return n.fail("attribute 'axis' is missing");
  std::vector<ValueRef> parts;
  for (size_t i = 0; i < n.input_count(); i++) parts.push_back(n.input(i));
  if (parts.empty()) return n.fail("nothing to join");
  if (!n.ok()) return;
  const auto a = static_cast<size_t>(n.axis(n.integer("axis", 0), parts[0]->rank()));
  if (!n.ok()) return;
  Dims shape = parts[0]->shape;
  shape[a] = Dim(0);
  std::string texts;
  std::optional<Elements> all = Elements();
  for (const ValueRef& v : parts) {
    if (v->rank() != shape.size() || v->dtype != parts[0]->dtype)
      return n.fail(fmt::format("'{}' is of another rank or type", v->onnx_name));
    shape[a] = shape[a] + v->shape[a];
    if (v->elements && v->rank() == 1 && all)
      all->insert(all->end(), v->elements->begin(), v->elements->end());
    else
      all.reset();
  }
  if (all) return n.know(0, parts[0]->dtype, shape, std::move(*all));
  if (parts.size() == 1) return n.same(0, parts[0]);
  for (const ValueRef& v : parts) texts += n.text(v) + ", ";
  n.emit(fmt::format("concat({}axis={})", texts, a), parts[0]->dtype, shape);
}

void shape_of(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!n.ok()) return;
  const auto rank = static_cast<int64_t>(x->rank());
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t begin = place(n.integer("start", 0)), end = place(n.integer("end", rank));
  Elements out;
  for (int64_t i = begin; i < end; i++) out.push_back({x->shape[static_cast<size_t>(i)], 0, false});
  const auto count = static_cast<int64_t>(out.size());
  n.know(0, DType::I64, {Dim(count)}, std::move(out));
}

void size(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (n.ok()) n.know(0, DType::I64, {}, {{product(x->shape), 0, false}});
}

// Known elements of data that the model holds.
std::optional<Elements> elements_of(const Tensor& t) {
  const int64_t count = t.elements();
  if (!t.missing.empty() || count < 0 || count > static_cast<int64_t>(most_known))
    return std::nullopt;
  Elements out;
  const auto width = static_cast<size_t>(dtype_bytes(t.dtype));
  for (size_t i = 0; i < static_cast<size_t>(count); i++) {
    uint64_t bits = 0;
    std::copy_n(t.bytes.data() + i * width, width, reinterpret_cast<char*>(&bits));
    if (is_float(t.dtype)) {
      out.push_back({Dim(0), float_from_bits(t.dtype, bits), true});
      continue;
    }
    if (t.dtype == DType::U64 && bits > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    out.push_back({Dim(wrap_to(t.dtype, static_cast<int64_t>(bits))), 0, false});
  }
  return out;
}

void constant(NodeContext& n) {
  const auto list = [&](const auto& numbers, bool vector) {
    Elements e;
    DType t = DType::I64;
    for (auto v : numbers) {
      if constexpr (std::is_floating_point_v<decltype(v)>) {
        e.push_back({Dim(0), v, true});
        t = DType::F32;
      } else {
        e.push_back({Dim(v), 0, false});
      }
    }
    const auto count = static_cast<int64_t>(e.size());
    n.know(0, t, vector ? Dims{Dim(count)} : Dims{}, std::move(e));
  };
  if (const Attribute* a = n.attribute("value"); a && a->kind == Attribute::Kind::Tensor) {
    const Tensor& t = a->tensor;
    if (t.dtype == DType::Void || t.elements() < 0) return n.fail("its value: " + t.missing);
    const ValueRef v = n.result(0, t.dtype, Dims(t.dims.begin(), t.dims.end()));
    v->data = &t;
    v->elements = known_elements(t);
    return;
  }
  if (n.attribute("value_float")) return list(std::vector{n.number("value_float", 0)}, false);
  if (n.attribute("value_int")) return list(std::vector{n.integer("value_int", 0)}, false);
  if (const auto v = n.integers("value_ints")) return list(*v, true);
  if (const Attribute* a = n.attribute("value_floats")) return list(a->numbers, true);
  n.fail("no value of a supported kind", "a tensor, numbers, or a number");
}

void constant_of_shape(NodeContext& n) {
  const auto shape = n.dims(0, "the dims");
  if (!n.ok()) return;
  Value v;
  v.dtype = DType::F32, v.elements = Elements{{Dim(0), 0, true}};
  if (const Attribute* a = n.attribute("value"); a && a->kind == Attribute::Kind::Tensor) {
    v.dtype = a->tensor.dtype, v.elements = elements_of(a->tensor);
    if (!v.elements || v.elements->size() != 1) return n.fail("its value is no single number");
  }
  v.shape = Dims(shape->size(), Dim(1));
  v.onnx_name = n.node.name;
  if (v.shape.empty()) return n.know(0, v.dtype, {}, *v.elements);
  spread(n, std::make_shared<Value>(v), *shape);
}

void range(NodeContext& n) {
  const ValueRef a = n.input(0), b = n.input(1), s = n.input(2);
  if (!n.ok()) return;
  for (const ValueRef& v : {a, b, s})
    if (!v->elements || v->elements->size() != 1)
      return n.fail(fmt::format("its bound '{}' depends on data", v->onnx_name),
                    "numbers that follow from constants and shapes");
  if (is_float(a->dtype)) return n.fail("a range of floats", "integers");
  const Dim first = a->elements->front().whole, last = b->elements->front().whole;
  const int64_t step = n.constant(s->elements->front().whole, "the step");
  if (step == 0) return n.fail("the step is 0");
  if (step == INT64_MIN || !n.ok()) return n.fail("the step is too large");
  Dim count = step > 0 ? floordiv(last - first + Dim(step - 1), Dim(step))
                       : floordiv(first - last + Dim(-step - 1), Dim(-step));
  if (count.compare(Dim(0)) == -1) count = Dim(0);
  if (const auto m = count.value(); m && *m <= static_cast<int64_t>(most_known)) {
    Elements e;
    for (int64_t i = 0; i < *m; i++) e.push_back({first + Dim(i) * Dim(step), 0, false});
    return n.know(0, a->dtype, {count}, std::move(e));
  }
  n.emit(fmt::format("cast(arange({}, {}, {}), {})", first.text(), last.text(), step,
                     dtype_name(a->dtype)),
         a->dtype, {count});
}

// Blocks of channels become blocks of pixels, or back: a reshape, a permutation, a reshape.
void depth_to_space(NodeContext& n) {
  const bool forward = n.node.op == "DepthToSpace";
  const ValueRef x = n.input(0);
  const int64_t b = n.integer("blocksize", 0);
  if (!n.ok()) return;
  if (x->rank() != 4 || b < 1) return n.fail("of a tensor that is not [N, C, H, W], or no block");
  const Dim &m = x->shape[0], &c = x->shape[1], &h = x->shape[2], &w = x->shape[3];
  const Dim block(b);
  Dims apart, merged;
  const char* order = "";
  if (forward) {
    const Dim channels = floordiv(c, block * block);
    const bool depth_first = n.word("mode", "DCR") == "DCR";
    apart =
        depth_first ? Dims{m, block, block, channels, h, w} : Dims{m, channels, block, block, h, w};
    order = depth_first ? "0, 3, 4, 1, 5, 2" : "0, 1, 4, 2, 5, 3";
    merged = {m, channels, h * block, w * block};
  } else {
    apart = {m, c, floordiv(h, block), block, floordiv(w, block), block};
    order = "0, 3, 5, 1, 2, 4";
    merged = {m, c * block * block, floordiv(h, block), floordiv(w, block)};
  }
  n.emit(fmt::format("reshape(permute(reshape({}, {}), [{}]), {})", n.text(x), list_text(apart),
                     order, list_text(merged)),
         x->dtype, merged);
}

}  // namespace

std::optional<Elements> known_elements(const Tensor& t) {
  if (is_float(t.dtype) && t.elements() != 1) return std::nullopt;
  return elements_of(t);
}

const std::vector<Operator>& shape_operators() {
  static const std::vector<Operator> table = {
      {"Concat", concat},
      {"Constant", constant},
      {"ConstantOfShape", constant_of_shape},
      {"DepthToSpace", depth_to_space},
      {"Expand", expand},
      {"Flatten", flatten},
      {"Range", range},
      {"Reshape", reshape},
      {"Shape", shape_of},
      {"Size", size},
      {"SpaceToDepth", depth_to_space},
      {"Squeeze", squeeze},
      {"Tile", tile},
      {"Transpose", transpose},
      {"Unsqueeze", unsqueeze},
  };
  return table;
}

}  // namespace beamline::onnx
