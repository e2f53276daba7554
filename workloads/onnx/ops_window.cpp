// Convolutions and pools of one or two dims. What the language's functions do not say (padding that
// differs on both sides) is said with pad() around them.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/onnx/importer_internal.h"

namespace beamline::onnx {
namespace {

using Numbers = std::vector<int64_t>;

// What a convolution or a pool says of its windows, by dim.
struct Windows {
  size_t dims = 0;  // 1 or 2
  Numbers kernel, stride, dilation, before, after;
  Dims out;
};

std::string pair_text(const Numbers& v) {
  return v.size() == 1 ? fmt::format("[1, {}]", v[0]) : fmt::format("[{}, {}]", v[0], v[1]);
}
// The window along the dim that a row gets to be a picture is 0 wide, not 1.
std::string padding_text(const Numbers& v) {
  return v.size() == 1 ? fmt::format("[0, {}]", v[0]) : fmt::format("[{}, {}]", v[0], v[1]);
}

Numbers listed(NodeContext& n, const char* name, size_t count, int64_t fallback, int64_t least) {
  const Numbers v = n.integers(name).value_or(Numbers(count, fallback));
  constexpr int64_t most = int64_t{1} << 30;
  if (v.size() != count)
    n.fail(fmt::format("attribute '{}' has {} numbers", name, v.size()), fmt::format("{}", count));
  for (int64_t x : v)
    if (x < least || x > most) n.fail(fmt::format("attribute '{}' holds {}", name, x));
  return n.ok() ? v : Numbers(count, std::max<int64_t>(fallback, least));
}

// Reads attributes; `kernel` is given by a convolution's weights.
Windows read_windows(NodeContext& n, const ValueRef& x, const std::optional<Numbers>& kernel) {
  Windows w;
  w.dims = x->rank() - 2;
  w.kernel = kernel ? *kernel : listed(n, "kernel_shape", w.dims, 0, 1);
  w.stride = listed(n, "strides", w.dims, 1, 1);
  w.dilation = listed(n, "dilations", w.dims, 1, 1);
  w.before = w.after = Numbers(w.dims, 0);
  const std::string automatic = n.word("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic.empty()) {
    const Numbers pads = listed(n, "pads", 2 * w.dims, 0, 0);
    for (size_t i = 0; i < w.dims; i++) w.before[i] = pads[i], w.after[i] = pads[w.dims + i];
  } else if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    for (size_t i = 0; i < w.dims && n.ok(); i++) {
      const int64_t size = n.constant(x->shape[2 + i], "the dims under auto_pad");
      const int64_t steps = (size + w.stride[i] - 1) / w.stride[i];
      const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
      const int64_t total = std::max<int64_t>((steps - 1) * w.stride[i] + reach - size, 0);
      w.before[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[i] = total - w.before[i];
    }
  } else if (automatic != "VALID") {
    n.fail(fmt::format("auto_pad '{}'", automatic), "NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  const bool ceil = n.integer("ceil_mode", 0);
  for (size_t i = 0; i < w.dims; i++) {
    const Dim room = x->shape[2 + i] + Dim(w.before[i] + w.after[i]) -
                     Dim((w.kernel[i] - 1) * w.dilation[i] + 1);
    if (room.compare(Dim(0)) == -1)
      n.fail(fmt::format("the kernel reaches over dim {} of {}", 2 + i, list_text(x->shape)));
    Dim steps = floordiv(ceil ? room + Dim(w.stride[i] - 1) : room, Dim(w.stride[i]));
    if (ceil) {  // no window begins behind the input
      const auto start = (steps * Dim(w.stride[i])).compare(x->shape[2 + i] + Dim(w.before[i]));
      if (!start) n.fail("ceil_mode of dims that depend on a param", "numbers");
      if (start.value_or(0) >= 0) steps = steps - Dim(1);
    }
    w.out.push_back(steps + Dim(1));
  }
  return w;
}

bool one_or_two_dims(NodeContext& n, const ValueRef& x) {
  if (!n.ok()) return false;
  if (x->rank() == 3 || x->rank() == 4) return true;
  n.fail(fmt::format("of a tensor of {} dims", x->rank()), "[N, C, W] or [N, C, H, W]");
  return false;
}

// The input as a picture, padded where the two sides differ; `padding` is what is left to say.
std::string picture(NodeContext& n, const ValueRef& x, const Windows& w, const std::string& fill,
                    Numbers& padding) {
  std::string text = n.text(x);
  padding = Numbers(w.dims, 0);
  if (w.before == w.after) {
    padding = w.before;
  } else {
    std::string pairs = "[0, 0], [0, 0]";
    for (size_t i = 0; i < w.dims; i++) pairs += fmt::format(", [{}, {}]", w.before[i], w.after[i]);
    text = fmt::format("pad({}, [{}], {})", text, pairs, fill);
  }
  return w.dims == 1 ? fmt::format("unsqueeze({}, 2)", text) : text;
}
std::string row(const std::string& text, const Windows& w) {
  return w.dims == 1 ? fmt::format("squeeze({}, 2)", text) : text;
}

void conv(NodeContext& n) {
  const ValueRef x = n.input(0), k = n.input(1);
  if (!one_or_two_dims(n, x)) return;
  if (k->rank() != x->rank()) return n.fail("the kernels are of another rank than the input");
  Numbers kernel;
  for (size_t i = 2; i < k->rank(); i++)
    kernel.push_back(n.constant(k->shape[i], "the kernel's dims"));
  const Windows w = read_windows(n, x, kernel);
  if (!n.ok()) return;
  Numbers padding;
  const std::string in = picture(n, x, w, "0", padding);
  std::string weights = n.text(k);
  if (w.dims == 1) weights = fmt::format("unsqueeze({}, 2)", weights);
  Dims shape{x->shape[0], k->shape[0]};
  shape.insert(shape.end(), w.out.begin(), w.out.end());
  n.emit(row(fmt::format("conv2d({}, {}, {}, stride={}, padding={}, dilation={}, groups={})", in,
                         weights, n.has(2) ? n.text(n.input(2)) : "none", pair_text(w.stride),
                         padding_text(padding), pair_text(w.dilation), n.integer("group", 1)),
             w),
         x->dtype, shape);
}

// Everything the kernels reach, then the pads are cut off: they may differ on both sides.
void conv_transpose(NodeContext& n) {
  const ValueRef x = n.input(0), k = n.input(1);
  if (!one_or_two_dims(n, x)) return;
  if (k->rank() != x->rank()) return n.fail("the kernels are of another rank than the input");
  const size_t dims = x->rank() - 2;
  const Numbers stride = listed(n, "strides", dims, 1, 1),
                dilation = listed(n, "dilations", dims, 1, 1),
                extra = listed(n, "output_padding", dims, 0, 0);
  Numbers pads = listed(n, "pads", 2 * dims, 0, 0);
  const std::string automatic = n.word("auto_pad", "NOTSET");
  const auto wanted = n.integers("output_shape");
  const int64_t groups = n.integer("group", 1);
  if (wanted && wanted->size() != dims) n.fail("'output_shape' is of another rank");
  Dims shape{x->shape[0], k->shape[1] * Dim(groups)};
  std::string items = ":, :", pairs = "[0, 0], [0, 0]";
  bool cut = false, filled = false;  // an output_shape can ask for more than the kernels reach
  for (size_t i = 0; i < dims && n.ok(); i++) {
    const int64_t reach = (n.constant(k->shape[2 + i], "the kernel's dims") - 1) * dilation[i] + 1;
    const Dim full = (x->shape[2 + i] - Dim(1)) * Dim(stride[i]) + Dim(reach + extra[i]);
    int64_t &lo = pads[i], &hi = pads[dims + i];
    if (wanted || automatic.starts_with("SAME")) {
      const Dim size = wanted ? Dim((*wanted)[i]) : x->shape[2 + i] * Dim(stride[i]);
      const int64_t total = n.constant(full - size, "the pads");
      lo = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      hi = total - lo;
    }
    const Dim out = full - Dim(lo) - Dim(hi);
    if (out.compare(Dim(1)) == -1) n.fail("the pads take everything away");
    shape.push_back(out);
    items +=
        fmt::format(", {}:{}", std::max<int64_t>(lo, 0), hi <= 0 ? "" : fmt::format("{}", -hi));
    pairs += fmt::format(", [{}, {}]", std::max<int64_t>(-lo, 0), std::max<int64_t>(-hi, 0));
    cut |= lo > 0 || hi > 0, filled |= lo < 0 || hi < 0;
  }
  if (!n.ok()) return;
  std::string in = n.text(x), weights = n.text(k);
  if (dims == 1)
    in = fmt::format("unsqueeze({}, 2)", in), weights = fmt::format("unsqueeze({}, 2)", weights);
  std::string text = fmt::format(
      "conv_transpose2d({}, {}, {}, stride={}, output_padding={}, dilation={}, groups={})", in,
      weights, n.has(2) ? n.text(n.input(2)) : "none", pair_text(stride), padding_text(extra),
      pair_text(dilation), groups);
  if (dims == 1) text = fmt::format("squeeze({}, 2)", text);
  if (cut) text = fmt::format("{}[{}]", text, items);
  if (filled) text = fmt::format("pad({}, [{}])", text, pairs);
  n.emit(text, x->dtype, shape);
}

void pool(NodeContext& n) {
  const ValueRef x = n.input(0);
  if (!one_or_two_dims(n, x)) return;
  const bool greatest = n.node.op == "MaxPool";
  if (n.wants(1)) return n.fail("the output of indices");
  const Windows w = read_windows(n, x, std::nullopt);
  if (!n.ok()) return;
  if (w.dilation != Numbers(w.dims, 1)) return n.fail("dilated windows");
  const bool ceil = n.integer("ceil_mode", 0), counts = n.integer("count_include_pad", 0);
  Dims shape{x->shape[0], x->shape[1]};
  shape.insert(shape.end(), w.out.begin(), w.out.end());
  // The language pads by at most half of the kernel.
  bool wide = w.before != w.after;
  for (size_t i = 0; i < w.dims; i++) wide |= 2 * w.before[i] > w.kernel[i];
  const std::string options =
      fmt::format("{}, stride={}", pair_text(w.kernel), pair_text(w.stride));
  const std::string flags = ceil ? ", ceil=true" : "";
  const std::string lowest = is_float(x->dtype)      ? "(-inf)"
                             : is_unsigned(x->dtype) ? "0"
                                                     : fmt::format("({})", dtype_min(x->dtype));
  const auto framed = [&](const std::string& text, const std::string& fill) {
    std::string pairs = "[0, 0], [0, 0]";
    for (size_t i = 0; i < w.dims; i++) pairs += fmt::format(", [{}, {}]", w.before[i], w.after[i]);
    return fmt::format("pad({}, [{}], {})", text, pairs, fill);
  };
  const auto as_picture = [&](const std::string& text) {
    return w.dims == 1 ? fmt::format("unsqueeze({}, 2)", text) : text;
  };
  if (!wide) {
    const std::string p = padding_text(w.before);
    const std::string in = as_picture(n.text(x));
    return n.emit(
        row(greatest ? fmt::format("max_pool2d({}, {}, padding={}{})", in, options, p, flags)
                     : fmt::format("avg_pool2d({}, {}, padding={}{}, count_include_pad={})", in,
                                   options, p, flags, counts),
            w),
        x->dtype, shape);
  }
  if (greatest)
    return n.emit(row(fmt::format("max_pool2d({}, {}{})", as_picture(framed(n.text(x), lowest)),
                                  options, flags),
                      w),
                  x->dtype, shape);
  std::string text =
      fmt::format("avg_pool2d({}, {}{})", as_picture(framed(n.text(x), "0")), options, flags);
  if (!counts) {  // the mean over the window, by the share of it that lies in the input
    const std::string ones =
        fmt::format("full({}, 1, {})", list_text(x->shape), dtype_name(x->dtype));
    text = fmt::format("{} / avg_pool2d({}, {}{})", text, as_picture(framed(ones, "0")), options,
                       flags);
  }
  n.emit(w.dims == 1 ? fmt::format("squeeze({}, 2)", text) : text, x->dtype, shape);
}

}  // namespace

const std::vector<Operator>& window_operators() {
  static const std::vector<Operator> table = {
      {"AveragePool", pool},
      {"Conv", conv},
      {"ConvTranspose", conv_transpose},
      {"MaxPool", pool},
  };
  return table;
}

}  // namespace beamline::onnx
